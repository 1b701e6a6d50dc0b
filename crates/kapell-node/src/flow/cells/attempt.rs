//! One task, from its creation to its result or its cancellation.

use std::sync::Arc;
use std::time::Duration;

use kapell_api::client::Error as Trouble;
use kapell_backend::executor::{Ended, Error, Exit, Output};
use kapell_core::board::{Task, TaskDefinition, TaskGuid, TaskState};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::log::Log;
use super::outage::{Outage, words};
use super::{AGAIN, Shared};
use crate::flow::wish::{Told, at_least, stopped};

/// The first pause between two looks at a task; each further one is twice as long.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// A task that is over by then never has its log followed: one read is enough.
const SHORT: Duration = Duration::from_millis(250);
/// Between two looks while its log is followed, should that hang.
const LOOK: Duration = Duration::from_secs(5);
/// How long after the end of a followed log the task may take to be told as over.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// How long the rest of a log is tried to be had. A cell that is lost has none to give.
const REST: Duration = Duration::from_secs(30);
/// After so long a board may have forgotten a task that was over at once, so that to send it
/// again could run it twice.
const SENT_AGAIN: Duration = Duration::from_secs(90);
/// For a last request when nobody waits any more.
const HASTE: Duration = Duration::from_secs(3);

pub(super) struct Attempt {
    shared: Arc<Shared>,
    definition: TaskDefinition,
    output: Arc<dyn Output>,
    told: watch::Receiver<Told>,
    log: Log,
    outage: Outage,
    /// Its end was seen on the board.
    is_over: bool,
}

/// What came of creating a task.
enum Created {
    There(Box<Task>),
    /// It was told to end before it was seen to be there.
    Told {
        may_be_there: bool,
    },
}

impl Attempt {
    pub(super) fn new(
        shared: Arc<Shared>,
        definition: TaskDefinition,
        output: Arc<dyn Output>,
        told: watch::Receiver<Told>,
    ) -> Self {
        let outage = Outage::new(shared.patience);
        Self { shared, definition, output, told, log: Log::default(), outage, is_over: false }
    }

    fn guid(&self) -> TaskGuid {
        self.definition.task_guid.clone()
    }

    pub(super) async fn run(mut self) -> Result<Ended, Error> {
        let ended = self.live().await;
        if ended.is_err() {
            // Whatever became of it, nobody waits for it any more.
            self.let_go().await;
        }
        ended
    }

    async fn live(&mut self) -> Result<Ended, Error> {
        let task = match self.create().await? {
            Created::There(task) => *task,
            Created::Told { may_be_there: false } => return Ok(stopped()),
            Created::Told { may_be_there: true } => return Ok(self.cancel().await),
        };
        let told = self.told.clone();
        let attended = tokio::select! {
            biased;
            () = at_least(told, Told::End) => None,
            task = self.attend(task) => Some(task),
        };
        match attended {
            Some(task) => {
                let task = task?;
                self.is_over = true;
                outcome(&task)
            }
            None => Ok(self.cancel().await),
        }
    }

    /// Has the task on the board, once: the same task that is there already is this one.
    async fn create(&mut self) -> Result<Created, Error> {
        let mut unsure_since: Option<Instant> = None;
        let mut replaced = false;
        loop {
            let began = Instant::now();
            let too_late = unsure_since.is_some_and(|since| since.elapsed() >= SENT_AGAIN);
            let client = &self.shared.client;
            let asked = async {
                if too_late {
                    client.task(self.definition.task_guid.as_str()).await
                } else {
                    client.create_task(&self.definition).await
                }
            };
            let answer = tokio::select! {
                biased;
                () = at_least(self.told.clone(), Told::Now) => {
                    return Ok(Created::Told { may_be_there: true });
                }
                answer = self.shared.ask(asked) => answer,
            };
            let trouble = match answer {
                Ok(task) => {
                    self.outage.is_over(&*self.output);
                    return Ok(Created::There(Box::new(task)));
                }
                Err(trouble) => trouble,
            };
            if too_late && trouble.is_not_found() {
                let guid = &self.definition.task_guid;
                let reason = format!("nobody can tell whether task {guid} ran: no host answered");
                return Err(Error::Lost { reason });
            }
            if matches!(trouble, Trouble::Problem { status: 409, .. }) && !replaced {
                // The file has changed since it was begun.
                replaced = true;
                self.clear_away().await?;
                continue;
            }
            if trouble.passes() && !is_surely_undone(&trouble) {
                unsure_since.get_or_insert(began);
            }
            if *self.told.borrow() >= Told::End {
                return Ok(Created::Told { may_be_there: unsure_since.is_some() });
            }
            self.outage.wait(&trouble, &*self.output).await?;
        }
    }

