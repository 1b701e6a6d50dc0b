//! The work of a run that is a workflow: `kapell process` as a process of the host.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kapell_backend::containers::{Exit, Process};
use kapell_core::job::{Payload, WorkflowPayload};
use kapell_core::run::WorkEnd;
use kapell_core::seams::Timestamp;
use kapell_core::workflow;

use super::backend::{Attempt, Work};
use super::logs::{self, RunLogs};
use crate::cell::outcome;
use crate::flow::History;

/// Longer than a workflow gives its steps, so that it ends them itself.
const GRACE: Duration = Duration::from_secs(30);
const FILE: &str = "workflow.yaml";

/// Puts the workflow into the directory of the attempt, and says what runs it there. Blocks.
pub(super) fn process(
    work: &Work,
    kept: &RunLogs,
    program: &str,
    process: Process,
) -> Result<Process, String> {
    let Some(Payload::Workflow(flow)) = work.definition.payload() else {
        return Err("the job names no workflow".to_owned());
    };
    let text = text(flow)?;
    let read = workflow::load(text.as_bytes(), "workflow");
    let named = read.map(|read| read.workflow.params.named).unwrap_or_default();
    let is_declared = |name: &str| named.iter().any(|(declared, _)| declared == name);
    let dir = kept.of(&work.attempt);
    let file = dir.join(FILE);
    let failed = |error| format!("cannot write `{}`: {error}", file.display());
    logs::make_private(&dir).map_err(failed)?;
    fs::write(&file, text).map_err(failed)?;
    let mut args = vec!["--state-dir".to_owned(), shown(&dir), "process".to_owned()];
    args.extend(["--logger", "stream"].map(str::to_owned));
    for (name, value) in work.parameters.iter().filter(|(name, _)| is_declared(name)) {
        args.push(format!("--param={name}={value}"));
    }
    args.push(shown(&file));
    args.push("--".to_owned());
    args.extend(flow.params.iter().cloned());
    Ok(Process { path: program.to_owned(), args, stop_grace: GRACE, ..process })
}

fn text(flow: &WorkflowPayload) -> Result<String, String> {
    match (&flow.text, &flow.file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(file)) => fs::read_to_string(file)
            .map_err(|error| format!("cannot read the workflow `{file}`: {error}")),
        (None, None) => Err("the job names no workflow".to_owned()),
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What the end of `kapell process` means: its journal knows why a workflow failed. Blocks.
pub(super) fn end(exit: &Exit, at: Timestamp, attempt: &Attempt, kept: &RunLogs) -> WorkEnd {
    let plain = outcome::of_exit(exit);
    let failure = match exit.code {
        Some(0) => None,
        Some(1) => {
            Some(told(&kept.of(attempt)).unwrap_or_else(|| "the workflow failed".to_owned()))
        }
        Some(2) => Some(with_words("the workflow was refused", exit)),
        Some(130 | 143) => Some("the workflow was interrupted".to_owned()),
        Some(_) | None => plain.failure,
    };
    WorkEnd { began: None, at, exit_code: plain.exit_code, failure: failure.map(outcome::cut) }
}

fn with_words(what: &str, exit: &Exit) -> String {
    match exit.last_words.trim() {
        "" => what.to_owned(),
        words => format!("{what}: {words}"),
    }
}

/// What the journal of the only run says of its end.
fn told(dir: &Path) -> Option<String> {
    let run = History::below(dir).runs(None).pop()?;
    run.story().ok()?.end?.error
}
