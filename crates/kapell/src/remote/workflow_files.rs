//! Workflows that jobs name by a file: the text of the file becomes part of the job.

use std::fs;
use std::path::Path;

use kapell_core::job::WorkflowPayload;
use kapell_core::manifest::Document;
use kapell_core::source::{Problem, Span};
use kapell_core::workflow::load;
use kapell_core::yaml::{self, Node, Value};

use super::files::Source;

/// Puts in the text of every workflow file, relative to the file that names it. What cannot be read is a problem of
/// that file, what is wrong with a workflow one of its own.
pub(crate) fn put_in(sources: &mut Vec<Source>) {
    let mut bad = Vec::new();
    for source in &mut *sources {
        let places = places(&source.bytes);
        let beside = Path::new(&source.path).parent().map(Path::to_path_buf).unwrap_or_default();
        for (number, placed) in source.documents.iter_mut().enumerate() {
            let Document::Job(job) = &mut placed.document else { continue };
            let Some(workflow) = &mut job.workflow else { continue };
            let Some(file) = workflow.file.clone() else { continue };
            let span = places.get(number).copied().flatten().unwrap_or(placed.span);
            let path = beside.join(&file);
            match fs::read(&path) {
                Ok(bytes) => bad.extend(take(workflow, &path, bytes)),
                Err(error) => {
                    let message = format!("the workflow `{file}` cannot be read: {error}");
                    let help = "a path is relative to this file";
                    source.problems.push(Problem::error(span, message).help(help));
                }
            }
        }
    }
    sources.extend(bad);
}

/// Takes over a workflow, or says what is wrong with it.
fn take(workflow: &mut WorkflowPayload, path: &Path, bytes: Vec<u8>) -> Option<Source> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match load(&bytes, &stem) {
        Ok(_) => {
            workflow.text = Some(String::from_utf8_lossy(&bytes).into_owned());
            workflow.file = None;
            None
        }
        Err(problems) => {
            let path = path.display().to_string();
            Some(Source { path, bytes, documents: Vec::new(), problems })
        }
    }
}

/// Where the name of the workflow file stands in each document.
fn places(bytes: &[u8]) -> Vec<Option<Span>> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Vec::new() };
    let Ok(nodes) = yaml::parse(text) else { return Vec::new() };
    let there = nodes.iter().filter(|node| !node.is_null());
    let place = |node: &Node<'_>| {
        let workflow = entry(node, "workflow")?;
        Some(entry(workflow, "file").unwrap_or(workflow).span)
    };
    there.map(place).collect()
}

fn entry<'n, 'a>(node: &'n Node<'a>, name: &str) -> Option<&'n Node<'a>> {
    let Value::Map(entries) = &node.value else { return None };
    let is = |key: &Node<'_>| key.scalar().is_some_and(|key| key.text == name);
    entries.iter().find(|(key, _)| is(key)).map(|(_, value)| value)
}
