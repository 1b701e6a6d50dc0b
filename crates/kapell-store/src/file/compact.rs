//! Replaces a log by what has come of it.
//!
//! A thread of its own reads the former snapshot and the segments that are closed, and writes the
//! next snapshot from them. It shares nothing with the writer but the disk, so changes need not
//! wait for it. It holds in memory what the log has changed, not the whole store.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};
use std::thread::JoinHandle;
use std::vec;

use nix::libc;

use super::dir::{Dir, failed};
use super::frame::Header;
use super::segment::{self, Ending, Expected, damaged};
use super::snapshot::{Reader, Writer};
use crate::book::Change;
use crate::error::Error;
use crate::model::{Key, Shard};

/// After how many changes to look whether the store is being closed.
const TURNS: u64 = 4096;

/// What is to be replaced.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) dir: Arc<Dir>,
    pub(super) store: u64,
    /// The former snapshot.
    pub(super) base: Option<u64>,
    /// The first segment that stays.
    pub(super) until: u64,
    /// The number of its first group.
    pub(super) group: u64,
}

/// How much of a processor a compaction may take from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// What nobody else wants: whoever asks the host something does not wait behind it.
    Aside,
    /// As much as everybody else: the log grows faster than it is replaced.
    Hurried,
}

/// A compaction that is under way.
#[derive(Debug)]
pub(super) struct Compaction {
    until: u64,
    covers: u64,
    pace: Pace,
    cancel: Arc<AtomicBool>,
    thread: JoinHandle<Result<Option<u64>, Error>>,
}

impl Compaction {
    /// Begins to replace segments that take `covers` bytes.
    pub(super) fn start(plan: Plan, covers: u64, pace: Pace) -> io::Result<Self> {
        let cancel = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&cancel);
        let until = plan.until;
        let named = std::thread::Builder::new().name("store-compact".to_owned());
        let thread = named.spawn(move || {
            if pace == Pace::Aside {
                step_aside();
            }
            plan.run(&|| seen.load(atomic::Ordering::Relaxed))
        })?;
        Ok(Self { until, covers, pace, cancel, thread })
    }

    /// Whether as much has come to a log of `log` bytes as is being replaced, because others leave no time for it.
    pub(super) const fn is_late(&self, log: u64) -> bool {
        matches!(self.pace, Pace::Aside) && log / 2 > self.covers
    }

    /// How many bytes of the log it replaces.
    pub(super) const fn covers(&self) -> u64 {
        self.covers
    }

    pub(super) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    pub(super) fn cancel(&self) {
        self.cancel.store(true, atomic::Ordering::Relaxed);
    }

    /// The number of the new snapshot and its length, or nothing if it was cancelled.
    pub(super) fn join(self) -> Result<Option<(u64, u64)>, Error> {
        let size = self.thread.join().expect("a compaction does not panic")?;
        Ok(size.map(|size| (self.until, size)))
    }
}

impl Plan {
    /// Writes the next snapshot, then removes what it stands for. Says how long it is, or
    /// nothing if it was cancelled.
    pub(super) fn run(&self, is_cancelled: &dyn Fn() -> bool) -> Result<Option<u64>, Error> {
        let path = self.dir.snapshot(self.until);
        let written = self.write(is_cancelled);
        if !matches!(written, Ok(Some(_))) {
            Dir::abandon(&path);
            return written;
        }
        let first = self.base.unwrap_or(1);
        let old = (first..self.until).map(|number| self.dir.segment(number));
        for path in old.chain(self.base.map(|number| self.dir.snapshot(number))) {
            // What cannot be removed now is removed when the store is opened next.
            drop(self.dir.remove(&path));
        }
        written
    }

    fn write(&self, is_cancelled: &dyn Fn() -> bool) -> Result<Option<u64>, Error> {
        let path = self.dir.snapshot(self.until);
        let failed = |error| failed(&path, "compact", error);
        let Some(changed) = self.read_log(is_cancelled)? else { return Ok(None) };
        let mut changed = changed.into_iter().map(|ByPlace(change)| change).peekable();
        let header = Header { store: self.store, number: self.until, group: self.group, size: 0 };
        let mut to = Writer::begin(&self.dir, header).map_err(failed)?;
        let mut former = Former::open(&self.dir, self.base)?;
        let mut next = former.next()?;
        for turn in 0_u64.. {
            if next.is_none() && changed.peek().is_none() {
                break;
            }
            if turn % TURNS == 0 && is_cancelled() {
                return Ok(None);
            }
            let order = match (&next, changed.peek()) {
                (Some(old), Some(new)) => place(old).cmp(&place(new)),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let change = if order.is_lt() { next.take() } else { changed.next() };
            if order.is_le() {
                next = former.next()?;
            }
            match &change {
                Some(Change::Delete { .. }) | None => {}
                Some(stays) => to.push(stays).map_err(failed)?,
            }
        }
        to.finish().map(Some).map_err(failed)
    }

    /// The last change of each thing that the log has changed.
    fn read_log(
        &self,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<BTreeSet<ByPlace>>, Error> {
        let mut changed = BTreeSet::new();
        let mut bytes = Vec::new();
        let first = self.base.unwrap_or(1);
        let mut want = Expected { store: Some(self.store), number: first, group: None };
        for number in first..self.until {
            if is_cancelled() {
                return Ok(None);
            }
            let path = self.dir.segment(number);
            want.number = number;
            let header = segment::read(&path, want, &mut bytes)?;
            let walked = segment::walk(&path, &bytes, header, |change| {
                changed.replace(ByPlace(change));
            })?;
            if walked.ending != Ending::GoesOn {
                return Err(damaged(&path, walked.end, "it ends too early"));
            }
            want.group = Some(walked.next);
        }
        Ok(Some(changed))
    }
}

/// Lets every other thread of the machine go first. Where that is not to be had, it is one like the others.
#[expect(unsafe_code, reason = "nix has no call for it; numbers of this thread only")]
fn step_aside() {
    let none = libc::sched_param { sched_priority: 0 };
    let _as_before = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) };
}

/// What a change is about, in the order of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    Entry(&'a Key),
    Fence(Shard),
    Record(Shard, &'a [u8]),
}

fn place(change: &Change) -> Place<'_> {
    match change {
        Change::Entry { key, .. } => Place::Entry(key),
        Change::Fence { shard, .. } => Place::Fence(*shard),
        Change::Put { shard, pair } => Place::Record(*shard, pair.key()),
        Change::Delete { shard, key } => Place::Record(*shard, key.as_bytes()),
    }
}

/// Equal to every other change of the same thing.
#[derive(Debug)]
struct ByPlace(Change);

impl Ord for ByPlace {
    fn cmp(&self, other: &Self) -> Ordering {
        place(&self.0).cmp(&place(&other.0))
    }
}

impl PartialOrd for ByPlace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByPlace {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByPlace {}

/// The changes of the former snapshot, one by one.
#[derive(Debug)]
struct Former {
    reader: Option<Reader>,
    page: vec::IntoIter<Change>,
}

impl Former {
    fn open(dir: &Dir, number: Option<u64>) -> Result<Self, Error> {
        let open = |number| Reader::open(&dir.snapshot(number), number);
        Ok(Self { reader: number.map(open).transpose()?, page: Vec::new().into_iter() })
    }

    fn next(&mut self) -> Result<Option<Change>, Error> {
        if let Some(change) = self.page.next() {
            return Ok(Some(change));
        }
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let mut page = Vec::new();
        if !reader.page(|change| page.push(change))? {
            self.reader = None;
        }
        self.page = page.into_iter();
        Ok(self.page.next())
    }
}
