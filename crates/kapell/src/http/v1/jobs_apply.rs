//! `POST /v1/jobs`

use std::path::Path;

use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use kapell_api::v1::{JobApplied, JobView};
use kapell_core::access::{About, Kind, allows};
use kapell_core::board::{JobId, Refusal, Reply};
use kapell_core::constraint::kicks;
use kapell_core::job::{JobDefinition, JobRequest, Payload, WorkflowPayload, cycles};
use kapell_core::manifest;
use kapell_core::source::Problem as Fault;
use kapell_core::workflow::load;
use tokio::task::spawn_blocking;

use super::super::access::may;
use super::super::answer::{self, Answer, Problem};
use super::super::desk::{Desk, look};
use super::call::{Asked, Call, domain_of_job};
use super::jobs::ask;
use super::jobs_look;
use super::refusal::refused;

pub(super) async fn apply(call: Call) -> Result<Answer, Box<Problem>> {
    let now = call.wall;
    let dry_run = call.query.switch("dry_run")?;
    let (definition, asked) = call.json_read(manifest::read_job).await?;
    let job_id = definition.job_id.clone();
    asked.note.about("job_id", job_id.as_str());
    asked.note.about("domain", definition.domain.as_str());
    may_apply(&asked, &definition)?;
    let problems = problems(&*asked.desk, &definition).await;
    if !problems.is_empty() {
        return Err(refused(&Refusal::Invalid { problems }));
    }
    if dry_run {
        return Ok(answer::nothing());
    }
    let before = look(&*asked.desk, job_id.as_str(), |records| {
        let there = records.job(&job_id).filter(|(job, _)| !job.removed);
        there.map(|(_, before)| manifest::differences(&definition, &**before))
    });
    let changed = before.flatten().unwrap_or_default();
    asked.note.intend().await?;
    let request = JobRequest::Apply { definition: Box::new(definition.clone()) };
    let Reply::Job { job, created } = ask(&*asked.desk, request).await? else {
        return Ok(answer::nothing());
    };
    let view = jobs_look::job(&*asked.desk, &job_id, now).unwrap_or(JobView {
        job: *job,
        definition,
        next_at: None,
        active_runs: 0,
        last_run: None,
    });
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let mut answer = answer::value(status, &JobApplied { job: view, changed });
    if created && let Ok(place) = HeaderValue::try_from(format!("/v1/jobs/{job_id}")) {
        answer.headers_mut().insert(LOCATION, place);
    }
    Ok(answer)
}

/// Judges whoever applies: by the domain, by what the work may reach, and by what stands there.
fn may_apply(asked: &Asked, definition: &JobDefinition) -> Result<(), Box<Problem>> {
    asked.may(Kind::Change, &definition.domain)?;
    match definition.payload() {
        // Pods reach every secret and account of their namespace, whatever the domain of the job.
        Some(Payload::Command(_) | Payload::Workflow(_) | Payload::Kubernetes(_)) => {
            may(&asked.who, Kind::RunOnHosts, About::Anything)?;
        }
        Some(Payload::Task(_)) | None => {}
    }
    let foreign = |job: &JobId| {
        let domain = domain_of_job(&*asked.desk, job);
        domain.is_some_and(|it| allows(&asked.who, Kind::Change, About::Domain(&it)).is_err())
    };
    let taken = std::iter::once(definition.job_id.clone()).chain(kicks(definition)).find(foreign);
    match taken {
        Some(job) => {
            let text = format!("job `{job}` belongs to others: use another id");
            Err(refused(&Refusal::Exists { text, fields: vec!["domain".to_owned()] }))
        }
        None => Ok(()),
    }
}

/// What is wrong with a definition beside what it says itself: other jobs, and its workflow.
async fn problems(desk: &dyn Desk, definition: &JobDefinition) -> Vec<String> {
    let mut problems: Vec<String> = circle(desk, definition).into_iter().collect();
    if let Some(workflow) = &definition.workflow {
        problems.extend(of_workflow(workflow.clone()).await);
    }
    problems
}

/// The board looks for circles too, and more strictly; here it is told beside all else that is wrong.
fn circle(desk: &dyn Desk, definition: &JobDefinition) -> Option<String> {
    let own = kicks(definition);
    let kicked = |job: &JobId| {
        if *job == definition.job_id {
            return own.clone();
        }
        let found = look(desk, job.as_str(), |records| {
            let there = records.job(job).filter(|(_, it)| !it.constraints.is_empty());
            there.map(|(_, other)| kicks(other))
        });
        found.flatten().unwrap_or_default()
    };
    cycles::cycle(&definition.job_id, kicked).map(|cycle| cycles::tell(&cycle))
}

/// Reads a workflow as a run would.
async fn of_workflow(workflow: WorkflowPayload) -> Vec<String> {
    let tell = |field: &str, faults: &[Fault]| {
        let one = |it: &Fault| {
            let help = it.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            let (line, column) = (it.span.line, it.span.column);
            format!("{field}: {}{help} (line {line}, column {column})", it.message)
        };
        faults.iter().filter(|it| it.is_error()).map(one).collect::<Vec<_>>()
    };
    if let Some(text) = &workflow.text {
        return load(text.as_bytes(), "workflow")
            .err()
            .map_or_else(Vec::new, |faults| tell("workflow.text", &faults));
    }
    let Some(file) = workflow.file else { return Vec::new() };
    if !Path::new(&file).is_absolute() {
        return vec![format!(
            "workflow.file: `{file}` is not an absolute path on the hosts: give one, or send the workflow in `text`"
        )];
    }
    let path = file.clone();
    match spawn_blocking(move || std::fs::read(path)).await {
        Ok(Ok(bytes)) => load(&bytes, "workflow")
            .err()
            .map_or_else(Vec::new, |faults| tell("workflow.file", &faults)),
        Ok(Err(error)) => vec![format!("workflow.file: `{file}` cannot be read here: {error}")],
        Err(error) => vec![format!("workflow.file: `{file}` cannot be read here: {error}")],
    }
}
