//! The decisions about a run, one after the other, as few bytes as they need: there are very many runs, and most of what
//! is noted of them is one of a few sentences. They lie in memory as they are written.

use std::borrow::{Borrow, Cow};
use std::fmt;

use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::pack::{Pack, Unpack};
use super::record::{Entry, Noted, SkippedBy};
use crate::seams::Timestamp;

/// What steps of a run say, written as a number. Fixed for ever: more are added at the end.
const SENTENCES: [&str; 10] = [
    "",
    "its time has come",
    "the next attempt is due",
    "no constraints to check",
    "constraints are to be checked",
    "checking constraints",
    "taking actions",
    "the work runs",
    "the work has ended",
    "it gave no sign of life for too long",
];

// How an entry begins. Fixed for ever.
const SENTENCE: u8 = 0;
const STATE: u8 = 1;
const REVISION: u8 = 2;
const WAITS: u8 = 3;
const SKIPPED: u8 = 4;
const CONSTRAINT: u8 = 5;
const CONSTRAINT_ERROR: u8 = 6;
const ACTION: u8 = 7;
const ADOPTED: u8 = 8;
const CANCEL: u8 = 9;
const IGNORED: u8 = 10;
/// It says the attempt, which is not the first.
const RETRIED: u8 = 0x20;
/// What was met, or went well.
const WELL: u8 = 0x40;

/// Entries in the order in which they were noted. The first eight bytes are the time of the first, of which each says how
/// much later it was; two more say how many there are.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Timeline(Vec<u8>);

/// So many bytes most runs need.
const USUAL: usize = 32;
/// What stands before the first entry.
const HEAD: usize = size_of::<i64>() + size_of::<u16>();

impl Timeline {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When its first entry is, and how many there are.
    fn head(&self) -> (i64, u16) {
        let Some(([base @ .., low, high], _)) = self.0.split_first_chunk::<HEAD>() else {
            return (0, 0);
        };
        let base: [u8; 8] = *base;
        (i64::from_le_bytes(base), u16::from_le_bytes([*low, *high]))
    }

    pub fn len(&self) -> usize {
        self.head().1.into()
    }

    pub fn iter(&self) -> Iter<'_> {
        Iter { base: self.head().0, rest: Unpack::of(self.0.get(HEAD..).unwrap_or_default()) }
    }

    pub fn contains(&self, entry: &Entry) -> bool {
        self.iter().any(|it| it == *entry)
    }

    /// Whoever says more than can be counted is not heard.
    pub fn push(&mut self, entry: impl Borrow<Entry>) {
        let entry = entry.borrow();
        if self.0.is_empty() {
            self.0.reserve(USUAL);
            self.0.extend(entry.at.0.to_le_bytes());
            self.0.extend([0; 2]);
        }
        let (base, count) = self.head();
        let Some(count) = count.checked_add(1) else { return };
        self.0[HEAD - 2..HEAD].copy_from_slice(&count.to_le_bytes());
        let mut to = Pack::onto(&mut self.0);
        to.signed(entry.at.0.wrapping_sub(base));
        write(entry, &mut to);
    }

    /// Adds what another one says.
    pub fn append(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.extend_from_slice(&other.0);
            return;
        }
        self.make_room_for(other);
        other.iter().for_each(|entry| self.push(entry));
    }

    /// Makes room for what another one says, and no more.
    pub(crate) fn make_room_for(&mut self, other: &Self) {
        self.0.reserve_exact(other.0.len());
    }

    /// Of more than so many entries, the first half of them and the newest.
    pub fn keep(&mut self, most: usize) {
        let over = self.len().saturating_sub(most);
        if over > 0 {
            let half = most / 2;
            let kept = self.iter().enumerate().filter(|(at, _)| *at < half || *at >= half + over);
            *self = kept.map(|(_, entry)| entry).collect();
        }
    }

    /// Lets go of room that is not needed.
    pub fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes what was written so; none if it is not.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let this = Self(bytes.to_vec());
        let mut iter = this.iter();
        let count = iter.by_ref().count();
        let is_whole = iter.rest.is_empty() && count == this.len();
        (is_whole && (count == 0) == bytes.is_empty()).then_some(this)
    }
}

