//! Times, numbers and texts as people read them.

use kapell_core::board::{ActualLrp, ActualState, Settings, TaskState};
use kapell_core::seams::Timestamp;

use super::table::{Cell, coloured};
use crate::logger::style::Colour;

pub(crate) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// How long ago it was: `12s`, `3m12s`, `2h05m`, `3d04h`. The clocks of two machines may differ.
pub(crate) fn age(at: Timestamp, now: Timestamp) -> String {
    long(u64::try_from(now.0.saturating_sub(at.0)).unwrap_or(0))
}

pub(crate) fn long(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// A time as it is written in files.
pub(crate) fn time(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| at.0.to_string(), |at| format!("{at:.3}"))
}

pub(crate) fn megabytes(number: u32) -> String {
    if number == 0 { "-".to_owned() } else { format!("{number}M") }
}

pub(crate) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}

pub(crate) fn instance_state(lrp: &ActualLrp) -> Cell {
    let colour = match lrp.state {
        ActualState::Running => Colour::Green,
        ActualState::Claimed | ActualState::Unclaimed => Colour::Yellow,
        ActualState::Crashed => Colour::Red,
    };
    let evacuating = if lrp.evacuating { " evacuating" } else { "" };
    coloured(format!("{}{evacuating}", lrp.state.name()), colour)
}

pub(crate) fn task_state(state: TaskState, failed: bool) -> Cell {
    let colour = match state {
        TaskState::Pending => Colour::Yellow,
        TaskState::Running => Colour::Blue,
        TaskState::Completed | TaskState::Resolving if failed => Colour::Red,
        TaskState::Completed | TaskState::Resolving => Colour::Green,
    };
    coloured(state.name(), colour)
}

/// Why an instance is not as it should be. Once it has run for long its last crash is an old story.
pub(crate) fn why(lrp: &ActualLrp, now: Timestamp) -> String {
    let crash = lrp.crash_reason.as_deref().unwrap_or_default();
    match (lrp.state, &lrp.placement_error) {
        (ActualState::Running, _) => {
            let calm = now.since(lrp.since) > Settings::default().crash_reset;
            if calm || crash.is_empty() {
                String::new()
            } else {
                format!("restarted after: {crash}")
            }
        }
        (ActualState::Unclaimed | ActualState::Claimed | ActualState::Crashed, Some(error)) => {
            error.clone()
        }
        (ActualState::Unclaimed | ActualState::Claimed | ActualState::Crashed, None) => {
            crash.to_owned()
        }
    }
}
