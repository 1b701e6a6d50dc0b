//! The journal of one run as it is written.

use std::path::PathBuf;

use kapell_core::flow::{Note, Placed};
use kapell_core::journal::{EndRecord, Header, KEPT, NodeRecord, PLACED, Record, VERSION};
use kapell_core::seams::{RunId, Timestamp};
use kapell_store::lines::{self, LineLog};

/// What a step gave to others, written with its success.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    pub(super) outputs: Vec<(String, String)>,
    pub(super) stdout: Option<String>,
}

/// A run's journal and directory.
#[derive(Debug)]
pub struct RunJournal {
    pub(super) id: RunId,
    pub(super) dir: PathBuf,
    log: Option<LineLog>,
    /// The first thing that went wrong. The run goes on, but says so at its end.
    problem: Option<String>,
    buffer: Vec<u8>,
}

impl RunJournal {
    pub(super) fn new(id: RunId, dir: PathBuf, log: LineLog) -> Self {
        Self { id, dir, log: Some(log), problem: None, buffer: Vec::with_capacity(512) }
    }

    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Adds a line. It is written with the next [`RunJournal::flush`].
    fn add(&mut self, record: &Record) {
        if self.log.is_none() {
            return;
        }
        match serde_json::to_writer(&mut self.buffer, record) {
            Ok(()) => self.buffer.push(b'\n'),
            Err(error) => self.give_up(error.to_string()),
        }
    }

    /// Writes what was added, in one go. Nothing that follows from it may happen before.
    pub(super) fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if let Some(log) = &mut self.log
            && let Err(error) = log.append(&self.buffer)
        {
            self.give_up(explain(&error));
        }
        self.buffer.clear();
    }

    /// A journal with a hole would make a later resume forget a step in the middle.
    fn give_up(&mut self, problem: String) {
        self.problem = Some(problem);
        self.log = None;
    }

    pub(super) fn begin(&mut self, header: Header) {
        self.add(&Record::Run(header));
    }

    pub(super) fn kept(&mut self, ts: Timestamp, step: &str, given: Given) {
        self.add(&Record::Node(NodeRecord {
            v: VERSION,
            ts: ts.0,
            event: KEPT.to_owned(),
            node: step.to_owned(),
            outputs: given.outputs,
            stdout: given.stdout,
            ..NodeRecord::default()
        }));
    }

    pub(super) fn node(&mut self, ts: Timestamp, step: &str, note: &Note, given: Given) {
        self.add(&Record::Node(NodeRecord {
            v: VERSION,
            ts: ts.0,
            event: note.kind.name().to_owned(),
            node: step.to_owned(),
            attempt: note.attempt,
            exit_code: note.exit_code,
            duration_ms: note.duration.map(millis),
            reason: note.reason.clone(),
            error: note.error.clone(),
            outputs: given.outputs,
            stdout: given.stdout,
            task: None,
        }));
    }

    /// A step's command is about to become this elsewhere, or goes on as it.
    pub(super) fn placed(&mut self, ts: Timestamp, step: &str, attempt: u32, task: Placed) {
        self.add(&Record::Node(NodeRecord {
            v: VERSION,
            ts: ts.0,
            event: PLACED.to_owned(),
            node: step.to_owned(),
            attempt,
            task: Some(task),
            ..NodeRecord::default()
        }));
    }

    pub(super) fn end(&mut self, ts: Timestamp, verdict: &str, note: &Note) {
        self.add(&Record::End(EndRecord {
            v: VERSION,
            ts: ts.0,
            verdict: verdict.to_owned(),
            duration_ms: note.duration.map_or(0, millis),
            error: note.error.clone(),
        }));
    }

    /// Flushes the journal. Tells what went wrong with it, if anything did.
    pub(super) fn close(&mut self) -> Option<String> {
        self.flush();
        if let Some(Err(error)) = self.log.take().map(LineLog::close) {
            self.problem.get_or_insert(explain(&error));
        }
        self.problem.take()
    }
}

fn explain(error: &lines::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("the journal is incomplete, so `--resume` may repeat steps: {error}: {cause}")
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
