//! The thread that writes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use kapell_core::audit::{AuditRecord, Knock, Knocks, Outcome};
use kapell_core::seams::Clock;
use tokio::sync::oneshot;

use super::files::Files;
use super::journal::{Names, Unavailable};
use super::trouble::Trouble;

/// How many share one sync at most.
const BATCH: usize = 1024;
/// How often it is looked whether something that is only counted is due.
const LOOK: Duration = Duration::from_secs(1);

/// How much is kept in memory of what nobody waits for, while the disk takes nothing.
const MOST_OWED: usize = 256 << 10;

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Order {
    /// To be on disk before whoever waits goes on.
    Keep(Vec<u8>, oneshot::Sender<Result<(), Unavailable>>),
    /// Nobody waits.
    Note(Vec<u8>),
    /// Somebody was not let in.
    Knock { peer: String, code: String },
    /// Says when all before it is written.
    Reach(oneshot::Sender<()>),
    /// The same, with all that was only counted, and on disk: the process ends.
    Last(oneshot::Sender<()>),
}

pub(super) struct Writer {
    files: Files,
    clock: Arc<dyn Clock>,
    names: Arc<Names>,
    knocks: Knocks,
    trouble: Arc<Trouble>,
    /// Whole lines that nobody waits for and that could not be written yet.
    owed: Vec<u8>,
}

impl Writer {
    pub(super) fn new(
        files: Files,
        clock: Arc<dyn Clock>,
        names: Arc<Names>,
        trouble: Arc<Trouble>,
    ) -> Self {
        Self { files, clock, names, knocks: Knocks::default(), trouble, owed: Vec::new() }
    }

    /// Writes until nobody can tell it more.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let first = if self.knocks.is_empty() && self.owed.is_empty() {
                orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                orders.recv_timeout(LOOK)
            };
            match first {
                Ok(first) => {
                    let more = std::iter::from_fn(|| orders.try_recv().ok());
                    let batch = std::iter::once(first).chain(more).take(BATCH).collect();
                    self.write(batch);
                }
                Err(RecvTimeoutError::Timeout) => self.settle(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let due = self.knocks.due(self.clock.now());
            self.note(due);
        }
        let rest = self.knocks.rest();
        self.note(rest);
    }

    fn write(&mut self, batch: Vec<Order>) {
        let (mut lines, mut kept) = (Vec::new(), Vec::new());
        let mut notes = Vec::new();
        let (mut reached, mut last) = (Vec::new(), Vec::new());
        for order in batch {
            match order {
                Order::Keep(line, told) => {
                    lines.extend(line);
                    kept.push(told);
                }
                Order::Note(line) => notes.extend(line),
                Order::Knock { peer, code } => {
                    let knock = self.knocks.refused(&peer, &code, self.clock.now());
                    notes.extend(knock.into_iter().flat_map(|knock| self.line(knock)));
                }
                Order::Reach(told) => reached.push(told),
                Order::Last(told) => {
                    let rest = self.knocks.rest();
                    notes.extend(rest.into_iter().flat_map(|knock| self.line(knock)));
                    last.push(told);
                }
            }
        }
        let mut all = std::mem::take(&mut self.owed);
        all.extend(notes);
        let owed = all.len();
        all.extend(lines);
        let something_was_written = !all.is_empty();
        let written = if all.is_empty() { Ok(()) } else { self.files.append(&all) };
        for told in reached {
            let _heard = told.send(());
        }
        let is_well = self.trouble.now().is_none();
        let done = match written {
            Ok(()) if kept.is_empty() && last.is_empty() && is_well => Ok(()),
            Ok(()) => self.files.sync(),
            Err(error) => {
                all.truncate(owed);
                self.owe(all);
                Err(error)
            }
        };
        let done = done.map_err(|error| Unavailable::Disk(error.to_string()));
        match &done {
            Ok(()) if something_was_written => self.trouble.end(),
            Ok(()) => {}
            Err(why) => self.trouble.begin(&why.to_string(), self.clock.wall()),
        }
        for told in kept {
            let _heard = told.send(done.clone());
        }
        for told in last {
            let _heard = told.send(());
        }
    }

    fn note(&mut self, knocks: Vec<Knock>) {
        if !knocks.is_empty() {
            let lines = knocks.into_iter().flat_map(|knock| self.line(knock)).collect();
            self.owe(lines);
            self.settle();
        }
    }

    /// Writes what could not be written before. That is also how it is seen that the disk takes something again.
    fn settle(&mut self) {
        self.write(Vec::new());
    }

    fn owe(&mut self, lines: Vec<u8>) {
        if self.owed.len() + lines.len() <= MOST_OWED {
            self.owed.extend(lines);
        } else {
            tracing::warn!("an audit record was dropped: the disk takes nothing");
        }
    }

    fn line(&self, Knock { peer, count, code }: Knock) -> Vec<u8> {
        let outcome = Outcome { status: 401, code: Some(code) };
        let (id, at) = (self.names.next(), self.clock.wall());
        line(&AuditRecord::knock(id, at, peer, count, outcome))
    }
}

pub(super) fn line(record: &AuditRecord) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    line
}