    /// Removes a task of this name that does something else.
    async fn clear_away(&mut self) -> Result<(), Error> {
        let guid = self.guid();
        self.output.remark(&format!("task {guid} of the run before did something else: cancelled"));
        loop {
            let client = &self.shared.client;
            let cleared = async {
                match client.cancel_task(guid.as_str()).await {
                    Ok(()) | Err(Trouble::Problem { status: 409, .. }) => {}
                    Err(trouble) => return Err(trouble),
                }
                client.delete_task(guid.as_str()).await
            };
            match self.shared.ask(cleared).await {
                Ok(()) => return Ok(()),
                Err(trouble) if trouble.is_not_found() => return Ok(()),
                Err(trouble) => self.outage.wait(&trouble, &*self.output).await?,
            }
        }
    }

    /// Passes on what the task writes until it is over and all of it has come.
    async fn attend(&mut self, task: Task) -> Result<Task, Error> {
        let began = Instant::now();
        let (mut task, mut pause) = (task, FIRST_LOOK);
        while !is_over(&task) && began.elapsed() < SHORT {
            sleep(pause).await;
            pause *= 2;
            task = self.look().await?;
        }
        let mut is_whole = false;
        if !is_over(&task) {
            (task, is_whole) = self.follow().await?;
        }
        self.log.close();
        if !is_whole && task.cell_id.is_some() {
            self.read_rest().await;
        }
        Ok(task)
    }

    /// How the task stands.
    async fn look(&mut self) -> Result<Task, Error> {
        let guid = self.guid();
        loop {
            match self.shared.ask(self.shared.client.task(guid.as_str())).await {
                Ok(task) => {
                    self.outage.is_over(&*self.output);
                    return Ok(task);
                }
                Err(trouble) if trouble.is_not_found() => {
                    let reason = format!("task {guid} was deleted before its end was seen");
                    return Err(Error::Elsewhere { reason });
                }
                Err(trouble) => self.outage.wait(&trouble, &*self.output).await?,
            }
        }
    }

