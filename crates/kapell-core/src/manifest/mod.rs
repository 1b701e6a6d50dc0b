//! Files that say what is desired: many documents, each of a kind, or everything that is wrong with them.

mod job;
mod json;
mod plain;
mod shape;

#[cfg(test)]
mod tests;

use serde_json::Value as Json;

use crate::board::{DesiredLrp, TaskDefinition, validate};
use crate::job::JobDefinition;
use crate::source::{Problem, Span};
use crate::workflow::load::not_text;
use crate::workflow::reader::Reader;
use crate::yaml::{self, Node, Value};
#[cfg(test)]
pub(crate) use job::ON_KUBERNETES;
pub(crate) use job::read_kubernetes;
use shape::Builder;

/// One thing that is desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    Lrp {
        lrp: Box<DesiredLrp>,
        /// The file says how many instances; otherwise as many as there are stay.
        counts: bool,
    },
    /// Its guid is empty where the file has none.
    Task(Box<TaskDefinition>),
    Job(Box<JobDefinition>),
}

/// A document and where it stands: its guid, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub document: Document,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lrp,
    Task,
    Job,
    Workflow,
}

const KINDS: [(&str, Kind); 4] =
    [("lrp", Kind::Lrp), ("task", Kind::Task), ("job", Kind::Job), ("workflow", Kind::Workflow)];

/// Reads all documents of a file, YAML or JSON. If anything is wrong, all of it is told.
pub fn read(bytes: &[u8]) -> Result<Vec<Placed>, Vec<Problem>> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| vec![not_text(bytes, error.valid_up_to())])?;
    let text = json::as_yaml(text);
    let nodes = yaml::parse(&text).map_err(|problem| vec![problem])?;
    let mut reader = Reader::default();
    let mut documents = Vec::new();
    // Nothing between two `---` is nothing.
    for node in nodes.iter().filter(|node| !node.is_null()) {
        documents.extend(read_document(&mut reader, node));
    }
    let is_empty = nodes.iter().all(Node::is_null);
    if is_empty {
        let problem = Problem::error(Span::START, "the file holds nothing to apply");
        reader
            .report(problem.help("write a document with `kind: job`, `kind: lrp` or `kind: task`"));
    }
    let problems = all_told(reader);
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

/// Reads the job of a request, in any form that a file may have it. If anything is wrong, all of it is told.
pub fn read_job(json: &[u8]) -> Result<JobDefinition, Vec<Problem>> {
    let text =
        std::str::from_utf8(json).map_err(|error| vec![not_text(json, error.valid_up_to())])?;
    let text = json::as_yaml(text);
    let nodes = yaml::parse(&text).map_err(|problem| vec![problem])?;
    let mut nodes = nodes.iter().filter(|node| !node.is_null());
    let (Some(node), None) = (nodes.next(), nodes.next()) else {
        return Err(vec![Problem::error(Span::START, "the request must hold one job")]);
    };
    let mut reader = Reader::default();
    let read = job::read(&mut reader, node);
    let problems = all_told(reader);
    read.filter(|_| problems.is_empty()).map(|(job, _)| *job).ok_or(problems)
}

/// Every problem, in the order of the file.
fn all_told(mut reader: Reader) -> Vec<Problem> {
    reader.problems.sort_by_key(|problem| problem.span);
    reader.problems.extend(Problem::more(reader.errors_left_out, reader.warnings_left_out));
    reader.problems
}

/// Everything that is wrong with a request to desire a process, each with its place.
pub fn faults_of_lrp(json: &[u8]) -> Vec<Problem> {
    faults(json, |reader, node| drop(read_lrp(reader, node)))
}

/// Everything that is wrong with a request for a task, each with its place.
pub fn faults_of_task(json: &[u8]) -> Vec<Problem> {
    faults(json, |reader, node| drop(read_task(reader, node)))
}

