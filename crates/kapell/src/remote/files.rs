//! The files that say what is desired.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kapell_core::manifest::{self, Document, Placed};
use kapell_core::seams::Ids as _;
use kapell_core::source::Problem;
use kapell_node::system::SystemIds;

use super::workflow_files;
use crate::logger::Style;
use crate::problems::BadFile;
use crate::say;

/// A file and what it says.
#[derive(Debug)]
pub(crate) struct Source {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    pub(super) documents: Vec<Placed>,
    pub(super) problems: Vec<Problem>,
}

/// Reads all documents of all files, each task with a name. If anything is wrong all of it is told,
/// and there are none.
pub(crate) fn read(paths: &[PathBuf]) -> Option<Vec<Document>> {
    let mut sources = match gather_and_read(paths) {
        Ok(sources) => sources,
        Err(error) => {
            say(&format!("error: {error:#}\n"));
            return None;
        }
    };
    workflow_files::put_in(&mut sources);
    taken(sources)
}

/// The same of a text that was made here.
pub(crate) fn read_text(path: &str, text: &str) -> Option<Vec<Document>> {
    taken(vec![Source::parse(path.to_owned(), text.as_bytes().to_vec())])
}

fn taken(mut sources: Vec<Source>) -> Option<Vec<Document>> {
    find_doubles(&mut sources);
    if let Some(text) = complaints(&sources) {
        say(&text);
        return None;
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
    Some(documents)
}

fn gather_and_read(paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    gather(paths)?.iter().map(|path| Source::read(path)).collect()
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

pub(crate) fn name(document: &Document) -> String {
    match document {
        Document::Lrp { lrp, .. } => format!("lrp/{}", lrp.process_guid),
        Document::Task(task) => format!("task/{}", task.task_guid),
        Document::Job(job) => format!("job/{}", job.job_id),
    }
}
