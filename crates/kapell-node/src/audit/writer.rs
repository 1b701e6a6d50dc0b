//! The thread that writes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use kapell_core::audit::{AuditRecord, Knock, Knocks, Outcome};
use kapell_core::seams::Clock;
use tokio::sync::oneshot;

use super::files::Files;
use super::journal::{Names, Unavailable};

/// How many share one sync at most.
const BATCH: usize = 1024;
/// How often it is looked whether something that is only counted is due.
const LOOK: Duration = Duration::from_secs(1);

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
    pub(super) files: Files,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) names: Arc<Names>,
    pub(super) knocks: Knocks,
}

impl Writer {
    /// Writes until nobody can tell it more.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let first = if self.knocks.is_empty() {
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
                Err(RecvTimeoutError::Timeout) => {}
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
        let (mut reached, mut last) = (Vec::new(), Vec::new());
        for order in batch {
            match order {
                Order::Keep(line, told) => {
                    lines.extend(line);
                    kept.push(told);
                }
                Order::Note(line) => lines.extend(line),
                Order::Knock { peer, code } => {
                    let knock = self.knocks.refused(&peer, &code, self.clock.now());
                    lines.extend(knock.into_iter().flat_map(|knock| self.line(knock)));
                }
                Order::Reach(told) => reached.push(told),
                Order::Last(told) => {
                    let rest = self.knocks.rest();
                    lines.extend(rest.into_iter().flat_map(|knock| self.line(knock)));
                    last.push(told);
                }
            }
        }
        let written = if lines.is_empty() { Ok(()) } else { self.files.append(&lines) };
        for told in reached {
            let _heard = told.send(());
        }
        let done = match written {
            Ok(()) if kept.is_empty() && last.is_empty() => Ok(()),
            Ok(()) => self.files.sync(),
            Err(error) => Err(error),
        };
        let done = done.map_err(|error| {
            tracing::warn!(%error, "the audit file cannot be written");
            Unavailable::Disk(error.to_string())
        });
        for told in kept {
            let _heard = told.send(done.clone());
        }
        for told in last {
            let _heard = told.send(());
        }
    }

    fn note(&mut self, knocks: Vec<Knock>) {
        let lines: Vec<u8> = knocks.into_iter().flat_map(|knock| self.line(knock)).collect();
        if !lines.is_empty()
            && let Err(error) = self.files.append(&lines)
        {
            tracing::warn!(%error, "the audit file cannot be written");
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
