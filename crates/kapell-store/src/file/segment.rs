//! Reading a segment of the log.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;

use super::code::Changes;
use super::dir::failed;
use super::frame::{self, ALIGN, BadHeader, FORMAT, HEAD, HEADER, Head, Header, Kind};
use super::log::GOES_ON;
use crate::book::Change;
use crate::error::Error;

/// What a segment must say of itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Any, as long as no file was read.
    pub(super) store: Option<u64>,
    pub(super) number: u64,
    /// The number of its first group; any, as long as nothing is known of the former ones.
    pub(super) group: Option<u64>,
}

/// What was found in a segment.
#[derive(Debug)]
pub(super) struct Walked {
    /// Where the groups end.
    pub(super) end: usize,
    /// The number of the group behind the last one.
    pub(super) next: u64,
    /// Where the last group lies.
    pub(super) last: Option<Range<usize>>,
    pub(super) ending: Ending,
}

/// What is behind the last group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing.
    Open,
    /// Nothing, and the store was closed.
    Sealed,
    /// Nothing, because there is a next segment.
    GoesOn,
    /// A group that was never written to its end.
    Torn,
}

/// An error at a place in a file.
pub(super) fn damaged(path: &Path, offset: usize, why: impl Into<String>) -> Error {
    Error::Damaged { path: path.to_owned(), offset: offset as u64, why: why.into() }
}

/// Reads a whole segment into `bytes` and checks what it says of itself.
pub(super) fn read(path: &Path, want: Expected, bytes: &mut Vec<u8>) -> Result<Header, Error> {
    bytes.clear();
    File::open(path).and_then(|mut file| file.read_to_end(bytes)).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            damaged(path, 0, "it is missing")
        } else {
            failed(path, "open", error)
        }
    })?;
    let header = header(path, bytes, Kind::Log, want)?;
    let size = bytes.len();
    if header.size != size as u64 {
        let why = format!("it is {size} bytes long and should be {}", header.size);
        let shorter = size.min(usize::try_from(header.size).unwrap_or(usize::MAX));
        return Err(damaged(path, shorter, why));
    }
    Ok(header)
}

/// Reads and checks the header of a file.
pub(super) fn header(
    path: &Path,
    bytes: &[u8],
    kind: Kind,
    want: Expected,
) -> Result<Header, Error> {
    let Some(first) = bytes.first_chunk::<HEADER>() else {
        return Err(damaged(path, bytes.len(), "it ends within its header"));
    };
    let header = match Header::decode(first, kind) {
        Ok(header) => header,
        Err(BadHeader::Damaged) => {
            return Err(damaged(path, 0, "its header is not as it was written"));
        }
        Err(BadHeader::Format(found)) => {
            let store = format!("`{}`", path.display());
            return Err(Error::Format { store, found: found.to_string(), known: FORMAT });
        }
    };
    if want.store.is_some_and(|store| store != header.store) {
        return Err(damaged(path, 0, "it belongs to another store"));
    }
    if header.number != want.number {
        let why = format!("it is number {} under another name", header.number);
        return Err(damaged(path, 0, why));
    }
    if let Some(group) = want.group.filter(|group| *group != header.group) {
        let why = format!("it begins with group {}, not with group {group}", header.group);
        return Err(damaged(path, 0, why));
    }
    Ok(header)
}

/// Whether there never was a group in a segment.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    frame::is_zero(&bytes[HEADER..])
}

/// Goes through the groups of a segment and checks every byte of it.
pub(super) fn walk(
    path: &Path,
    bytes: &[u8],
    header: Header,
    mut each: impl FnMut(Change),
) -> Result<Walked, Error> {
    let mut walked = Walked { end: HEADER, next: header.group, last: None, ending: Ending::Open };
    while walked.end + HEAD <= bytes.len() {
        let at = walked.end;
        let rest = &bytes[at..];
        if frame::is_zero(rest) {
            break;
        }
        let head = Head::decode(rest, Kind::Log);
        let is_next = |head: &Head| head.store == header.store && head.number == walked.next;
        let group = head.filter(is_next).and_then(|head| Some((head, head.body(rest)?)));
        let Some((head, body)) = group else {
            bad_group(path, bytes, at, walked.next, header.store)?;
            walked.ending = Ending::Torn;
            break;
        };
        if walked.ending == Ending::GoesOn {
            return Err(damaged(path, at, "there is a group behind the last one"));
        }
        walked.ending = if body == GOES_ON {
            Ending::GoesOn
        } else {
            for change in Changes::of(body) {
                let unreadable = |_| damaged(path, at, "it holds a change that cannot be read");
                each(change.map_err(unreadable)?);
            }
            if body.is_empty() { Ending::Sealed } else { Ending::Open }
        };
        walked.end += head.framed();
        walked.next += 1;
        walked.last = Some(at..walked.end);
    }
    Ok(walked)
}

/// Decides about a group that is not as it should be: fine if it was never written to its end,
/// and so never acknowledged. That takes two signs: bytes are missing from it, and nothing was
/// written behind it, for a group is only begun when the one before it is on disk.
fn bad_group(path: &Path, bytes: &[u8], at: usize, next: u64, store: u64) -> Result<(), Error> {
    if let Some(head) = Head::decode(&bytes[at..], Kind::Log) {
        if head.store != store {
            return Err(damaged(path, at, "this group belongs to another store"));
        }
        if head.number != next {
            let why = format!("group {} is where group {next} belongs", head.number);
            return Err(damaged(path, at, why));
        }
    }
    let is_later = |offset: &usize| {
        Head::decode(&bytes[*offset..], Kind::Log)
            .is_some_and(|head| head.store == store && head.number >= next)
    };
    let later = (at + ALIGN..bytes.len()).step_by(ALIGN).find(is_later);
    if let Some(offset) = later {
        let why = format!("group {next} is not as it was written, and more follows at {offset}");
        return Err(damaged(path, at, why));
    }
    if frame::is_cut(bytes, at, Kind::Log) {
        return Ok(());
    }
    Err(damaged(path, at, format!("group {next} is not as it was written")))
}