fn write(entry: &Entry, to: &mut Pack<'_>) {
    let Entry { attempt, noted, .. } = entry;
    let mut begin = |kind: u8, well: bool| {
        let retried = if *attempt == 0 { 0 } else { RETRIED };
        to.byte(kind | retried | if well { WELL } else { 0 });
        if *attempt != 0 {
            to.number(u64::from(*attempt));
        }
    };
    match noted {
        Noted::State { to: state, why } => {
            let known = SENTENCES.iter().position(|known| known == why);
            if let Some(known) = known.and_then(|known| u8::try_from(known).ok()) {
                begin(SENTENCE, false);
                to.state(*state);
                to.byte(known);
            } else {
                begin(STATE, false);
                to.state(*state);
                to.text(why);
            }
        }
        Noted::Revision { revision } => {
            begin(REVISION, false);
            to.number(*revision);
        }
        Noted::Waits { why } => {
            begin(WAITS, false);
            to.text(why);
        }
        Noted::Skipped { by, why } => {
            begin(SKIPPED, false);
            to.byte(by.number());
            to.text(why);
        }
        Noted::Constraint { name, met, message } => {
            begin(CONSTRAINT, *met);
            to.text(name);
            to.text(message);
        }
        Noted::ConstraintError { name, message } => {
            begin(CONSTRAINT_ERROR, false);
            to.text(name);
            to.text(message);
        }
        Noted::Action { name, ok, message } => {
            begin(ACTION, *ok);
            to.text(name);
            to.text(message);
        }
        Noted::Adopted { evidence } => {
            begin(ADOPTED, false);
            to.text(evidence);
        }
        Noted::Cancel { why } => {
            begin(CANCEL, false);
            to.text(why);
        }
        Noted::Ignored { what } => {
            begin(IGNORED, false);
            to.text(what);
        }
    }
}

fn read(base: i64, from: &mut Unpack<'_>) -> Option<Entry> {
    let at = Timestamp(base.wrapping_add(from.signed()?));
    let first = from.byte()?;
    let attempt = if first & RETRIED == 0 { 0 } else { from.small()? };
    let well = first & WELL != 0;
    let noted = match first & !(RETRIED | WELL) {
        SENTENCE => {
            let to = from.state()?;
            Noted::State { to, why: Cow::Borrowed(SENTENCES.get(usize::from(from.byte()?))?) }
        }
        STATE => Noted::State { to: from.state()?, why: Cow::Owned(from.text()?.to_owned()) },
        REVISION => Noted::Revision { revision: from.number()? },
        WAITS => Noted::Waits { why: from.text()?.to_owned() },
        SKIPPED => {
            let by = SkippedBy::of_number(from.byte()?)?;
            Noted::Skipped { by, why: from.text()?.to_owned() }
        }
        CONSTRAINT => {
            let name = from.text()?.to_owned();
            Noted::Constraint { name, met: well, message: from.text()?.to_owned() }
        }
        CONSTRAINT_ERROR => {
            let name = from.text()?.to_owned();
            Noted::ConstraintError { name, message: from.text()?.to_owned() }
        }
        ACTION => {
            let name = from.text()?.to_owned();
            Noted::Action { name, ok: well, message: from.text()?.to_owned() }
        }
        ADOPTED => Noted::Adopted { evidence: from.text()?.to_owned() },
        CANCEL => Noted::Cancel { why: from.text()?.to_owned() },
        IGNORED => Noted::Ignored { what: from.text()?.to_owned() },
        _ => return None,
    };
    Some(Entry { at, attempt, noted })
}

/// The entries of a timeline, each made anew.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    base: i64,
    rest: Unpack<'a>,
}

impl Iterator for Iter<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let mut rest = self.rest.clone();
        let entry = read(self.base, &mut rest)?;
        self.rest = rest;
        Some(entry)
    }
}

impl<'a> IntoIterator for &'a Timeline {
    type Item = Entry;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<Entry> for Timeline {
    fn extend<T: IntoIterator<Item = Entry>>(&mut self, entries: T) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl FromIterator<Entry> for Timeline {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        let mut this = Self::default();
        this.extend(entries);
        this
    }
}

impl<const N: usize> From<[Entry; N]> for Timeline {
    fn from(entries: [Entry; N]) -> Self {
        entries.into_iter().collect()
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Timeline {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut seq = to.serialize_seq(None)?;
        for entry in self {
            seq.serialize_element(&entry)?;
        }
        seq.end()
    }
}

impl<'de> Deserialize<'de> for Timeline {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::<Entry>::deserialize(from).map(|entries| entries.into_iter().collect())
    }
}
