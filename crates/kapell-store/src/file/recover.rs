//! From files to a book. Nothing is changed unless all of it could be read.

use std::fs::OpenOptions;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use kapell_core::seams::Moment;

use super::bulk::Bulk;
use super::dir::{Dir, Listing, failed};
use super::frame::HEADER;
use super::log::{Log, NoSegment, Segment, Sizes};
use super::note::Note;
use super::segment::{self, Ending, Expected, Walked, damaged};
use super::snapshot::Reader;
use crate::book::Book;
use crate::error::Error;

/// A store as it was found.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) book: Book,
    pub(super) log: Log,
    pub(super) on_disk: OnDisk,
    pub(super) notes: Vec<Note>,
}

/// What the files of a store take.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OnDisk {
    /// The snapshot that the log begins behind: its number and how long it is.
    pub(super) snapshot: Option<(u64, u64)>,
    /// The segments before the one that is being written.
    pub(super) closed: u64,
}

/// Lays out an empty store.
pub(super) fn create(dir: &Arc<Dir>, sizes: Sizes) -> Result<Recovered, Error> {
    let store = RandomState::new().hash_one(std::process::id());
    let segment = match Segment::create(dir, store, 1, 1, sizes, 0) {
        Ok(segment) => segment,
        Err(NoSegment::Refused(error) | NoSegment::Broken(error)) => {
            return Err(failed(dir.path(), "create", error));
        }
    };
    let log = Log { dir: Arc::clone(dir), store, segment, next: 1, sizes, is_sealed: true };
    Ok(Recovered { book: Book::default(), log, on_disk: OnDisk::default(), notes: Vec::new() })
}

/// Reads a store and brings its files in order. Times to live begin `now`.
pub(super) fn recover(
    dir: &Arc<Dir>,
    found: &Listing,
    now: Moment,
    sizes: Sizes,
) -> Result<Recovered, Error> {
    let mut bulk = Bulk::new(now);
    let (first, on_disk, want) = read_snapshot(dir, found, &mut bulk)?;
    let end = read_log(dir, found, first, want, &mut bulk)?;
    let order = Order { dir, found, first, end: &end };
    let notes = order.make().map_err(|error| failed(dir.path(), "open", error))?;
    let path = dir.segment(end.number);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let segment = Segment {
        number: end.number,
        file: file.map_err(|error| failed(&path, "open", error))?,
        size: end.size,
        end: end.walked.end,
    };
    let log = Log {
        dir: Arc::clone(dir),
        store: end.store,
        segment,
        next: end.walked.next,
        sizes,
        is_sealed: matches!(end.walked.ending, Ending::Sealed),
    };
    let on_disk = OnDisk { closed: end.closed, ..on_disk };
    Ok(Recovered { book: bulk.finish(), log, on_disk, notes })
}

/// Reads the newest snapshot. Says which segment comes first behind it, and what it must say of itself.
fn read_snapshot(
    dir: &Dir,
    found: &Listing,
    bulk: &mut Bulk,
) -> Result<(u64, OnDisk, Expected), Error> {
    let Some(&number) = found.snapshots.last() else {
        let want = Expected { store: None, number: 1, group: Some(1) };
        return Ok((1, OnDisk::default(), want));
    };
    let mut reader = Reader::open(&dir.snapshot(number), number)?;
    while reader.page(|change| bulk.add(change))? {}
    let header = reader.header();
    let want = Expected { store: Some(header.store), number, group: Some(header.group) };
    Ok((number, OnDisk { snapshot: Some((number, header.size)), closed: 0 }, want))
}

/// Where the log ends.
#[derive(Debug)]
struct End {
    store: u64,
    number: u64,
    size: usize,
    closed: u64,
    walked: Walked,
    /// What is behind the last group.
    tail: Vec<u8>,
    /// The last group of all: its segment, its place there and its bytes.
    last: Option<(u64, u64, Vec<u8>)>,
    /// A next segment was made, but nothing had come of it yet.
    blank: Option<u64>,
}

fn read_log(
    dir: &Dir,
    found: &Listing,
    first: u64,
    mut want: Expected,
    bulk: &mut Bulk,
) -> Result<End, Error> {
    let mut bytes = Vec::new();
    let (mut closed, mut last) = (0, None);
    let newest = found.segments.last().copied().unwrap_or(first);
    for number in first.. {
        let path = dir.segment(number);
        want.number = number;
        let header = segment::read(&path, want, &mut bytes)?;
        let walked = segment::walk(&path, &bytes, header, |change| bulk.add(change))?;
        if let Some(range) = &walked.last {
            last = Some((number, range.start as u64, bytes[range.clone()].to_vec()));
        }
        want = Expected { store: Some(header.store), number, group: Some(walked.next) };
        if walked.ending == Ending::GoesOn {
            closed += walked.end as u64;
            continue;
        }
        let mut end = End {
            store: header.store,
            number,
            size: bytes.len(),
            closed,
            tail: bytes[walked.end..].to_vec(),
            walked,
            last,
            blank: None,
        };
        if number < newest {
            end.blank = Some(blank(dir, &end, newest, &mut bytes)?);
        }
        return Ok(end);
    }
    unreachable!("there are fewer segments than numbers")
}

/// A crash may leave one segment behind the end of the log, if nothing is in it.
fn blank(dir: &Dir, end: &End, newest: u64, bytes: &mut Vec<u8>) -> Result<u64, Error> {
    let number = end.number + 1;
    let want = Expected { store: Some(end.store), number, group: None };
    segment::read(&dir.segment(number), want, bytes)?;
    if number == newest && segment::is_blank(bytes) {
        return Ok(number);
    }
    let why = format!("the log ends here, though there is a segment {newest}");
    Err(damaged(&dir.segment(end.number), end.walked.end, why))
}

/// Brings files in order that a crash has left.
#[derive(Debug)]
struct Order<'a> {
    dir: &'a Dir,
    found: &'a Listing,
    first: u64,
    end: &'a End,
}

impl Order<'_> {
    fn make(&self) -> io::Result<Vec<Note>> {
        let Self { dir, found, first, end } = *self;
        // What we saw may not be on disk yet, and what follows builds on it.
        dir.sync()?;
        let mut notes = Vec::new();
        if end.walked.ending == Ending::Torn {
            notes.push(self.cut()?);
        }
        let segments = found.segments.iter().filter(|number| **number < first);
        for number in segments.chain(&end.blank) {
            dir.remove(&dir.segment(*number))?;
        }
        for number in found.snapshots.iter().rev().skip(1) {
            dir.remove(&dir.snapshot(*number))?;
        }
        for path in &found.temporary {
            dir.remove(path)?;
        }
        if let Some((number, offset, group)) = &end.last {
            write(&dir.segment(*number), *offset, group)?;
        }
        dir.sync()?;
        Ok(notes)
    }

    /// Cuts off a group that was never written to its end, and keeps it aside.
    fn cut(&self) -> io::Result<Note> {
        let Self { dir, end, .. } = *self;
        let (number, offset) = (end.number, end.walked.end);
        let length = end.tail.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let kept = dir.torn(number, offset);
        dir.replace(&kept, &end.tail[..length])?;
        write(&dir.segment(number), offset as u64, &vec![0; length])?;
        debug_assert!(offset >= HEADER, "a header is not torn");
        Ok(Note::Torn { path: dir.segment(number), offset: offset as u64, kept })
    }
}

fn write(path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(bytes, offset)?;
    file.sync_data()
}
