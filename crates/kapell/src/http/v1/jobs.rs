//! `/v1/jobs`

use std::collections::BTreeMap;
use std::sync::Arc;

use arcstr::ArcStr;
use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use kapell_api::v1::{JobView, NextMoment, NextMoments, PauseWanted, TriggerWanted};
use kapell_core::access::Who;
use kapell_core::board::{Domain, JobId, Reply, Request};
use kapell_core::job::explain::{self, JobFacts, clock_change};
use kapell_core::job::{Job, JobDefinition, JobRequest, NewRun, PauseCause, params};
use kapell_core::run::{RunId, Trigger};
use kapell_core::schedule::{Moments as _, Schedule};
use kapell_core::seams::{Ids, Timestamp};

use super::super::answer::{self, Answer, Problem};
use super::super::desk::{Desk, look};
use super::super::query::bad;
use super::call::{Asked, Call, intend_job, job_seen};
use super::jobs_look;
use super::lists::{items, seen};
use super::refusal::{declined, missing, refused};

type Answered = Result<Answer, Box<Problem>>;

/// So many moments are told when nobody says how many, and at most.
const MOMENTS: u32 = 20;
const MOST_MOMENTS: u32 = 1_000;

#[expect(clippy::unnecessary_wraps, reason = "it is a route like the others")]
pub(super) fn list(call: &Call) -> Answered {
    let seen = seen(call);
    let domain: Option<Domain> = call.filter("domain");
    let tag = call.query.get("tag");
    let wanted = |job: &Job, definition: &JobDefinition| {
        domain.as_ref().is_none_or(|domain| job.domain == *domain)
            && tag.is_none_or(|tag| definition.tags.iter().any(|it| it == tag))
            && call.sees(&job.domain)
    };
    Ok(items(call, &seen, jobs_look::jobs(&*call.desk, call.wall, wanted)))
}

pub(super) fn one(call: &Call) -> Answered {
    let job_id = call.job_seen()?;
    shown(&*call.desk, &job_id, call.wall)
}

fn shown(desk: &dyn Desk, job_id: &JobId, now: Timestamp) -> Answered {
    let found = jobs_look::job(desk, job_id, now);
    let view: JobView = found.ok_or_else(|| missing("job", job_id.as_str()))?;
    Ok(answer::value(StatusCode::OK, &view))
}

pub(super) async fn remove(call: Call) -> Answered {
    let job_id = call.job_seen()?;
    let cancel_runs = call.query.switch("cancel_runs")?;
    intend_job(&call.note, &*call.desk, &job_id).await?;
    ask(&*call.desk, JobRequest::Remove { job_id, cancel_runs }).await?;
    Ok(answer::nothing())
}

pub(super) async fn pause(call: Call) -> Answered {
    let now = call.wall;
    let (wanted, asked) = call.json_if_any::<PauseWanted>().await?;
    pause_with(&asked, wanted.unwrap_or_default()).await?;
    shown(&*asked.desk, &job_of(&asked)?, now)
}

pub(super) async fn pause_with(asked: &Asked, wanted: PauseWanted) -> Result<(), Box<Problem>> {
    let job_id = job_of(asked)?;
    intend_job(&asked.note, &*asked.desk, &job_id).await?;
    let cause = PauseCause::Person { who: name(&asked.who).to_string() };
    ask(&*asked.desk, JobRequest::Pause { job_id, cause, note: wanted.note }).await.map(drop)
}

pub(super) async fn resume(call: Call) -> Answered {
    let job_id = call.job_seen()?;
    intend_job(&call.note, &*call.desk, &job_id).await?;
    ask(&*call.desk, JobRequest::Resume { job_id: job_id.clone() }).await?;
    shown(&*call.desk, &job_id, call.wall)
}

pub(super) async fn trigger(call: Call, ids: &dyn Ids) -> Answered {
    let now = call.wall;
    let (wanted, asked) = call.json_if_any::<TriggerWanted>().await?;
    let run_id = trigger_with(&asked, wanted.unwrap_or_default(), ids, now).await?;
    Ok(made(&*asked.desk, &run_id))
}

