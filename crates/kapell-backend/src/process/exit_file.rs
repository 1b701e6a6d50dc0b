//! How a process ended, as its shim wrote it. The layout is told in `kapell-shim/src/record.rs`.

use std::fs;
use std::path::Path;

use kapell_core::causes::chain;

use super::spec_file::Header;
use super::trouble::{Failure, Stage};
use super::words;
use crate::containers::Exit;

const MAGIC: &[u8] = b"KPX1";
const HEAD: usize = 14;
const KILLED: u8 = 4;
const OUT_OF_MEMORY: u8 = 1;
const SHIM_KILLED: &str =
    "its shim was killed, so it is not known how the program would have ended; all of it was ended";
const RUNNER_KILLED: u8 = 5;
/// What is told of a program whose runner was killed.
pub(crate) const NO_RUNNER: &str = "its runner was killed, so it is not known how the program would have ended; all of it was ended";

/// None if nothing whole stands there.
pub(crate) fn parse(bytes: &[u8], home: &Path, header: &Header) -> Option<Exit> {
    let head: &[u8; HEAD] = bytes.first_chunk()?;
    let [m, a, g, c, kind, stage, stopped, flags, v0, v1, v2, v3, l0, l1] = *head;
    let end = HEAD + usize::from(u16::from_be_bytes([l0, l1]));
    let sum: &[u8; 8] = bytes.get(end..)?.first_chunk()?;
    if [m, a, g, c] != MAGIC || u64::from_be_bytes(*sum) != hash(&bytes[..end]) {
        return None;
    }
    let value = i32::from_be_bytes([v0, v1, v2, v3]);
    let exit = Exit {
        stopped: stopped != 0,
        out_of_memory: flags & OUT_OF_MEMORY != 0,
        last_words: words::clean(&bytes[HEAD..end]),
        ..Exit::default()
    };
    match kind {
        1 => Some(Exit { code: Some(value), ..exit }),
        2 => Some(Exit { signal: Some(value), ..exit }),
        3 => {
            let words = exit.last_words.clone();
            let failure = Failure { stage: Stage::from_byte(stage)?, errno: value, words };
            let text = chain(&failure.to_error(home, header));
            Some(Exit { trouble: Some(text), ..exit })
        }
        KILLED => Some(Exit { trouble: Some(SHIM_KILLED.to_owned()), ..exit }),
        RUNNER_KILLED => Some(Exit { trouble: Some(NO_RUNNER.to_owned()), ..exit }),
        _ => None,
    }
}

/// Says, in the place of a shim that was killed, that it was.
pub(crate) fn write_killed(home: &Path) -> Exit {
    let mut record = MAGIC.to_vec();
    record.extend_from_slice(&[KILLED, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    record.extend_from_slice(&hash(&record).to_be_bytes());
    // Without it, the next agent finds out anew.
    let _best_effort = fs::write(home.join("exit"), record);
    Exit { trouble: Some(SHIM_KILLED.to_owned()), ..Exit::default() }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
