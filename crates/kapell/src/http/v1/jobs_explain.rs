//! Why jobs and runs are as they are.

use hyper::StatusCode;
use kapell_api::v1::Explanation;
use kapell_core::board::{JobId, Records};
use kapell_core::job::explain::{self as rules, Decision, Explained, JobFacts};
use kapell_core::job::{advice, when};
use kapell_core::run::{Run, RunId};
use kapell_core::schedule::Schedule;
use kapell_core::seams::Timestamp;

use super::super::answer::{self, Answer, Problem};
use super::super::desk::{Desk, look};
use super::super::query::bad;
use super::call::Call;
use super::jobs::definition;
use super::jobs_look;
use super::refusal::missing;

/// By what rule a job runs or does not.
const MOMENTS: &str = "schedule: each moment becomes a run or comes to nothing, once";
/// By what rule a run goes on.
const STEPS: &str = "run: a run goes on as its table of states says";

/// Explains a job, or what became of its moment at a time.
pub(crate) fn explain_job(
    desk: &dyn Desk,
    job_id: &JobId,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Option<Explanation> {
    let explain = |records: &Records| {
        let (job, definition) = records.job(job_id)?;
        let runs: Vec<&Run> = records.runs_of(job_id).collect();
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

fn explain_run(desk: &dyn Desk, run_id: &RunId) -> Option<Explanation> {
    let view = jobs_look::run(desk, run_id)?;
    let definition = definition(desk, &view.job_id).ok();
    Some(Explanation {
        subject: format!("run/{run_id}"),
        summary: format!("run `{run_id}` {}", rules::outcome(&view.run)),
        rule: STEPS.to_owned(),
        facts: rules::of_run(&view.run).iter().map(|it| fact(it, &view.timezone)).collect(),
        inputs: definition.map(|it| advice::inputs(&it)).unwrap_or_default(),
        remedies: advice::of_run(&view.run),
        next_try_at: view.run.retry_at,
    })
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

pub(super) fn run(call: &Call) -> Result<Answer, Box<Problem>> {
    let run_id = call.run_seen()?;
    let explained = explain_run(&*call.desk, &run_id);
    let explained = explained.ok_or_else(|| missing("run", run_id.as_str()))?;
    Ok(answer::value(StatusCode::OK, &explained))
}
