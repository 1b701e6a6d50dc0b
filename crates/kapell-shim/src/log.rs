//! What the program writes, kept in files of limited size of which the oldest are removed.
//!
//! The layout of a frame is that of `kapell-core/src/log.rs`: stream (1), time in milliseconds
//! (8), length (4), then the bytes. A file that could not be written to its end is cut back to its
//! last whole frame and never written again, so a reader that follows it never sees bytes change.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::rate::Rate;
use crate::{number, sys};

pub(crate) const HEAD: usize = 13;
/// As much is read and written at once.
pub(crate) const CHUNK: usize = 64 << 10;
const SMALLEST_FILE: u64 = 64 << 10;
const FILES: u64 = 8;
/// Room for remarks of ours before a frame.
const NOTES: u64 = 256;
/// After a failure, it is tried again not sooner than this.
const PAUSE_MS: u64 = 100;

#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Stream {
    Out = 1,
    Err = 2,
    Note = 3,
}

/// The file that is being written.
struct Open {
    file: File,
    path: PathBuf,
    length: u64,
}

pub(crate) struct Log {
    /// None: nothing is kept.
    dir: Option<PathBuf>,
    rate: Option<Rate>,
    limit: u64,
    file_limit: u64,
    open: Option<Open>,
    /// Numbers of the oldest file there may be, and of the next one.
    oldest: u64,
    next: u64,
    /// Bytes in all files but the open one.
    closed: u64,
    dropped: u64,
    /// What came faster than it may, since that was told last.
    over_rate: u64,
    removed: bool,
    pause_until: u64,
}

impl Log {
    /// Goes on behind the files that are there already.
    pub(crate) fn new(dir: Option<PathBuf>, limit: u64, rate: Option<u64>) -> Self {
        let (mut oldest, mut newest, mut closed) = (u64::MAX, 0, 0);
        for entry in dir.as_ref().map(fs::read_dir).into_iter().flatten().flatten().flatten() {
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            let Some(at) = name.strip_suffix(b".log").and_then(number::parse) else { continue };
            (oldest, newest) = (oldest.min(at), newest.max(at));
            closed += entry.metadata().map_or(0, |about| about.len());
        }
        Self {
            oldest: oldest.min(newest + 1),
            next: newest + 1,
            closed,
            ..Self::fresh(dir, limit, rate)
        }
    }

    /// Nothing was ever kept there; the directory is made with the first of it.
    pub(crate) fn fresh(dir: Option<PathBuf>, limit: u64, rate: Option<u64>) -> Self {
        Self {
            dir,
            rate: rate.map(|bytes| Rate::new(bytes, sys::monotonic_ms())),
            limit: limit.max(2 * SMALLEST_FILE),
            file_limit: (limit / FILES).max(SMALLEST_FILE),
            open: None,
            oldest: 1,
            next: 1,
            closed: 0,
            dropped: 0,
            over_rate: 0,
            removed: false,
            pause_until: 0,
        }
    }

    /// How much may be read at once: a file holds several frames.
    pub(crate) fn chunk(&self) -> usize {
        if self.file_limit < 4 * CHUNK as u64 { CHUNK / 4 } else { CHUNK }
    }

    /// Writes one frame. `bytes` begins with [`HEAD`] bytes of room for its head. What cannot be
    /// written is dropped: the program is never made to wait.
    pub(crate) fn write(&mut self, stream: Stream, bytes: &mut [u8]) {
        if self.dir.is_none() {
            return;
        }
        let text = &bytes[HEAD..];
        let kept = match &mut self.rate {
            Some(rate) => rate.take(text, sys::monotonic_ms()),
            None => text.len(),
        };
        if kept > 0 {
            self.keep(stream, &mut bytes[..HEAD + kept]);
        }
        self.over_rate += (bytes.len() - HEAD - kept) as u64;
    }

    fn keep(&mut self, stream: Stream, bytes: &mut [u8]) {
        let length = (bytes.len() - HEAD) as u64;
        if sys::monotonic_ms() < self.pause_until || !self.try_write(stream, bytes) {
            self.dropped += length;
        }
    }