/// JSON is YAML as well, so one reader is enough. None are found where it is not.
fn faults(json: &[u8], read: impl Fn(&mut Reader, &Node<'_>)) -> Vec<Problem> {
    let Ok(text) = std::str::from_utf8(json) else { return Vec::new() };
    let text = json::as_yaml(text);
    let Ok(nodes) = yaml::parse(&text) else { return Vec::new() };
    let mut reader = Reader::default();
    for node in nodes.iter().filter(|node| !node.is_null()) {
        read(&mut reader, node);
    }
    all_told(reader)
}

fn read_document(reader: &mut Reader, node: &Node<'_>) -> Option<Placed> {
    match kind_of(reader, node)? {
        (Kind::Lrp, _) => read_lrp(reader, node),
        (Kind::Task, _) => read_task(reader, node),
        (Kind::Job, _) => {
            let (job, span) = job::read(reader, node)?;
            Some(Placed { document: Document::Job(job), span })
        }
        (Kind::Workflow, span) => {
            let problem = Problem::error(span, "workflows cannot be applied yet");
            reader.report(problem.help("run it here by `kapell process FILE`"));
            None
        }
    }
}

/// What a document is, by its `kind` or else by the guid that it has.
fn kind_of(reader: &mut Reader, node: &Node<'_>) -> Option<(Kind, Span)> {
    let Value::Map(entries) = &node.value else {
        let message = format!("a document must be a mapping, not {}", node.what());
        reader.report(Problem::error(node.span, message).help("begin with `kind: lrp`"));
        return None;
    };
    let find = |name: &str| {
        let is = |key: &Node<'_>| key.scalar().is_some_and(|key| key.text == name);
        entries.iter().find(|(key, _)| is(key)).map(|(_, value)| value)
    };
    if let Some(kind) = find("kind") {
        return reader.choice(kind, "kind", &KINDS).map(|found| (found, kind.span));
    }
    let guessed = [
        ("process_guid", Kind::Lrp),
        ("task_guid", Kind::Task),
        ("job_id", Kind::Job),
        ("schedule", Kind::Job),
        ("steps", Kind::Workflow),
    ]
    .into_iter()
    .find_map(|(key, kind)| find(key).map(|value| (kind, value.span)));
    if guessed.is_none() {
        let problem = Problem::error(node.span, "the document does not say what it is");
        reader.report(problem.help("add `kind: job`, `kind: lrp` or `kind: task`"));
    }
    guessed
}

fn read_lrp(reader: &mut Reader, node: &Node<'_>) -> Option<Placed> {
    let mut builder = Builder::new(reader);
    let value =
        builder.object(node, "the lrp", shape::LRP, &["process_guid", "domain", "action"], "");
    let counts = value.as_ref().is_some_and(|value| value.get("instances").is_some());
    let lrp: DesiredLrp = builder.finish(node, value?)?;
    builder.place(node, validate::desired(&lrp));
    let span = builder.span("process_guid", node);
    Some(Placed { document: Document::Lrp { lrp: Box::new(lrp), counts }, span })
}

fn read_task(reader: &mut Reader, node: &Node<'_>) -> Option<Placed> {
    let mut builder = Builder::new(reader);
    let value = builder.object(node, "the task", shape::TASK, &["domain", "action"], "");
    let is_named = value.as_ref().is_some_and(|value| value.get("task_guid").is_some());
    let task: TaskDefinition = builder.finish(node, value?)?;
    let mut checked = task.clone();
    if !is_named {
        checked.task_guid = "drawn-later".into();
    }
    builder.place(node, validate::task(&checked));
    let span = builder.span("task_guid", node);
    Some(Placed { document: Document::Task(Box::new(task)), span })
}

/// The names of the fields in which two of a kind differ, as they are written.
pub fn differences(one: &impl serde::Serialize, other: &impl serde::Serialize) -> Vec<String> {
    const OF_THE_BOARD: [&str; 6] =
        ["version", "created_at", "updated_at", "incarnation", "removing", "retiring"];
    let object = |value: &Json| value.as_object().cloned().unwrap_or_default();
    let (Ok(one), Ok(other)) = (serde_json::to_value(one), serde_json::to_value(other)) else {
        return Vec::new();
    };
    let (one, other) = (object(&one), object(&other));
    let mut names: Vec<String> = one
        .keys()
        .chain(other.keys())
        .filter(|key| one.get(*key) != other.get(*key))
        .filter(|key| !OF_THE_BOARD.contains(&key.as_str()))
        .cloned()
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
