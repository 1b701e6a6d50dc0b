//! `kapell apply`: has what files say, or changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kapell_api::client::{Client, Error};
use kapell_core::board::{DesiredLrp, DesiredUpdate, TaskDefinition};
use kapell_core::manifest::{self, Document, Placed, differences};
use kapell_core::seams::Ids as _;
use kapell_core::source::Problem;
use kapell_node::system::SystemIds;

use super::FAILED;
use super::args::Apply;
use crate::logger::Style;
use crate::problems::BadFile;
use crate::{BAD_INPUT, print, say};

/// What may change without restarting anything.
const IN_PLACE: [&str; 3] = ["annotation", "instances", "routes"];

/// A file and what it says.
#[derive(Debug)]
pub(crate) struct Source {
    path: String,
    bytes: Vec<u8>,
    documents: Vec<Placed>,
    problems: Vec<Problem>,
}

/// What applying a document comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Unchanged,
    Update { fields: Vec<String>, update: DesiredUpdate },
    Refuse { fields: Vec<String> },
}

pub(crate) async fn run(args: &Apply, client: &Client) -> anyhow::Result<u8> {
    let mut sources = Vec::new();
    for path in gather(&args.files)? {
        sources.push(Source::read(&path)?);
    }
    find_doubles(&mut sources);
    if let Some(text) = complaints(&sources) {
        say(&text);
        return Ok(BAD_INPUT);
    }
    let mut documents: Vec<Document> =
        sources.into_iter().flat_map(|it| it.documents).map(|it| it.document).collect();
    for document in &mut documents {
        if let Document::Task(task) = document
            && task.task_guid.as_str().is_empty()
        {
            task.task_guid = super::task_run::draw_name("task", SystemIds.draw()).into();
        }
    }
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

/// All files that are meant. A directory stands for those in it that look like ours.
fn gather(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = || format!("cannot read `{}`", path.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(path).with_context(unreadable)? {
            let file = entry.with_context(unreadable)?.path();
            let is_ours =
                |end: &std::ffi::OsStr| ["yaml", "yml", "json"].iter().any(|it| end == *it);
            if file.extension().is_some_and(is_ours) && file.is_file() {
                found.push(file);
            }
        }
        anyhow::ensure!(!found.is_empty(), "`{}` has no .yaml, .yml or .json file", path.display());
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

impl Source {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = if path == Path::new("-") {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let bytes = if path == Path::new("-") {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(path)
        };
        let bytes = bytes.with_context(|| format!("cannot read `{shown}`"))?;
        Ok(Self::parse(shown, bytes))
    }

    pub(crate) fn parse(path: String, bytes: Vec<u8>) -> Self {
        match manifest::read(&bytes) {
            Ok(documents) => Self { path, bytes, documents, problems: Vec::new() },
            Err(problems) => Self { path, bytes, documents: Vec::new(), problems },
        }
    }
}

/// Nothing may be said twice: which one would hold?
pub(crate) fn find_doubles(sources: &mut [Source]) {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for source in sources {
        for placed in &source.documents {
            if matches!(&placed.document, Document::Task(task) if task.task_guid.as_str().is_empty())
            {
                continue;
            }
            let name = name(&placed.document);
            let here = format!("{}:{}", source.path, placed.span.line);
            if let Some(there) = seen.get(&name) {
                let message = format!("{name} stands at {there} already");
                let problem = Problem::error(placed.span, message);
                source.problems.push(problem.help("remove one of the two"));
            } else {
                seen.insert(name, here);
            }
        }
    }
}

/// Everything that is wrong with all files, as text for people.
pub(crate) fn complaints(sources: &[Source]) -> Option<String> {
    let colour = Style::of_stderr().colour;
    let bad: String = sources
        .iter()
        .filter(|source| !source.problems.is_empty())
        .map(|source| {
            let Source { path, problems, bytes, .. } = source;
            let (path, problems, bytes) = (path.clone(), problems.clone(), bytes.clone());
            BadFile { path, problems, bytes }.render(colour)
        })
        .collect();
    (!bad.is_empty()).then_some(bad)
}

fn name(document: &Document) -> String {
    match document {
        Document::Lrp { lrp, .. } => format!("lrp/{}", lrp.process_guid),
        Document::Task(task) => format!("task/{}", task.task_guid),
    }
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
