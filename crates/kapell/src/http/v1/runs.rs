//! `/v1/runs`, and what the scheduler says of itself.

use std::sync::Arc;

use hyper::StatusCode;
use kapell_api::v1::{CancelWanted, LogQuery, RunView, WebhookDelivery};
use kapell_core::board::TaskGuid;
use kapell_core::job::{JobRequest, NewRun, Payload};
use kapell_core::run::{RunId, RunState, StopKind, Trigger, task_guid};
use kapell_core::seams::{Ids, Timestamp};
use kapell_node::cell::ContainerLogs;
use tokio::task::spawn_blocking;

use super::super::answer::{self, Answer, Problem};
use super::super::body::Body;
use super::super::cell::{Files, Reading};
use super::super::desk::{Desk, look};
use super::super::query::bad;
use super::super::scheduler::Scheduler;
use super::call::{Asked, Call, domain_of_job, intend_job, run_seen};
use super::jobs::{ask, definition, made, name};
use super::jobs_look::{self, RunsWanted};
use super::lists::{items, seen};
use super::logs::{Formatter, LogSource, query};
use super::refusal::{missing, refused};
use super::upstream::Upstream;

type Answered = Result<Answer, Box<Problem>>;

/// So many runs are listed when nobody says how many, and at most.
const RUNS: usize = 100;
const MOST_RUNS: usize = 10_000;

pub(super) fn list(call: &Call) -> Answered {
    let seen = seen(call);
    let limit = call.query.number("limit")?.unwrap_or(RUNS);
    if !(1..=MOST_RUNS).contains(&limit) {
        return Err(bad(&format!("`limit` is between 1 and {MOST_RUNS}, not {limit}"), "limit"));
    }
    let active = match call.query.get("active") {
        Some(_) => Some(call.query.switch("active")?),
        None => None,
    };
    let wanted = RunsWanted {
        job: call.filter("job"),
        state: call.query.get("state").map(state).transpose()?,
        active,
        domain: call.filter("domain"),
        before: call.query.number("before")?.map(Timestamp),
        limit,
    };
    let found = jobs_look::runs(&*call.desk, &wanted, |domain| call.sees(domain));
    Ok(items(call, &seen, found))
}

/// A state by its name, however it is written.
pub(crate) fn state_named(text: &str) -> Option<RunState> {
    RunState::ALL.into_iter().find(|state| state.name().eq_ignore_ascii_case(text))
}

fn state(text: &str) -> Result<RunState, Box<Problem>> {
    state_named(text).ok_or_else(|| {
        let names = RunState::ALL.map(RunState::name).join(", ");
        bad(&format!("`{text}` is no state of a run: {names}"), "state")
    })
}

pub(super) fn one(call: &Call) -> Answered {
    let run_id = call.run_seen()?;
    shown(&*call.desk, &run_id)
}

fn view(desk: &dyn Desk, run_id: &RunId) -> Result<RunView, Box<Problem>> {
    jobs_look::run(desk, run_id).ok_or_else(|| missing("run", run_id.as_str()))
}

fn shown(desk: &dyn Desk, run_id: &RunId) -> Answered {
    Ok(answer::value(StatusCode::OK, &view(desk, run_id)?))
}

pub(super) async fn cancel(call: Call) -> Answered {
    let (wanted, asked) = call.json_if_any::<CancelWanted>().await?;
    cancel_with(&asked, wanted.unwrap_or_default()).await?;
    shown(&*asked.desk, &run_of(&asked)?)
}

pub(super) async fn cancel_with(asked: &Asked, wanted: CancelWanted) -> Result<(), Box<Problem>> {
    let run_id = run_of(asked)?;
    intend_job(&asked.note, &*asked.desk, &run_id.job_id()).await?;
    let kind = if wanted.at_once { StopKind::AtOnce } else { StopKind::Graceful };
    let why = format!("cancelled by {}", name(&asked.who));
    ask(&*asked.desk, JobRequest::Cancel { run_id, kind, why }).await.map(drop)
}