    /// Says what was dropped, if it can be said now.
    pub(crate) fn finish(&mut self) {
        if self.dropped + self.over_rate > 0 && self.make_room(0) {
            self.tell_dropped();
        }
    }

    fn try_write(&mut self, stream: Stream, bytes: &mut [u8]) -> bool {
        self.make_room(bytes.len() as u64 + NOTES)
            && self.tell_dropped()
            && self.append(stream, bytes)
    }

    /// Has a file open that takes so many bytes more.
    fn make_room(&mut self, length: u64) -> bool {
        if self.open.as_ref().is_some_and(|open| open.length + length <= self.file_limit) {
            return true;
        }
        self.close();
        let mut removed_now = false;
        while self.closed + self.file_limit > self.limit && self.oldest < self.next {
            let path = self.path(self.oldest);
            if let Ok(about) = fs::metadata(&path) {
                let _gone = fs::remove_file(&path);
                self.closed = self.closed.saturating_sub(about.len());
                removed_now = true;
            }
            self.oldest += 1;
        }
        let path = self.path(self.next);
        let Ok(file) = self.create(&path) else { return self.fail() };
        self.next += 1;
        self.open = Some(Open { file, path, length: 0 });
        if removed_now && !self.removed {
            self.removed = true;
            let mut text = Vec::from([0; HEAD]);
            text.extend_from_slice(b"older output was removed: of all output, the last ");
            number::push(&mut text, self.limit, 0);
            text.extend_from_slice(b" bytes are kept\n");
            return self.append(Stream::Note, &mut text);
        }
        true
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        let create = || fs::OpenOptions::new().write(true).create_new(true).open(path);
        match (create(), &self.dir) {
            (Err(error), Some(dir)) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(dir)?;
                create()
            }
            (made, _) => made,
        }
    }

    fn tell_dropped(&mut self) -> bool {
        let lost = b" bytes of output were lost: they could not be written\n";
        let over = b" bytes of output were dropped: they came faster than its log may grow\n";
        if self.dropped > 0 && !self.tell(self.dropped, lost) {
            return false;
        }
        self.dropped = 0;
        if self.over_rate > 0 && !self.tell(self.over_rate, over) {
            return false;
        }
        self.over_rate = 0;
        true
    }

    fn tell(&mut self, count: u64, what: &[u8]) -> bool {
        let mut text = Vec::from([0; HEAD]);
        number::push(&mut text, count, 0);
        text.extend_from_slice(what);
        self.append(Stream::Note, &mut text)
    }

    /// Puts a frame behind the others, whole or not at all.
    fn append(&mut self, stream: Stream, bytes: &mut [u8]) -> bool {
        let Some(open) = &mut self.open else { return false };
        let length = u32::try_from(bytes.len() - HEAD).unwrap_or(u32::MAX);
        bytes[0] = stream as u8;
        bytes[1..9].copy_from_slice(&sys::wall_ms().to_be_bytes());
        bytes[9..HEAD].copy_from_slice(&length.to_be_bytes());
        if open.file.write_all(bytes).is_err() {
            return self.fail();
        }
        open.length += bytes.len() as u64;
        true
    }

    /// Leaves the file as it was before the failure, for good.
    fn fail(&mut self) -> bool {
        self.pause_until = sys::monotonic_ms() + PAUSE_MS;
        if let Some(open) = &self.open {
            let _cut = open.file.set_len(open.length);
        }
        self.close();
        false
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.length == 0 {
            let _gone = fs::remove_file(&open.path);
        }
        self.closed += open.length;
    }

    fn path(&self, at: u64) -> PathBuf {
        let mut name = Vec::with_capacity(16);
        number::push(&mut name, at, 8);
        name.extend_from_slice(b".log");
        let mut path = self.dir.clone().unwrap_or_default();
        // Digits and letters are text.
        path.push(str::from_utf8(&name).unwrap_or_default());
        path
    }
}