    /// Follows the log of a task that runs until it is over. Also tells whether the log came to its end by then.
    async fn follow(&mut self) -> Result<(Task, bool), Error> {
        let shared = Arc::clone(&self.shared);
        let guid = self.guid();
        let mut place = shared.streams.try_acquire().ok();
        let mut ended_at: Option<Instant> = None;
        let mut broken = false;
        let mut pause = FIRST_LOOK;
        let mut next_look = Instant::now() + if place.is_some() { LOOK } else { pause };
        loop {
            if place.is_none() {
                place = shared.streams.try_acquire().ok();
            }
            let reads = place.is_some() && ended_at.is_none() && !broken;
            let next = self.log.pass_on(&shared.client, &guid, true, &*self.output);
            tokio::select! {
                biased;
                passed = next, if reads => match passed {
                    Ok(true) => {
                        pause = FIRST_LOOK;
                        continue;
                    }
                    Ok(false) => ended_at = Some(Instant::now()),
                    Err(_) => broken = true,
                },
                () = sleep_until(next_look) => {
                    let task = self.look().await?;
                    if is_over(&task) {
                        return Ok((task, ended_at.is_some() && self.log.has_content()));
                    }
                    broken = false;
                    if ended_at.is_some_and(|at| at.elapsed() >= AFTERWARDS) {
                        ended_at = None;
                    }
                }
            }
            let quick = ended_at.is_some() || broken || place.is_none();
            next_look = Instant::now() + if quick { pause } else { LOOK };
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }

    /// Reads what was not followed of the log of a task that is over.
    async fn read_rest(&mut self) {
        let (shared, guid) = (Arc::clone(&self.shared), self.guid());
        let (log, output) = (&mut self.log, &self.output);
        let mut last = None;
        let read = async {
            loop {
                let all = async {
                    while log.pass_on(&shared.client, &guid, false, &**output).await? {}
                    Ok(())
                };
                match shared.ask(all).await {
                    Err(trouble) if trouble.is_not_found() => return Ok(()),
                    Err(trouble) if trouble.passes() => {
                        last = Some(trouble);
                        sleep(AGAIN).await;
                    }
                    done => return done,
                }
            }
        };
        let trouble = match timeout(REST, read).await {
            Ok(Ok(())) => None,
            Ok(Err(trouble)) => Some(trouble),
            Err(_) => last,
        };
        if let Some(trouble) = trouble {
            output.remark(&format!("the rest of its output is lost: {}", words(&trouble)));
        }
    }

    /// Cancels the task and waits until its processes are gone, or until nobody wants to wait any more.
    async fn cancel(&mut self) -> Ended {
        let told = self.told.clone();
        let mut asked = false;
        let gone = tokio::select! {
            biased;
            () = at_least(told, Told::Now) => false,
            () = self.see_off(&mut asked) => true,
        };
        if !(gone && asked) {
            self.let_go().await;
        }
        stopped()
    }

    /// Cancels the task if it can be done at once, and tells people to if it cannot.
    async fn let_go(&mut self) {
        if self.is_over {
            return;
        }
        let guid = &self.definition.task_guid;
        let cancelled = timeout(HASTE, self.shared.client.cancel_task(guid.as_str())).await;
        match cancelled {
            Ok(Ok(()) | Err(Trouble::Problem { status: 404 | 409, .. })) => {}
            Ok(Err(_)) | Err(_) => self.output.remark(&format!(
                "task {guid} could not be cancelled and may still run: `kapell task cancel {guid}` ends it"
            )),
        }
    }

    async fn see_off(&mut self, asked: &mut bool) {
        let (shared, guid) = (Arc::clone(&self.shared), self.guid());
        loop {
            match shared.ask(shared.client.cancel_task(guid.as_str())).await {
                Ok(()) | Err(Trouble::Problem { status: 409, .. }) => break,
                Err(trouble) if trouble.is_not_found() => {
                    *asked = true;
                    return;
                }
                Err(trouble) => {
                    if self.outage.wait(&trouble, &*self.output).await.is_err() {
                        return;
                    }
                }
            }
        }
        *asked = true;
        // The board lets go of it at once; its log ends with its last process.
        loop {
            match self.log.pass_on(&shared.client, &guid, true, &*self.output).await {
                Ok(true) => {}
                Err(trouble) if trouble.passes() => sleep(AGAIN).await,
                Ok(false) | Err(_) => return,
            }
        }
    }
}

const fn is_over(task: &Task) -> bool {
    match task.state {
        TaskState::Pending | TaskState::Running => false,
        TaskState::Completed | TaskState::Resolving => true,
    }
}

/// Whether a request that was not answered well cannot have had an effect.
const fn is_surely_undone(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Unreachable { .. } | Trouble::Problem { status: 429, .. })
}

/// How the process of a task ended. One that did not end by itself has a reason.
fn outcome(task: &Task) -> Result<Ended, Error> {
    let reason = &task.failure_reason;
    let exit = match task.exit_code {
        _ if !task.failed => Exit::Code(0),
        Some(code) if reason.starts_with(&format!("Exited with status {code}")) => Exit::Code(code),
        Some(code) if reason.starts_with(&format!("Killed by signal {} ", code - 128)) => {
            Exit::Signal(code - 128)
        }
        Some(_) | None => return Err(Error::Elsewhere { reason: reason.clone() }),
    };
    Ok(Ended { exit, lingering: None })
}
