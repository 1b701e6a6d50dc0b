//! What stores hold, in terms that every one of them understands.

use std::fmt;
use std::time::Duration;

use kapell_core::seat::{Epoch, Seat};

/// Into how many shards a board is cut, fixed when a store is created.
pub const SHARDS: u16 = 16;

/// A binary name, compared byte by byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<[u8]>);

impl Key {
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// How often a key was inserted. It survives deletion and expiry and never goes back, so
/// whoever inserts with the next one has a number that no other insert ever had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

impl Generation {
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What a store says about one key with a time to live.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Zero if the key was never inserted.
    pub generation: Generation,
    /// What stands there now, if anything does.
    pub held: Option<Held>,
}

/// A value that stands, and for how long it will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub value: Vec<u8>,
    /// By the store's own clock; none if it does not expire.
    pub remaining: Option<Duration>,
}

/// The answer to a conditional write. An error instead of an answer means: nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Write {
    Done,
    /// The condition did not hold: someone else was faster. Nothing changed.
    Lost,
}

impl Write {
    pub const fn of(done: bool) -> Self {
        if done { Self::Done } else { Self::Lost }
    }

    pub const fn is_done(self) -> bool {
        matches!(self, Self::Done)
    }
}

/// A part of a seat's board within which changes are atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    pub seat: Seat,
    /// `0..SHARDS`
    pub number: u16,
}

impl Shard {
    pub fn all(seat: Seat) -> impl Iterator<Item = Self> {
        (0..SHARDS).map(move |number| Self { seat, number })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.seat, self.number)
    }
}

/// What a commit must name exactly to be let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence {
    pub epoch: Epoch,
    /// How many commits this epoch has made.
    pub seq: u64,
}

impl Fence {
    #[must_use]
    pub const fn next(self) -> Self {
        Self { epoch: self.epoch, seq: self.seq + 1 }
    }

    /// Big-endian, so that later fences have greater bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.epoch.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.seq.to_be_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (epoch, seq) = bytes.split_at_checked(8)?;
        Some(Self {
            epoch: Epoch(u64::from_be_bytes(epoch.try_into().ok()?)),
            seq: u64::from_be_bytes(seq.try_into().ok()?),
        })
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.seq)
    }
}

/// One change of a commit. Of several changes to one key the last one counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op {
    Put(Key, Vec<u8>),
    Delete(Key),
}

impl Op {
    pub const fn key(&self) -> &Key {
        match self {
            Self::Put(key, _) | Self::Delete(key) => key,
        }
    }

    /// What it counts towards [`Limits::commit_bytes`].
    pub fn bytes(&self) -> usize {
        match self {
            Self::Put(key, value) => key.as_bytes().len() + value.len(),
            Self::Delete(key) => key.as_bytes().len(),
        }
    }
}

/// The answer to a commit. An error instead of an answer means that the outcome is unknown:
/// send the same commit again; [`Commit::Fenced`] with the successor of the fence that it names
/// means that the first one has landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Commit {
    /// It landed; the fence is now the successor of the one that was named.
    Done,
    /// The fence is another one. Nothing changed.
    Fenced(Fence),
}

/// The answer to raising the fences of a seat.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Raise {
    /// All stand at the epoch asked for; where each of them stands, by shard number.
    Done(Vec<Fence>),
    /// At least one stands at this higher epoch. Which of the others were raised is not said.
    Fenced(Epoch),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub key: Key,
    pub value: Vec<u8>,
}

/// Some records of a shard in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub items: Vec<Item>,
    /// Behind which key to go on; none at the end. It need not be one of an item: a page may be empty and have more behind
    /// it, where much was deleted.
    pub next: Option<Key>,
}

impl Page {
    /// One behind whose last item there may be more.
    pub fn of(items: Vec<Item>, more: bool) -> Self {
        let last = items.last().filter(|_| more);
        Self { next: last.map(|item| item.key.clone()), items }
    }
}

/// What a store can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Changes in one commit.
    pub commit_ops: usize,
    /// Keys and values of one commit together.
    pub commit_bytes: usize,
    /// One value.
    pub value_bytes: usize,
    /// One key.
    pub key_bytes: usize,
}

/// How a store counts time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// The shortest time to live that it honours.
    pub shortest: Duration,
    /// How much later than promised an entry may go.
    pub lag: Duration,
}

/// The largest value of an entry: 64 KiB, and what seals them.
pub const ENTRY_BYTES: usize = 65 << 10;
/// The largest key.
pub const KEY_BYTES: usize = 1024;
/// The largest record.
pub const RECORD_BYTES: usize = 256 << 10;
