//! Why jobs and runs are as they are.

use std::borrow::Cow;
use std::sync::Arc;

use hyper::StatusCode;
use kapell_api::v1::{Explanation, RunLive, RunTimer, RunView};
use kapell_core::board::{JobId, Records};
use kapell_core::job::explain::{self as rules, Decision, Explained, JobFacts};
use kapell_core::job::{JobDefinition, advice, when};
use kapell_core::run::{Doing, Run, RunId};
use kapell_core::schedule::Schedule;
use kapell_core::seams::Timestamp;
use kapell_node::board::Sights;

use super::super::answer::{self, Answer, Problem};
use super::super::desk::{Desk, look};
use super::super::query::bad;
use super::super::scheduler::Scheduler;
use super::call::Call;
use super::jobs::definition;
use super::jobs_look;
use super::refusal::missing;

/// By what rule a job runs or does not.
const MOMENTS: &str = "schedule: each moment becomes a run or comes to nothing, once";
/// So many runs of a job are looked at to explain it.
const MOST_RUNS: usize = 1_000;
/// By what rule a run goes on.
const STEPS: &str = "run: a run goes on as its table of states says";

/// Explains a job, or what became of its moment at a time.
pub(crate) fn explain_job(
    desk: &dyn Desk,
    job_id: &JobId,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Option<Explanation> {
    let sights = desk.sights();
    let explain = |records: &Records| {
        let (job, definition) = records.job(job_id)?;
        let runs = looked_at(records, &sights, job_id, at);
        let runs: Vec<&Run> = runs.iter().map(AsRef::as_ref).collect();
        let facts = JobFacts { job, definition, stands: records.stands(job), runs: &runs };
        let schedule = Schedule::of(definition).ok()?;
        let explained = match at {
            Some(at) => rules::at(&facts, &schedule, at, now),
            None => rules::job(&facts, &schedule, now),
        };
        let Explained { summary, decisions, next } = explained;
        Some(Explanation {
            subject: format!("job/{job_id}"),
            summary,
            rule: MOMENTS.to_owned(),
            facts: decisions.iter().map(|it| fact(it, &definition.timezone)).collect(),
            inputs: advice::inputs(definition),
            remedies: advice::of_job(job, definition),
            next_try_at: next,
        })
    };
    look(desk, job_id.as_str(), explain).flatten()
}

/// The runs of a job that are looked at, each as it stands: the newest, or those from a moment on.
fn looked_at<'a>(
    records: &'a Records,
    sights: &Sights,
    job_id: &JobId,
    at: Option<Timestamp>,
) -> Vec<Cow<'a, Run>> {
    let all = records.runs_of(job_id);
    let mut runs: Vec<&Run> = match at {
        Some(at) => {
            let from = Timestamp(at.0.saturating_sub(1_000));
            all.filter(|run| run.scheduled_at >= from).take(MOST_RUNS).collect()
        }
        None => all.rev().take(MOST_RUNS).collect(),
    };
    if at.is_none() {
        runs.reverse();
    }
    let seen = |run: &'a Run| {
        let sight = sights.get(&run.run_id).filter(|sight| sight.is_ahead_of(run));
        sight.map_or(Cow::Borrowed(run), |sight| {
            let mut run = run.clone();
            sight.put_over(&mut run);
            Cow::Owned(run)
        })
    };
    runs.into_iter().map(seen).collect()
}

async fn explain_run(
    desk: &dyn Desk,
    scheduler: Option<&dyn Scheduler>,
    run_id: &RunId,
    now: Timestamp,
) -> Option<Explanation> {
    let view = jobs_look::whole_run(desk, scheduler, run_id).await?;
    let definition = definition_of(desk, &view.run);
    let decisions = rules::of_run(&view.run, definition.as_deref());
    let mut facts: Vec<String> = decisions.iter().map(|it| fact(it, &view.timezone)).collect();
    facts.extend(view.live.iter().flat_map(|live| stands(live, &view, now)));
    Some(Explanation {
        subject: format!("run/{run_id}"),
        summary: format!("run `{run_id}` {}", rules::outcome(&view.run)),
        rule: STEPS.to_owned(),
        facts,
        inputs: definition.map(|it| advice::inputs(&it)).unwrap_or_default(),
        remedies: advice::of_run(&view.run),
        next_try_at: view.run.retry_at,
    })
}

/// The definition that a run goes by; another one would tell of deadlines and limits that it never had.
fn definition_of(desk: &dyn Desk, run: &Run) -> Option<Arc<JobDefinition>> {
    let job_id = run.run_id.job_id();
    let of = look(desk, job_id.as_str(), |records| {
        records.definition(&job_id, run.revision).map(Arc::clone)
    });
    of.flatten()
}

/// What is so now, for how long, and what happens next by the clock.
fn stands(live: &RunLive, view: &RunView, now: Timestamp) -> Vec<String> {
    let long = |since: Timestamp| format!("for {:.0} s", now.since(since).as_secs_f64());
    let state = view.run.state;
    let mut facts =
        vec![format!("now: {} {}: {}", state.name(), long(live.since), state.meaning())];
    if let Some(Doing { what, since }) = &live.doing {
        facts.push(format!("now: {what}, {}", long(*since)));
    }
    if let Some(RunTimer { what, at }) = &live.timer {
        facts.push(format!("next: {what} at {}", when::show(*at, &view.timezone)));
    }
    if let Some(beats) = live.heartbeats {
        facts.push(format!("signs of life so far: {beats}"));
    }
    facts
}

fn fact(decision: &Decision, timezone: &str) -> String {
    let at = when::show(decision.at, timezone);
    format!("{at} {}: {}", decision.about.name(), decision.text)
}

pub(super) fn job(call: &Call) -> Result<Answer, Box<Problem>> {
    let job_id = call.job_seen()?;
    let at = match call.query.get("at") {
        Some(text) => {
            let zone = &definition(&*call.desk, &job_id)?.timezone;
            Some(when::read(text, zone, call.wall).map_err(|why| bad(&why, "at"))?)
        }
        None => None,
    };
    let explained = explain_job(&*call.desk, &job_id, at, call.wall);
    let explained = explained.ok_or_else(|| missing("job", job_id.as_str()))?;
    Ok(answer::value(StatusCode::OK, &explained))
}

pub(super) async fn run(call: &Call) -> Result<Answer, Box<Problem>> {
    let run_id = call.run_seen()?;
    let scheduler = call.scheduler.as_deref();
    let explained = explain_run(&*call.desk, scheduler, &run_id, call.now).await;
    let explained = explained.ok_or_else(|| missing("run", run_id.as_str()))?;
    Ok(answer::value(StatusCode::OK, &explained))
}
