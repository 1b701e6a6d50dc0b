//! The one thread that writes.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::Receiver;

use super::compact::{Compaction, Pace, Plan};
use super::desk::Desk;
use super::job::Job;
use super::log::{Log, NoSegment};
use super::note::Note;
use super::recover::OnDisk;
use crate::error::Error;

/// How many questions are taken at once.
const TAKEN: usize = 1024;
/// When a group is full. One that a single question fills may be larger.
const GROUP_BYTES: usize = 1 << 20;
/// About what a record takes in a file beyond its key and its value.
const RECORD_OVERHEAD: usize = 13;

/// Takes questions, decides them, writes what has changed as one group, and answers once that is on disk.
/// What comes in meanwhile is the next group.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) name: String,
    pub(super) desk: Desk,
    pub(super) log: Log,
    pub(super) on_disk: OnDisk,
    pub(super) notes: Arc<Mutex<Vec<Note>>>,
    /// Decided, not yet answered.
    waiting: Vec<Box<dyn Job>>,
    /// Why nothing is taken any more.
    stopped: Option<String>,
    compaction: Option<Compaction>,
    /// That of the next one.
    pace: Pace,
    /// What the log has to reach before it is looked at again.
    compact_above: u64,
}

impl Writer {
    pub(super) fn new(
        name: String,
        desk: Desk,
        log: Log,
        on_disk: OnDisk,
        notes: Arc<Mutex<Vec<Note>>>,
    ) -> Self {
        let compact_above = log.sizes.compact_above;
        Self {
            name,
            desk,
            log,
            on_disk,
            notes,
            waiting: Vec::new(),
            stopped: None,
            compaction: None,
            pace: Pace::Aside,
            compact_above,
        }
    }

    /// Works until nobody can ask any more.
    pub(super) fn run(mut self, mut jobs: Receiver<Box<dyn Job>>) {
        let mut taken = Vec::with_capacity(TAKEN);
        while jobs.blocking_recv_many(&mut taken, TAKEN) > 0 {
            for job in taken.drain(..) {
                self.take(job);
            }
            self.flush();
            self.compact();
        }
        self.close();
    }

    fn take(&mut self, mut job: Box<dyn Job>) {
        if self.stopped.is_none()
            && job.bound() > 0
            && let Err(error) = self.make_room(job.bound())
        {
            let error = failed(&self.name, job.call(), error);
            return job.answer(Err(error));
        }
        if let Some(why) = &self.stopped {
            let (store, why) = (self.name.clone(), why.clone());
            return job.answer(Err(Error::Stopped { store, why }));
        }
        job.decide(&mut self.desk);
        self.waiting.push(job);
    }

    /// Sees to it that `bound` more bytes fit, before anything is decided that could not be kept.
    fn make_room(&mut self, bound: usize) -> io::Result<()> {
        let full = self.desk.pending() + bound;
        if self.log.fits(full) && (full <= GROUP_BYTES || self.desk.pending() == 0) {
            return Ok(());
        }
        self.flush();
        if self.stopped.is_some() || self.log.fits(bound) {
            return Ok(());
        }
        self.roll(bound)
    }

    fn roll(&mut self, bound: usize) -> io::Result<()> {
        match self.log.roll(bound) {
            Ok(closed) => {
                self.on_disk.closed += closed;
                Ok(())
            }
            Err(NoSegment::Refused(error)) => Err(error),
            Err(NoSegment::Broken(error)) => {
                self.stop(&error);
                Err(error)
            }
        }
    }

    /// Writes the group and answers all that wait for it.
    fn flush(&mut self) {
        if self.desk.pending() > 0 {
            if let Err(error) = self.log.append(self.desk.group()) {
                self.stop(&error);
                for job in std::mem::take(&mut self.waiting) {
                    let outcome = failed(&self.name, job.call(), again(&error));
                    job.answer(Err(outcome));
                }
                return;
            }
            self.desk.written();
        }
        for job in self.waiting.drain(..) {
            job.answer(Ok(()));
        }
    }

    /// A flush that failed must not be tried again: the system may have dropped what it could
    /// not write, and would call the next one a success.
    fn stop(&mut self, error: &io::Error) {
        self.stopped = Some(error.to_string());
        self.desk.close();
    }

    /// Begins to replace the log if most of it no longer counts, and takes note of what has come of it.
    fn compact(&mut self) {
        if let Some(compaction) = self.compaction.take_if(|compaction| compaction.is_finished()) {
            self.compacted(compaction);
        }
        let log = self.on_disk.closed + self.log.segment.end as u64;
        if let Some(late) = self.compaction.as_ref().filter(|compaction| compaction.is_late(log)) {
            late.cancel();
            self.pace = Pace::Hurried;
        }
        if self.compaction.is_some() || self.stopped.is_some() || log < self.compact_above {
            return;
        }
        let (records, bytes) = self.desk.size();
        let live = (bytes + records * RECORD_OVERHEAD) as u64;
        let all = log + self.on_disk.snapshot.map_or(0, |(_, size)| size);
        self.compact_above = log + self.log.sizes.compact_above / 4;
        if live * 2 > all || self.roll(0).is_err() {
            return;
        }
        let plan = Plan {
            dir: Arc::clone(&self.log.dir),
            store: self.log.store,
            base: self.on_disk.snapshot.map(|(number, _)| number),
            until: self.log.segment.number,
            group: self.log.next,
        };
        match Compaction::start(plan, self.on_disk.closed, self.pace) {
            Ok(compaction) => self.compaction = Some(compaction),
            Err(error) => self.note(Note::NotCompacted { why: error.to_string() }),
        }
    }

    fn compacted(&mut self, compaction: Compaction) {
        let covered = compaction.covers();
        match compaction.join() {
            Ok(Some(snapshot)) => {
                self.on_disk.snapshot = Some(snapshot);
                self.on_disk.closed -= covered;
                self.compact_above = self.log.sizes.compact_above;
                self.pace = Pace::Aside;
            }
            Ok(None) => {}
            Err(error) => self.note(Note::NotCompacted { why: error.to_string() }),
        }
    }

    fn note(&self, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.last() != Some(&note) {
            notes.push(note);
        }
    }

    fn close(mut self) {
        if let Some(compaction) = self.compaction.take() {
            compaction.cancel();
            self.compacted(compaction);
        }
        if self.stopped.is_none() {
            // Nothing is lost without it: it only tells the next reader that nothing is missing.
            drop(self.log.seal());
        }
    }
}

fn failed(name: &str, call: &'static str, source: io::Error) -> Error {
    Error::Failed { store: name.to_owned(), call, source: source.into() }
}

/// The same error once more.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
