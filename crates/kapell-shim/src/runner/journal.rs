//! What has begun and how it ended, for whoever comes after us if we are killed.
//!
//! A parcel a piece of news, each with its hash behind it (8). What is going to be started is written before it is, so
//! whatever ever ran is found here; how something ended has its room on the disk before it is started.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use super::kernel;
use super::parcel::{self, BOOT, ENDED, INTENT, NUMBER, Parcel, RELEASE, Read};
use crate::record;

const FILE: &str = "journal";
const DRAFT: &str = "journal.draft";
const HASH: usize = 8;
/// Room on the disk is asked for in such pieces.
const STEP: u64 = 256 << 10;
/// What an end and a release take at most, with a name of any length.
const MOST_LATER: u64 = 2 * (4 + 2 + 255 + 16 + HASH as u64) + record::LONGEST as u64;
/// A longer file is written anew, if most of it is of no use any more.
const LONG: u64 = 4 << 20;

/// What is known of one program.
pub(super) struct Story {
    pub(super) tag: Vec<u8>,
    pub(super) began_ms: u64,
    pub(super) pid: Option<i32>,
    /// When and how.
    pub(super) end: Option<(u64, Vec<u8>)>,
}

pub(super) type Stories = BTreeMap<Vec<u8>, Story>;

pub(super) struct Journal {
    file: File,
    length: u64,
    room: u64,
    /// Not yet in the file.
    waiting: Vec<u8>,
}

/// Reads what an earlier runner has left; of an earlier start of the machine only what has ended.
pub(super) fn load(boot: &[u8]) -> Stories {
    let bytes = fs::read(FILE).unwrap_or_default();
    let (mut rest, mut stories, mut is_of_this_boot) = (&bytes[..], Stories::new(), false);
    while let Some((Parcel { kind, name, rest: body }, length)) = whole(rest) {
        rest = &rest[length..];
        match kind {
            BOOT => is_of_this_boot = name == boot,
            INTENT => {
                let Some((began_ms, tag)) = parcel::number(body) else { continue };
                let story = Story { tag: tag.to_vec(), began_ms, pid: None, end: None };
                stories.insert(name.to_vec(), story);
            }
            NUMBER => {
                let number = body.first_chunk().map(|bytes| i32::from_be_bytes(*bytes));
                if let Some(story) = stories.get_mut(name) {
                    story.pid = number;
                }
            }
            ENDED => {
                let end = parcel::number(body).and_then(|(at, rest)| {
                    parcel::number(rest).map(|(_left, record)| (at, record.to_vec()))
                });
                if let Some(story) = stories.get_mut(name) {
                    story.end = end;
                }
            }
            RELEASE => drop(stories.remove(name)),
            _ => {}
        }
    }
    stories.retain(|_, story| is_of_this_boot || story.end.is_some());
    stories
}

/// A parcel whose hash is right. What was cut short is the end of the file.
fn whole(bytes: &[u8]) -> Option<(Parcel<'_>, usize)> {
    let Read::Whole(parcel, length) = parcel::read(bytes) else { return None };
    let sum = bytes.get(length..)?.first_chunk::<HASH>()?;
    (u64::from_be_bytes(*sum) == record::hash(&bytes[..length])).then_some((parcel, length + HASH))
}

impl Journal {
    /// Begins a file with these stories in it.
    pub(super) fn begin<'a>(
        boot: &[u8],
        stories: impl Iterator<Item = (&'a Vec<u8>, &'a Story)>,
    ) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(DRAFT)?;
        let mut journal = Self { file, length: 0, room: 0, waiting: Vec::new() };
        journal.note(BOOT, boot, &[]);
        for (name, Story { tag, began_ms, pid, end }) in stories {
            journal.note(INTENT, name, &[&began_ms.to_be_bytes(), tag]);
            if let Some(pid) = pid {
                journal.note(NUMBER, name, &[&pid.to_be_bytes()]);
            }
            if let Some((at, record)) = end {
                journal.note(ENDED, name, &[&at.to_be_bytes(), &[0; 8], record]);
            }
        }
        journal.flush()?;
        fs::rename(DRAFT, FILE)?;
        Ok(journal)
    }

    pub(super) fn note(&mut self, kind: u8, name: &[u8], parts: &[&[u8]]) {
        let from = self.waiting.len();
        parcel::push(&mut self.waiting, kind, name, parts);
        let sum = record::hash(&self.waiting[from..]);
        self.waiting.extend_from_slice(&sum.to_be_bytes());
    }

    /// Writes what waits. If that fails it is still waiting.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.file.write_all_at(&self.waiting, self.length)?;
            self.length += self.waiting.len() as u64;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Sees to it that what waits, and how so many programs will end, finds room on the disk.
    pub(super) fn make_room(&mut self, programs: usize) -> Result<(), i32> {
        let later = MOST_LATER.saturating_mul(programs as u64);
        let needed = self.length + self.waiting.len() as u64 + later;
        if needed > self.room {
            let room = needed.next_multiple_of(STEP);
            kernel::make_room(self.file.as_raw_fd(), 0, room)?;
            self.room = room;
        }
        Ok(())
    }

    /// Whether it is worth writing anew, for as many stories as are left.
    pub(super) fn is_long(&self, stories: usize) -> bool {
        self.length > LONG && (stories as u64).saturating_mul(1024) < self.length / 2
    }

    /// Takes back what waits from here on: see [`Journal::mark`].
    pub(super) fn forget_from(&mut self, mark: usize) {
        self.waiting.truncate(mark);
    }

    pub(super) fn mark(&self) -> usize {
        self.waiting.len()
    }
}
