//! Waits for runs, and reads what they write.

use std::time::Duration;

use kapell_api::client::{Client, Error, Logs};
use kapell_api::v1::{EventView, LogQuery, RunView};
use kapell_core::board::Event;
use kapell_core::log::{Frame, Mark};
use kapell_core::run::{Ending, Run, RunState};
use tokio::time::{sleep, timeout};

use super::FAILED;
use super::follower::Follower;
use super::sink::Sink;
use crate::logger::style::clean;
use crate::say;

/// Between two looks at a run, should an event be missed.
const LOOK: Duration = Duration::from_secs(2);
/// Between two tries to read on.
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until a run has ended, and tells of every state that it rests in on the way.
pub(crate) async fn attend(
    client: &Client,
    mut follower: Follower,
    run_id: &str,
) -> Result<RunView, Error> {
    let mut last = client.run(run_id).await?;
    let mut told = None;
    while !last.run.state.is_final() {
        let stands = (last.run.state, last.run.attempt, last.run.reason.clone());
        if told.as_ref() != Some(&stands) {
            tell(&last.run);
            told = Some(stands);
        }
        // Any event may be missed; what stands counts.
        let news = async {
            loop {
                let event = follower.next().await?;
                if concerns(&event, run_id) {
                    return Ok::<_, Error>(());
                }
            }
        };
        if let Ok(news) = timeout(LOOK, news).await {
            news?;
        }
        match client.run(run_id).await {
            Ok(view) => last = view,
            Err(error) if error.passes() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(last)
}

/// What holds a run up is told; that it goes its way is not.
fn tell(run: &Run) {
    match run.state {
        RunState::Pending
        | RunState::ConditionPending
        | RunState::ConditionRunning
        | RunState::ActionPending
        | RunState::ActionRunning
        | RunState::Terminating
        | RunState::Retrying => {
            let why = clean(&run.reason);
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            say(&format!("run {} is {}{why}\n", run.run_id, run.state.name()));
        }
        RunState::PreRun
        | RunState::ContainerCreating
        | RunState::Running
        | RunState::Completed
        | RunState::Failed
        | RunState::Cancelled
        | RunState::Orphaned => {}
    }
}

/// Whether an event may have changed a run.
fn concerns(event: &EventView, run_id: &str) -> bool {
    match &event.event {
        Some(Event::Run(change)) => {
            let run = change.after.as_deref().or(change.before.as_deref());
            run.is_some_and(|run| run.run_id.as_str() == run_id)
        }
        Some(
            Event::DesiredLrp(_)
            | Event::ActualLrp(_)
            | Event::ActualLrpCrashed(_)
            | Event::Task(_)
            | Event::Domain(_)
            | Event::Job(_)
            | Event::Cell { .. },
        ) => false,
        // Events were lost.
        None => true,
    }
}

/// The outcome of a run is our exit code: that of its work if it failed with one.
pub(crate) fn conclude(run: &Run) -> u8 {
    let told = |what: &str| {
        let why = clean(&run.reason);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        say(&format!("run {} {what}{why}\n", run.run_id));
        FAILED
    };
    match run.state.ending() {
        Some(Ending::Completed) => 0,
        Some(Ending::Failed) => match run.exit_code.and_then(|code| u8::try_from(code).ok()) {
            Some(code @ 1..) => {
                told("failed");
                code
            }
            Some(0) | None => told("failed"),
        },
        Some(Ending::Cancelled) => told("was cancelled"),
        Some(Ending::Orphaned) => told("is orphaned"),
        None => told("has not ended"),
    }
}

/// Writes the log of a run: of an attempt, of its last, or with `follow` of one after the other until it ends.
pub(crate) async fn pour(
    client: &Client,
    run_id: &str,
    attempt: Option<u32>,
    follow: bool,
    tail: Option<u64>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut view = client.run(run_id).await?;
    let mut at = attempt.unwrap_or(view.run.attempt);
    loop {
        let mut log = AttemptLog::new(client, run_id, at, follow, tail);
        if !log.pour(sink).await? {
            return Ok(());
        }
        if !follow {
            break;
        }
        // The attempt is over: the next one, if there is one, or the end.
        loop {
            view = client.run(run_id).await?;
            if view.run.attempt > at || view.run.state.is_final() {
                break;
            }
            sleep(PAUSE).await;
        }
        if view.run.attempt <= at {
            break;
        }
        at += 1;
    }
    // Nobody may be reading any more.
    let _written = sink.end();
    Ok(())
}

/// The log of an attempt, read on where it was when the connection broke.
struct AttemptLog<'a> {
    client: &'a Client,
    run_id: &'a str,
    attempt: u32,
    query: LogQuery,
    stream: Option<Logs>,
    mark: Mark,
}

impl<'a> AttemptLog<'a> {
    fn new(
        client: &'a Client,
        run_id: &'a str,
        attempt: u32,
        follow: bool,
        tail: Option<u64>,
    ) -> Self {
        let mark = if tail.is_some() { Mark::of_tail() } else { Mark::default() };
        let query = LogQuery { follow, tail, ..LogQuery::default() };
        Self { client, run_id, attempt, query, stream: None, mark }
    }

    /// Writes it to its end. False if nobody reads it any more.
    async fn pour(&mut self, sink: &mut Sink) -> Result<bool, Error> {
        loop {
            match self.next().await {
                Ok(Some(frame)) => {
                    if self.mark.is_news(&frame) && sink.take(&frame).is_err() {
                        return Ok(false);
                    }
                }
                Ok(None) => return Ok(true),
                // Its work may be still to come.
                Err(error) if error.is_not_found() && self.query.follow => {
                    let run = self.client.run(self.run_id).await?.run;
                    if run.state.is_final() || run.attempt > self.attempt {
                        return Ok(true);
                    }
                    sleep(PAUSE).await;
                }
                Err(error) if error.passes() && self.query.follow => {
                    self.stream = None;
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn next(&mut self) -> Result<Option<Frame>, Error> {
        if let Some(stream) = &mut self.stream {
            return stream.next().await;
        }
        let tail = self.query.tail.filter(|_| self.mark.is_new());
        let query = LogQuery { tail, ..self.query };
        let stream = self.client.run_logs(self.run_id, Some(self.attempt), query).await?;
        self.mark.restart();
        self.stream.insert(stream).next().await
    }
}