fn run_of(asked: &Asked) -> Result<RunId, Box<Problem>> {
    run_seen(&asked.who, &*asked.desk, asked.params.get("run_id"))
}

pub(super) async fn retry(call: Call, ids: &dyn Ids) -> Answered {
    let now = call.now;
    let asked = call.without_body();
    let run_id = retry_with(&asked, ids, now).await?;
    Ok(made(&*asked.desk, &run_id))
}

/// Has an ended run done once more, and tells as what run.
pub(super) async fn retry_with(
    asked: &Asked,
    ids: &dyn Ids,
    now: Timestamp,
) -> Result<RunId, Box<Problem>> {
    let of = run_of(asked)?;
    let before = view(&*asked.desk, &of)?.run;
    if !before.state.is_final() {
        let state = before.state.name();
        let text = format!("run `{of}` is {state}: cancel it, or wait for its end");
        return Err(refused(&kapell_core::board::Refusal::State { text }));
    }
    let job_id = of.job_id();
    // Its job may be of another domain by now.
    if domain_of_job(&*asked.desk, &job_id).is_none_or(|domain| domain != before.domain) {
        return Err(missing("job", job_id.as_str()));
    }
    intend_job(&asked.note, &*asked.desk, &job_id).await?;
    let run = NewRun {
        run_id: RunId::asked_for(&job_id, before.scheduled_at, ids.draw()),
        scheduled_at: before.scheduled_at,
        due_at: now,
        trigger: Trigger::Retry { of, who: name(&asked.who) },
        parameters: before.parameters,
    };
    let run_id = run.run_id.clone();
    ask(&*asked.desk, JobRequest::Trigger { job_id, run }).await?;
    Ok(run_id)
}

/// What an attempt wrote: as this host keeps it or, while it is a task on a cell, as that cell has it.
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
        return super::logs::relay(call, LogSource::Task(guid), upstream).await;
    }
    // Work that wrote nothing has left no files.
    let is_empty = run.started_at.is_some() && attempt == run.attempt;
    let Some((scheduler, _)) = kept.filter(|_| is_there || is_empty || wanted.follow) else {
        return Err(missing("log of run", &format!("{run_id}, attempt {attempt}")));
    };
    let place = wanted.follow.then(|| upstream.tools.stream()).transpose()?;
    let desk = Arc::clone(&call.desk);
    let log = RunLog { desk, scheduler, run_id, attempt };
    Ok(send(log, wanted, place))
}

fn send(log: RunLog, wanted: LogQuery, place: Option<tokio::sync::OwnedSemaphorePermit>) -> Answer {
    let LogQuery { follow, tail, format } = wanted;
    let mut format = Formatter::new(format);
    let kind = hyper::header::HeaderValue::from_static(format.content_type());
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

/// The log of an attempt in the files of this host.
struct RunLog {
    desk: Arc<dyn Desk>,
    scheduler: Arc<dyn Scheduler>,
    run_id: RunId,
    attempt: u32,
}

impl Files for RunLog {
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

    fn logs(&self) -> Vec<ContainerLogs> {
        self.scheduler.log(&self.run_id, self.attempt).into_iter().collect()
    }

    fn ends(&self) -> bool {
        true
    }
}

pub(super) fn stats(call: &Call) -> Answered {
    Ok(answer::value(StatusCode::OK, &scheduler(call)?.stats()))
}

pub(super) fn deliveries(call: &Call) -> Answered {
    let seen = seen(call);
    let mut found: Vec<WebhookDelivery> = scheduler(call)?.deliveries();
    // Of a job that is gone only who has all domains still hears.
    found.retain(|it| match domain_of_job(&*call.desk, &it.job_id) {
        Some(domain) => call.sees(&domain),
        None => call.who.domains.is_all(),
    });
    Ok(items(call, &seen, found))
}

fn scheduler(call: &Call) -> Result<&Arc<dyn Scheduler>, Box<Problem>> {
    call.scheduler.as_ref().ok_or_else(|| {
        let text = "this host leads but has not begun to schedule yet";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "starting", text).passing()
    })
}
