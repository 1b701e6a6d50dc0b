//! What runs wrote, wherever it lies: on this host, on one that led before, or on a cell.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use kapell_api::v1::LogQuery;
use kapell_core::board::TaskGuid;
use kapell_core::job::Payload;
use kapell_core::run::{Run, RunId, RunState, task_guid};
use kapell_node::cell::ContainerLogs;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::super::answer::{self, Answer, Problem};
use super::super::body::{Body, Gone, Pipe};
use super::super::cell::{Files, Reading};
use super::super::desk::{Desk, look};
use super::super::host_logs;
use super::super::scheduler::Scheduler;
use super::call::Call;
use super::jobs::definition;
use super::logs::{Formatter, LogSource, pass, query};
use super::refusal::missing;
use super::runs::view;
use super::upstream::{Opened, Peer, Upstream};

type Answered = Result<Answer, Box<Problem>>;

/// How often it is seen whether an attempt is over whose log lies elsewhere.
const LOOK: Duration = Duration::from_millis(250);

/// What an attempt wrote: as this host keeps it, as another host does that led it or, while it is a task on a cell, as
/// that cell has it.
pub(super) async fn logs(call: &Call, upstream: &Arc<Upstream>) -> Answered {
    let run_id = call.run_seen()?;
    let run = view(&*call.desk, &run_id)?.run;
    let attempt: u32 = call.query.number("attempt")?.unwrap_or(run.attempt);
    if attempt > run.attempt {
        let text = format!("{run_id}, attempt {attempt}");
        return Err(missing("log of run", &text));
    }
    let wanted = query(&call.query)?;
    let kept = kept(call.scheduler.clone(), &run_id, attempt).await;
    let is_there = kept.as_ref().is_some_and(|(_, logs)| logs.is_some());
    if !is_there && is_task(&*call.desk, &run_id) {
        let guid: TaskGuid = task_guid(&run_id, attempt);
        let of_cell = super::logs::relay(call, LogSource::Task(guid), upstream).await;
        // It may be over, and what it wrote with the host that led then.
        if of_cell.is_ok() || run.log_hosts.is_empty() {
            return of_cell;
        }
    }
    let place = wanted.follow.then(|| upstream.tools.stream()).transpose()?;
    let live = Live { desk: Arc::clone(&call.desk), run_id: run_id.clone(), attempt };
    if !is_there {
        match elsewhere(&run, attempt, wanted, upstream).await {
            Ok(Some(opened)) => return Ok(relay(opened, live, wanted, place)),
            // This attempt may be about to write here; what is away was of an earlier one.
            Err(_) if wanted.follow && kept.is_some() && live.is_live() => {}
            Err(problem) => return Err(problem),
            Ok(None) => {}
        }
    }
    // Work that wrote nothing has left no files.
    let is_empty = run.started_at.is_some() && attempt == run.attempt;
    let Some((scheduler, _)) = kept.filter(|_| is_there || is_empty || wanted.follow) else {
        return Err(missing("log of run", &format!("{run_id}, attempt {attempt}")));
    };
    Ok(send(RunLog { live, scheduler }, wanted, place))
}

/// Asks the hosts that led the run, the last one first. One that has nothing of it has told so; if none has it, one that
/// does not answer may.
async fn elsewhere(
    run: &Run,
    attempt: u32,
    wanted: LogQuery,
    upstream: &Upstream,
) -> Result<Option<Opened>, Box<Problem>> {
    let path = host_logs::path(&run.run_id, attempt, wanted.follow, wanted.tail);
    let mut trouble = None;
    for host in run.log_hosts.iter().rev() {
        match upstream.open(Peer::Host(host), &path).await {
            Ok(Some(opened)) => return Ok(Some(opened)),
            Ok(None) => {}
            Err(problem) => {
                let why = format!("the log lies with host {host}, which does not answer: ");
                trouble.get_or_insert(problem.about(&why));
            }
        }
    }
    trouble.map_or(Ok(None), Err)
}

/// Passes on what another host has, for as long as more may come.
fn relay(
    mut opened: Opened,
    live: Live,
    wanted: LogQuery,
    place: Option<OwnedSemaphorePermit>,
) -> Answer {
    let mut format = Formatter::new(wanted.format);
    let kind = HeaderValue::from_static(format.content_type());
    let body = Body::fed(move |pipe| async move {
        let _left: Result<(), Gone> = async {
            pipe.send(format.begin()).await?;
            pour(&pipe, &mut opened, &live, &mut format).await?;
            pipe.send(format.end()).await
        }
        .await;
        drop(place);
    });
    answer::stream(kind, body)
}

async fn pour(
    pipe: &Pipe,
    opened: &mut Opened,
    live: &Live,
    format: &mut Formatter,
) -> Result<(), Gone> {
    loop {
        // Asked first: what was written before the end is there to be read.
        let is_live = live.is_live();
        let next = async {
            tokio::select! {
                biased;
                bytes = opened.next() => Some(bytes),
                () = sleep(LOOK) => None,
            }
        };
        match pipe.meanwhile_if(format.beats(), next).await? {
            Some(Some(bytes)) => pass(pipe, format, bytes).await?,
            Some(None) => return Ok(()),
            None if !is_live => return Ok(()),
            None => {}
        }
    }
}

fn send(log: RunLog, wanted: LogQuery, place: Option<OwnedSemaphorePermit>) -> Answer {
    let LogQuery { follow, tail, format } = wanted;
    let mut format = Formatter::new(format);
    let kind = HeaderValue::from_static(format.content_type());
    let reading = Reading::of(Arc::new(log), format.beats());
    let body = Body::fed(move |pipe| async move {
        if pipe.send(format.begin()).await.is_err() {
            return;
        }
        let end = format.end();
        if reading.tell(&pipe, follow, tail, |bytes| format.take(&bytes)).await {
            let _read = pipe.send(end).await;
        }
        drop(place);
    });
    answer::stream(kind, body)
}

/// What this host keeps of an attempt.
async fn kept(
    scheduler: Option<Arc<dyn Scheduler>>,
    run_id: &RunId,
    attempt: u32,
) -> Option<(Arc<dyn Scheduler>, Option<ContainerLogs>)> {
    let scheduler = scheduler?;
    let run_id = run_id.clone();
    let look = move || {
        let logs = scheduler.log(&run_id, attempt);
        (scheduler, logs)
    };
    spawn_blocking(look).await.ok()
}

fn is_task(desk: &dyn Desk, run_id: &RunId) -> bool {
    let definition = definition(desk, &run_id.job_id());
    definition.is_ok_and(|it| matches!(it.payload(), Some(Payload::Task(_))))
}

/// An attempt that may still write.
struct Live {
    desk: Arc<dyn Desk>,
    run_id: RunId,
    attempt: u32,
}

impl Live {
    /// While its attempt is the last one and the run has not ended or waits for another.
    fn is_live(&self) -> bool {
        look(&*self.desk, self.run_id.job(), |records| {
            records.runs.get(&self.run_id).is_some_and(|run| {
                run.attempt == self.attempt
                    && !run.state.is_final()
                    && run.state != RunState::Retrying
            })
        })
        .unwrap_or(false)
    }
}

/// The log of an attempt in the files of this host.
struct RunLog {
    live: Live,
    scheduler: Arc<dyn Scheduler>,
}

impl Files for RunLog {
    fn is_live(&self) -> bool {
        self.live.is_live()
    }

    fn logs(&self) -> Vec<ContainerLogs> {
        self.scheduler.log(&self.live.run_id, self.live.attempt).into_iter().collect()
    }

    fn ends(&self) -> bool {
        true
    }
}
