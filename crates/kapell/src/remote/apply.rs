//! `kapell apply`: has what files say, or changes nothing.

use std::collections::BTreeMap;

use anyhow::Context as _;
use kapell_api::client::{Client, Error};
use kapell_api::v1::JobView;
use kapell_core::board::plan::IN_PLACE;
use kapell_core::board::{DesiredLrp, DesiredUpdate, JobId, TaskDefinition};
use kapell_core::constraint::kicks;
use kapell_core::job::{JobDefinition, cycles};
use kapell_core::manifest::{Document, differences};

use super::FAILED;
use super::args::Apply;
use super::files::{name, read};
use super::many_jobs;
use crate::{BAD_INPUT, print, say};

/// What applying a document comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Unchanged,
    Update {
        fields: Vec<String>,
        update: DesiredUpdate,
    },
    /// A job becomes what the document says.
    Change {
        fields: Vec<String>,
    },
    Refuse {
        fields: Vec<String>,
    },
}

pub(crate) async fn run(args: &Apply, client: &Client) -> anyhow::Result<u8> {
    let Some(documents) = read(&args.files) else { return Ok(BAD_INPUT) };
    have(&documents, args.dry_run, client).await
}

/// The same for files that hold jobs and nothing else.
pub(crate) async fn run_jobs(args: &Apply, client: &Client) -> anyhow::Result<u8> {
    let Some(documents) = read(&args.files) else { return Ok(BAD_INPUT) };
    for document in &documents {
        match document {
            Document::Job(_) => {}
            Document::Lrp { .. } | Document::Task(_) => {
                let name = name(document);
                say(&format!(
                    "error: {name} is no job: use `kapell apply -f`; nothing was changed\n"
                ));
                return Ok(BAD_INPUT);
            }
        }
    }
    have(&documents, args.dry_run, client).await
}

/// Has what documents say, or changes nothing.
pub(crate) async fn have(
    documents: &[Document],
    dry_run: bool,
    client: &Client,
) -> anyhow::Result<u8> {
    if let Some(circle) = circle(documents, client).await? {
        say(&format!("error: nothing was changed: {circle}\n"));
        return Ok(FAILED);
    }
    let stand = many_jobs::standing(documents, client).await?;
    let mut steps = Vec::with_capacity(documents.len());
    for document in documents {
        steps.push(plan(document, &stand, client).await?);
    }
    if steps.iter().any(|step| matches!(step, Step::Refuse { .. })) {
        refuse(documents, &steps);
        return Ok(FAILED);
    }
    let changed = documents.iter().zip(&steps).filter(|(_, step)| **step != Step::Unchanged);
    if !many_jobs::are_taken(changed.filter_map(|(it, _)| job(it)), client).await? {
        return Ok(FAILED);
    }
    let mut rest: Vec<(&Document, &Step)> = documents.iter().zip(&steps).collect();
    while !rest.is_empty() {
        let later = rest.split_off(many_jobs::together(&rest));
        perform_all(&rest, dry_run, client).await?;
        rest = later;
    }
    Ok(0)
}

/// One document, or some jobs at once. What was done is told, so that after a failure nobody has to guess.
async fn perform_all(
    some: &[(&Document, &Step)],
    dry_run: bool,
    client: &Client,
) -> anyhow::Result<()> {
    let mut failed = None;
    let done = match some {
        _ if dry_run => some.iter().map(|_| Ok(())).collect(),
        [(document, step)] => vec![perform(document, step, client).await],
        jobs => many_jobs::apply(jobs, client).await,
    };
    for ((document, step), done) in some.iter().zip(done) {
        match done {
            Ok(()) => print(&format!("{} {}\n", name(document), told(step, dry_run))),
            Err(error) => failed = failed.or(Some((name(document), error))),
        }
    }
    let Some((name, error)) = failed else { return Ok(()) };
    Err(error).with_context(|| format!("{name} was not applied, nor was what is not listed"))
}

/// The jobs that would kick each other off without end: of the documents, and of the host.
async fn circle(documents: &[Document], client: &Client) -> Result<Option<String>, Error> {
    let mut all: BTreeMap<JobId, Vec<JobId>> = BTreeMap::new();
    let ours: Vec<&JobDefinition> = documents.iter().filter_map(job).collect();
    if ours.iter().any(|job| !kicks(job).is_empty()) {
        let stand = client.jobs(None, None).await?.items;
        all.extend(stand.iter().map(|it| (it.job.job_id.clone(), kicks(&it.definition))));
    }
    all.extend(ours.iter().map(|job| (job.job_id.clone(), kicks(job))));
    let kicked = |job: &JobId| all.get(job).cloned().unwrap_or_default();
    let found = ours.iter().find_map(|job| cycles::cycle(&job.job_id, kicked));
    Ok(found.map(|cycle| cycles::tell(&cycle)))
}

