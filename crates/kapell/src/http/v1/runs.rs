//! `/v1/runs`, and what the scheduler says of itself.

use std::sync::Arc;

use hyper::StatusCode;
use kapell_api::v1::{CancelWanted, RunView, WebhookDelivery};
use kapell_core::job::{JobRequest, NewRun};
use kapell_core::run::{RunId, RunState, StopKind, Trigger};
use kapell_core::seams::{Ids, Timestamp};

use super::super::answer::{self, Answer, Problem};
use super::super::desk::Desk;
use super::super::known;
use super::super::query::bad;
use super::super::scheduler::Scheduler;
use super::call::{Asked, Call, domain_of_job, intend_job, run_seen};
use super::jobs::{ask, made, name};
use super::jobs_look::{self, RunsWanted};
use super::lists::{items, seen};
use super::refusal::{missing, refused};

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

pub(super) async fn one(call: &Call) -> Answered {
    let run_id = call.run_seen()?;
    let found = jobs_look::whole_run(&*call.desk, call.scheduler.as_deref(), &run_id).await;
    let view = found.ok_or_else(|| missing("run", run_id.as_str()))?;
    Ok(answer::value(StatusCode::OK, &view))
}

pub(super) fn view(desk: &dyn Desk, run_id: &RunId) -> Result<RunView, Box<Problem>> {
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
    let now = call.wall;
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
        parameters: before.parameters.clone(),
    };
    let run_id = run.run_id.clone();
    ask(&*asked.desk, JobRequest::Trigger { job_id, run }).await?;
    Ok(run_id)
}

/// Which of these runs there are, as far as whoever asks may know.
pub(super) fn known(call: &Call) -> Answered {
    let asked = call.query.get("run_ids").unwrap_or_default();
    let run_ids = asked.split(',').map(|text| {
        RunId::parse(text).ok_or_else(|| bad(&format!("`{text}` is no id of a run"), "run_ids"))
    });
    let run_ids: Vec<RunId> = run_ids.collect::<Result<_, _>>()?;
    let mut found = known::of_board(&*call.desk, &run_ids);
    found.retain(|it| run_seen(&call.who, &*call.desk, it.run_id.as_str()).is_ok());
    Ok(answer::value(StatusCode::OK, &found))
}

pub(super) fn stats(call: &Call) -> Answered {
    Ok(answer::value(StatusCode::OK, &scheduler(call)?.stats()))
}

pub(super) fn deliveries(call: &Call) -> Answered {
    let seen = seen(call);
    let mut found: Vec<WebhookDelivery> = scheduler(call)?.deliveries();
    // Of a job that is gone only who has all domains still hears.
    let (job, run) = (call.query.get("job"), call.query.get("run"));
    found.retain(|it| {
        job.is_none_or(|job| it.job_id.as_str() == job)
            && run.is_none_or(|run| it.run_id.as_str() == run)
    });
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