/// Has a job run now, and tells as what run.
pub(super) async fn trigger_with(
    asked: &Asked,
    wanted: TriggerWanted,
    ids: &dyn Ids,
    now: Timestamp,
) -> Result<RunId, Box<Problem>> {
    let job_id = job_of(asked)?;
    let definition = definition(&*asked.desk, &job_id)?;
    let parameters = resolved(&definition, &wanted.parameters)?;
    intend_job(&asked.note, &*asked.desk, &job_id).await?;
    let run = NewRun {
        run_id: RunId::asked_for(&job_id, now, ids.draw()),
        scheduled_at: now,
        due_at: now,
        trigger: Trigger::Manual { who: name(&asked.who) },
        parameters,
    };
    let run_id = run.run_id.clone();
    asked.note.about("run_id", run_id.as_str());
    ask(&*asked.desk, JobRequest::Trigger { job_id, run }).await?;
    Ok(run_id)
}

pub(super) fn next(call: &Call) -> Answered {
    let job_id = call.job_seen()?;
    let count: u32 = call.query.number("n")?.unwrap_or(MOMENTS);
    if !(1..=MOST_MOMENTS).contains(&count) {
        return Err(bad(&format!("`n` is between 1 and {MOST_MOMENTS}, not {count}"), "n"));
    }
    let definition = definition(&*call.desk, &job_id)?;
    let schedule = schedule(&definition)?;
    let mut next = coming(&definition, &schedule, call.wall, count);
    next.hold = look(&*call.desk, job_id.as_str(), |records| {
        let (job, definition) = records.job(&job_id)?;
        let facts = JobFacts { job, definition, stands: records.stands(job), runs: &[] };
        explain::held(&facts)
    })
    .flatten();
    Ok(answer::value(StatusCode::OK, &next))
}

/// The next moments of a schedule, excluded or not.
pub(crate) fn coming(
    definition: &JobDefinition,
    schedule: &Schedule,
    now: Timestamp,
    count: u32,
) -> NextMoments {
    let mut moments = Vec::new();
    let mut at = now;
    while moments.len() < count as usize
        && let Some(next) = schedule.next_after(at)
    {
        at = next.at;
        moments.push(NextMoment {
            at,
            due_at: schedule.put_off(at),
            excluded: next.excluded,
            clock_change: next.change.map(|change| clock_change(change).to_owned()),
        });
    }
    let of_file = definition.suspend.then(|| "the job is suspended".to_owned());
    NextMoments { timezone: definition.timezone.clone(), hold: of_file, moments }
}

/// A run that was made, and where it is.
pub(super) fn made(desk: &dyn Desk, run_id: &RunId) -> Answer {
    // It may be gone again already.
    let Some(view) = jobs_look::run(desk, run_id) else { return answer::nothing() };
    let mut answer = answer::value(StatusCode::CREATED, &view);
    if let Ok(place) = HeaderValue::try_from(format!("/v1/runs/{run_id}")) {
        answer.headers_mut().insert(LOCATION, place);
    }
    answer
}

pub(super) fn job_of(asked: &Asked) -> Result<JobId, Box<Problem>> {
    job_seen(&asked.who, &*asked.desk, asked.params.get("job_id"))
}

/// Who did it, for those who read it later.
pub(super) fn name(who: &Who) -> ArcStr {
    if who.name.is_empty() { who.role.kind().name().into() } else { who.name.clone() }
}

pub(super) async fn ask(desk: &dyn Desk, request: JobRequest) -> Result<Reply, Box<Problem>> {
    desk.ask(Request::Job(request)).await.map_err(declined)
}

pub(super) fn definition(
    desk: &dyn Desk,
    job_id: &JobId,
) -> Result<Arc<JobDefinition>, Box<Problem>> {
    let of = look(desk, job_id.as_str(), |records| {
        records.job(job_id).map(|(_, definition)| Arc::clone(definition))
    });
    of.flatten().ok_or_else(|| missing("job", job_id.as_str()))
}

pub(super) fn resolved(
    definition: &JobDefinition,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Box<Problem>> {
    params::resolve(definition, given)
        .map_err(|problems| refused(&kapell_core::board::Refusal::Invalid { problems }))
}

pub(super) fn schedule(definition: &JobDefinition) -> Result<Schedule, Box<Problem>> {
    Schedule::of(definition).map_err(|faults| {
        let problems = faults.iter().map(ToString::to_string).collect();
        refused(&kapell_core::board::Refusal::Invalid { problems })
    })
}
