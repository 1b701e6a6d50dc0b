//! From how a process ended to what that means.

use kapell_backend::containers::Exit;
use kapell_core::recipe::Outcome;
use nix::sys::signal::Signal;

/// Of a result file, so much becomes the result.
pub(super) const LONGEST_RESULT: u64 = 10 * 1024;
/// A longer reason is cut.
const LONGEST_REASON: usize = 1024;
const CUT: &str = " (truncated)";

/// What the end of a program means for the recipe that it is part of.
pub(crate) fn of_exit(exit: &Exit) -> Outcome {
    let failed = exit.code != Some(0) || exit.trouble.is_some();
    // As shells tell it.
    let exit_code = exit.code.or_else(|| exit.signal.map(|signal| 128 + signal));
    Outcome { failure: failed.then(|| reason(exit)), exit_code }
}

pub(super) fn failed(reason: impl Into<String>) -> Outcome {
    Outcome { failure: Some(cut(reason.into())), exit_code: None }
}

/// What people read about it.
pub(super) fn reason(exit: &Exit) -> String {
    let mut what = match (&exit.trouble, exit.code, exit.signal) {
        (Some(trouble), _, _) => trouble.clone(),
        (None, Some(code), _) => format!("Exited with status {code}"),
        (None, None, Some(signal)) => killed_by(signal),
        (None, None, None) => "Ended without a status".to_owned(),
    };
    if exit.out_of_memory {
        what.push_str(" (out of memory)");
    }
    let words = exit.last_words.trim();
    cut(if words.is_empty() { what } else { format!("{what}: {words}") })
}

fn killed_by(signal: i32) -> String {
    let name = Signal::try_from(signal).map_or("unknown", Signal::as_str);
    format!("Killed by signal {signal} ({name})")
}

/// Keeps a reason short enough for a record.
pub(crate) fn cut(mut reason: String) -> String {
    if reason.len() > LONGEST_REASON {
        reason.truncate(reason.floor_char_boundary(LONGEST_REASON - CUT.len()));
        reason.push_str(CUT);
    }
    reason
}
