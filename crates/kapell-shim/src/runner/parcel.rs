//! What goes over the socket and into the journal: parcels, each with its length in front.
//!
//! The layout is `kapell-backend`'s too: length of the rest (4), kind (1), length of the name (1), the name, and what
//! the kind has besides. Numbers have their highest byte first.

/// Nobody has a longer one.
const LONGEST: usize = 64 << 20;
pub(super) const HEAD: usize = 4;

/// From the host: start this. A tag with its length (2), then the spec.
pub(super) const LAUNCH: u8 = b'L';
/// From the host: ask it to end.
pub(super) const STOP: u8 = b'S';
/// From the host: end it now.
pub(super) const KILL: u8 = b'K';
/// From the host: what became of it is stored elsewhere. In the journal the same.
pub(super) const RELEASE: u8 = b'R';
/// From the host: it leads for so many milliseconds more (8) unless it says so again; nothing outlives that.
pub(super) const LEASE: u8 = b'T';
/// To the host: this is here, and was before it was asked for. When it was begun (8), its tag.
pub(super) const FOUND: u8 = b'F';
/// To the host: all that is here has been told. In the place of a name, by which rules we speak.
pub(super) const WELCOME: u8 = b'W';
/// To the host: it runs. Since when (8).
pub(super) const STARTED: u8 = b'B';
/// To the host: it does not run and never will. Stage (1) and error (4).
pub(super) const FAILED: u8 = b'X';
/// When (8), the number of a directory with something in it (8), and the record of how it ended. In the journal the same.
pub(super) const ENDED: u8 = b'E';
/// In the journal: it is going to be started. When (8), its tag.
pub(super) const INTENT: u8 = b'I';
/// In the journal: the number of its process (4).
pub(super) const NUMBER: u8 = b'P';
/// In the journal: since which start of the machine it is written, in the place of a name.
pub(super) const BOOT: u8 = b'M';

pub(super) struct Parcel<'a> {
    pub(super) kind: u8,
    pub(super) name: &'a [u8],
    pub(super) rest: &'a [u8],
}

pub(super) enum Read<'a> {
    Whole(Parcel<'a>, usize),
    NotYet,
    Damaged,
}

/// Reads the first of them, and tells how long it is.
pub(super) fn read(bytes: &[u8]) -> Read<'_> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Read::NotYet };
    let Ok(length) = usize::try_from(u32::from_be_bytes(*head)) else { return Read::Damaged };
    if !(2..=LONGEST).contains(&length) {
        return Read::Damaged;
    }
    let Some(body) = rest.get(..length) else { return Read::NotYet };
    let (kind, name) = (body[0], usize::from(body[1]));
    match body[2..].split_at_checked(name) {
        Some((name, rest)) => Read::Whole(Parcel { kind, name, rest }, HEAD + length),
        None => Read::Damaged,
    }
}

/// Appends one. Names are short: the host sees to that, and `read` has.
pub(super) fn push(to: &mut Vec<u8>, kind: u8, name: &[u8], parts: &[&[u8]]) {
    let length = 2 + name.len() + parts.iter().map(|part| part.len()).sum::<usize>();
    to.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    to.extend_from_slice(&[kind, u8::try_from(name.len()).unwrap_or(u8::MAX)]);
    to.extend_from_slice(name);
    for part in parts {
        to.extend_from_slice(part);
    }
}

/// The number that `rest` begins with, and what is behind it.
pub(super) fn number(rest: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}
