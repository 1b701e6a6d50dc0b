//! `kapell apply`: has what files say, or changes nothing.

use anyhow::Context as _;
use kapell_api::client::{Client, Error};
use kapell_core::board::plan::IN_PLACE;
use kapell_core::board::{DesiredLrp, DesiredUpdate, TaskDefinition};
use kapell_core::manifest::{Document, differences};

use super::FAILED;
use super::args::Apply;
use super::files::{name, read};
use crate::{BAD_INPUT, print, say};

/// What applying a document comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Unchanged,
    Update { fields: Vec<String>, update: DesiredUpdate },
    Refuse { fields: Vec<String> },
}

pub(crate) async fn run(args: &Apply, client: &Client) -> anyhow::Result<u8> {
    let Some(documents) = read(&args.files) else { return Ok(BAD_INPUT) };
    let mut steps = Vec::with_capacity(documents.len());
    for document in &documents {
        steps.push(plan(document, client).await?);
    }
    if steps.iter().any(|step| matches!(step, Step::Refuse { .. })) {
        refuse(&documents, &steps);
        return Ok(FAILED);
    }
    for (document, step) in documents.iter().zip(&steps) {
        if !args.dry_run {
            perform(document, step, client).await.with_context(|| {
                format!("{} was not applied, nor was anything after it", name(document))
            })?;
        }
        print(&format!("{} {}\n", name(document), told(step, args.dry_run)));
    }
    Ok(0)
}

async fn plan(document: &Document, client: &Client) -> Result<Step, Error> {
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
        // Refused when the files are read.
        Document::Job(_) => Ok(Step::Refuse { fields: vec!["kind".to_owned()] }),
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
        (Document::Lrp { lrp, .. }, Step::Create) => client.desire(lrp).await.map(drop),
        (Document::Lrp { lrp, .. }, Step::Update { update, .. }) => {
            client.update_desired(lrp.process_guid.as_str(), update).await.map(drop)
        }
        (Document::Task(task), Step::Create | Step::Update { .. }) => {
            client.create_task(task).await.map(drop)
        }
        (Document::Job(_), Step::Create | Step::Update { .. }) => Ok(()),
    }
}

fn told(step: &Step, dry_run: bool) -> String {
    let would = if dry_run { "would be " } else { "" };
    match step {
        Step::Create => format!("{would}created"),
        Step::Unchanged => "unchanged".to_owned(),
        Step::Update { fields, .. } => format!("{would}updated ({})", fields.join(", ")),
        Step::Refuse { .. } => "refused".to_owned(),
    }
}
