//! The log that is being written: groups of changes in segments that were full of zeros before.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use super::dir::Dir;
use super::frame::{self, HEADER, Header, Kind};

/// The body of the last group of a segment: there is a next segment.
pub(super) const GOES_ON: &[u8] = &[0xff];
/// What a segment keeps free for such a group, and for one that says that the store was closed.
const RESERVE: usize = 2 * frame::framed(1);
const ZEROS: usize = 1 << 20;

/// How large things are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// A segment; one for a larger group is larger.
    pub(super) segment: usize,
    /// No log below this is compacted.
    pub(super) compact_above: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { segment: 8 << 20, compact_above: 64 << 20 }
    }
}

/// Where the next group goes.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) dir: Arc<Dir>,
    /// The same in all files of this store.
    pub(super) store: u64,
    pub(super) segment: Segment,
    /// The number of the next group.
    pub(super) next: u64,
    pub(super) sizes: Sizes,
    /// Nothing was written since the store was opened or last closed.
    pub(super) is_sealed: bool,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) file: File,
    pub(super) size: usize,
    /// Where the next group begins.
    pub(super) end: usize,
}

/// Why there is no next segment.
#[derive(Debug)]
pub(super) enum NoSegment {
    /// Nothing has happened: the log can go on once there is space.
    Refused(io::Error),
    /// What is on disk is no longer known.
    Broken(io::Error),
}

impl Log {
    /// Whether a group with a body of at most `body` bytes fits into this segment.
    pub(super) const fn fits(&self, body: usize) -> bool {
        self.segment.end + frame::framed(body) + RESERVE <= self.segment.size
    }

    /// Writes a group that was [begun](frame::begin). When it returns, the group is on disk.
    pub(super) fn append(&mut self, group: &mut Vec<u8>) -> io::Result<()> {
        frame::seal(group, Kind::Log, self.store, self.next);
        self.segment.file.write_all_at(group, self.segment.end as u64)?;
        self.segment.file.sync_data()?;
        self.segment.end += group.len();
        self.next += 1;
        self.is_sealed = false;
        Ok(())
    }

    /// Goes on in a new segment, with room for a group with a body of `body` bytes. Says how
    /// long the former one has become.
    pub(super) fn roll(&mut self, body: usize) -> Result<u64, NoSegment> {
        let number = self.segment.number + 1;
        // The group that says so comes between.
        let first = self.next + 1;
        let segment = Segment::create(&self.dir, self.store, number, first, self.sizes, body)?;
        let mut mark = Vec::new();
        frame::begin(&mut mark);
        mark.extend_from_slice(GOES_ON);
        self.append(&mut mark).map_err(NoSegment::Broken)?;
        self.dir.step();
        let closed = self.segment.end as u64;
        self.segment = segment;
        Ok(closed)
    }

    /// Says that the store was closed: from then on a missing end cannot pass for one that was never written.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        let has_room = self.segment.end + RESERVE <= self.segment.size;
        if self.is_sealed || !has_room {
            return Ok(());
        }
        let mut empty = Vec::new();
        frame::begin(&mut empty);
        self.append(&mut empty)?;
        self.is_sealed = true;
        Ok(())
    }
}

impl Segment {
    /// Makes an empty segment. All of its space is written once, for then a group costs no
    /// more than its own bytes: the file system has nothing to note about them.
    pub(super) fn create(
        dir: &Dir,
        store: u64,
        number: u64,
        group: u64,
        sizes: Sizes,
        body: usize,
    ) -> Result<Self, NoSegment> {
        let size = sizes.segment.max(HEADER + frame::framed(body) + RESERVE);
        let size = size.next_multiple_of(frame::ALIGN);
        let header = Header { store, number, group, size: size as u64 };
        let path = dir.segment(number);
        let file = prepare(dir, &path, header, size).map_err(|error| {
            Dir::abandon(&path);
            NoSegment::Refused(error)
        })?;
        dir.publish(&path).map_err(NoSegment::Broken)?;
        Ok(Self { number, file, size, end: HEADER })
    }
}

fn prepare(dir: &Dir, path: &Path, header: Header, size: usize) -> io::Result<File> {
    let file = dir.begin(path)?;
    let length = i64::try_from(size).map_err(io::Error::other)?;
    // A full disk is seen here, before anything is written; not every file system can say.
    match fallocate(&file, FallocateFlags::empty(), 0, length) {
        Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut bytes = vec![0; size.min(ZEROS)];
    bytes[..HEADER].copy_from_slice(&header.encode(Kind::Log));
    let mut at = 0;
    while at < size {
        let length = bytes.len().min(size - at);
        file.write_all_at(&bytes[..length], at as u64)?;
        bytes[..HEADER].fill(0);
        at += length;
    }
    file.sync_all()?;
    Ok(file)
}
