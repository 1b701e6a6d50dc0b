//! What goes over the socket of a runner. The layout is told in `kapell-shim/src/runner/parcel.rs`.

use super::super::trouble::{Failure, Stage};

pub(super) const STOP: u8 = b'S';
pub(super) const KILL: u8 = b'K';
pub(super) const RELEASE: u8 = b'R';
pub(super) const LEASE: u8 = b'T';
const LAUNCH: u8 = b'L';
const FOUND: u8 = b'F';
const WELCOME: u8 = b'W';
const STARTED: u8 = b'B';
const FAILED: u8 = b'X';
const ENDED: u8 = b'E';
const HEAD: usize = 4;

/// By which rules we speak.
const RULES: &[u8] = b"kapell-runner-1";

/// What a runner says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// It was there before we came or asked for it.
    Found {
        began_ms: i64,
        tag: &'a [u8],
    },
    /// All that was there has been told.
    Welcome,
    Started {
        began_ms: i64,
    },
    Failed(Failure),
    Ended {
        at_ms: i64,
        /// A directory with something in it, which nobody needs any more.
        left: Option<u64>,
        record: &'a [u8],
    },
    /// It goes by other rules, or by none.
    Nonsense,
}

pub(super) fn push(to: &mut Vec<u8>, kind: u8, guid: &str, parts: &[&[u8]]) {
    let length = 2 + guid.len() + parts.iter().map(|part| part.len()).sum::<usize>();
    to.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    to.extend_from_slice(&[kind, u8::try_from(guid.len()).unwrap_or(u8::MAX)]);
    to.extend_from_slice(guid.as_bytes());
    for part in parts {
        to.extend_from_slice(part);
    }
}

pub(super) fn launch(guid: &str, tag: &[u8], spec: &[u8]) -> Vec<u8> {
    let mut parcel = Vec::with_capacity(16 + guid.len() + tag.len() + spec.len());
    let length = u16::try_from(tag.len()).unwrap_or(u16::MAX).to_be_bytes();
    push(&mut parcel, LAUNCH, guid, &[&length, tag, spec]);
    parcel
}

/// The first parcel, of whom it is, and how long it is; none if it is not whole yet.
pub(super) fn read(bytes: &[u8]) -> Option<(&str, Said<'_>, usize)> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let length = usize::try_from(u32::from_be_bytes(*head)).ok()?;
    let body = rest.get(..length)?;
    let said = said(body);
    let (name, said) = said.unwrap_or(("", Said::Nonsense));
    Some((name, said, HEAD + length))
}

fn said(body: &[u8]) -> Option<(&str, Said<'_>)> {
    let ([kind, length], rest) = body.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    let said = match *kind {
        WELCOME if name == RULES => Said::Welcome,
        FOUND => {
            let (began_ms, tag) = number(rest)?;
            Said::Found { began_ms: began_ms.cast_signed(), tag }
        }
        STARTED => Said::Started { began_ms: number(rest)?.0.cast_signed() },
        FAILED => {
            let (stage, errno) = rest.split_first()?;
            let errno = i32::from_be_bytes(*errno.first_chunk()?);
            Said::Failed(Failure { stage: Stage::from_byte(*stage)?, errno, words: String::new() })
        }
        ENDED => {
            let (at_ms, rest) = number(rest)?;
            let (left, record) = number(rest)?;
            Said::Ended { at_ms: at_ms.cast_signed(), left: (left > 0).then_some(left), record }
        }
        _ => Said::Nonsense,
    };
    Some((str::from_utf8(name).ok()?, said))
}

fn number(rest: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}