pub(super) fn job(document: &Document) -> Option<&JobDefinition> {
    match document {
        Document::Job(job) => Some(job),
        Document::Lrp { .. } | Document::Task(_) => None,
    }
}

async fn plan(
    document: &Document,
    stand: &BTreeMap<JobId, JobView>,
    client: &Client,
) -> Result<Step, Error> {
    match document {
        Document::Lrp { lrp, counts } => {
            match client.desired_lrp(lrp.process_guid.as_str()).await {
                Ok(stands) => Ok(compare(lrp, *counts, &stands)),
                Err(error) if error.is_not_found() => Ok(Step::Create),
                Err(error) => Err(error),
            }
        }
        Document::Task(task) => match client.task(task.task_guid.as_str()).await {
            Ok(stands) => Ok(compare_task(task, &stands.definition)),
            Err(error) if error.is_not_found() => Ok(Step::Create),
            Err(error) => Err(error),
        },
        Document::Job(job) => Ok(match stand.get(&job.job_id) {
            Some(stands) if !stands.job.removed => compare_job(job, &stands.definition),
            Some(_) | None => Step::Create,
        }),
    }
}

/// What makes `stands` what `lrp` says. Without `counts` the number of instances stays.
pub(crate) fn compare(lrp: &DesiredLrp, counts: bool, stands: &DesiredLrp) -> Step {
    let mut fields = differences(lrp, stands);
    fields.retain(|field| counts || field != "instances");
    if fields.is_empty() {
        return Step::Unchanged;
    }
    let fixed: Vec<String> =
        fields.iter().filter(|field| !IN_PLACE.contains(&field.as_str())).cloned().collect();
    if !fixed.is_empty() {
        return Step::Refuse { fields: fixed };
    }
    let changes = |name: &str| fields.iter().any(|field| field == name);
    let update = DesiredUpdate {
        instances: changes("instances").then_some(lrp.instances),
        annotation: changes("annotation").then(|| lrp.annotation.clone()),
        routes: changes("routes").then(|| lrp.routes.clone()),
        version: Some(stands.version),
    };
    Step::Update { fields, update }
}

fn compare_task(task: &TaskDefinition, stands: &TaskDefinition) -> Step {
    let fields = differences(task, stands);
    if fields.is_empty() { Step::Unchanged } else { Step::Refuse { fields } }
}

/// A job can be changed in every field.
pub(crate) fn compare_job(job: &JobDefinition, stands: &JobDefinition) -> Step {
    let fields = differences(job, stands);
    if fields.is_empty() { Step::Unchanged } else { Step::Change { fields } }
}

fn refuse(documents: &[Document], steps: &[Step]) {
    for (document, step) in documents.iter().zip(steps) {
        if let Step::Refuse { fields } = step {
            let verb = if fields.len() == 1 { "differs" } else { "differ" };
            print(&format!("{} refused: {} {verb}\n", name(document), fields.join(", ")));
        }
    }
    say(&format!(
        "error: nothing was changed: of what stands, only {} of an lrp can be changed; delete it first, or use another guid\n",
        IN_PLACE.join(", "),
    ));
}

async fn perform(document: &Document, step: &Step, client: &Client) -> Result<(), Error> {
    match (document, step) {
        (_, Step::Unchanged | Step::Refuse { .. }) => Ok(()),
        (Document::Lrp { lrp, .. }, Step::Create | Step::Change { .. }) => {
            client.desire(lrp).await.map(drop)
        }
        (Document::Lrp { lrp, .. }, Step::Update { update, .. }) => {
            client.update_desired(lrp.process_guid.as_str(), update).await.map(drop)
        }
        (Document::Task(task), Step::Create | Step::Update { .. } | Step::Change { .. }) => {
            client.create_task(task).await.map(drop)
        }
        (Document::Job(job), Step::Create | Step::Update { .. } | Step::Change { .. }) => {
            client.apply_job(job).await.map(drop)
        }
    }
}

fn told(step: &Step, dry_run: bool) -> String {
    let would = if dry_run { "would be " } else { "" };
    match step {
        Step::Create => format!("{would}created"),
        Step::Unchanged => "unchanged".to_owned(),
        Step::Update { fields, .. } | Step::Change { fields } => {
            format!("{would}updated ({})", fields.join(", "))
        }
        Step::Refuse { .. } => "refused".to_owned(),
    }
}
