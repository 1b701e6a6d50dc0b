//! When a crashed instance comes back.

use std::time::Duration;

use super::actual::{ActualLrp, ActualState};
use super::settings::Settings;
use crate::seams::Timestamp;

/// What follows a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dance {
    pub crash_count: u32,
    /// UNCLAIMED, to be started again at once, or CRASHED, to wait.
    pub state: ActualState,
}

/// Decides what follows a crash of the instance that `before` tells of; it may be unknown.
///
/// The count is compared before it grows. Crashes are forgotten once an instance has run for long.
pub fn dance(before: Option<&ActualLrp>, now: Timestamp, settings: &Settings) -> Dance {
    let count = before.map_or(0, |lrp| {
        let ran_long =
            lrp.state == ActualState::Running && now.since(lrp.since) >= settings.crash_reset;
        if ran_long { 0 } else { lrp.crash_count }
    });
    let state = if count < settings.immediate_restarts {
        ActualState::Unclaimed
    } else {
        ActualState::Crashed
    };
    Dance { crash_count: count.saturating_add(1), state }
}

/// When a CRASHED instance may be started again; none for any other, and for one that crashed too often.
pub fn restart_at(lrp: &ActualLrp, settings: &Settings) -> Option<Timestamp> {
    let wait = wait_after(lrp.crash_count, settings)?;
    (lrp.state == ActualState::Crashed).then(|| lrp.since.after(wait))
}

/// How long a CRASHED instance waits; none if it is never started again.
pub(super) fn wait_after(crash_count: u32, settings: &Settings) -> Option<Duration> {
    (crash_count <= settings.most_crashes).then(|| wait(crash_count, settings))
}

fn wait(crash_count: u32, settings: &Settings) -> Duration {
    let Some(doublings) = crash_count.checked_sub(settings.immediate_restarts) else {
        return Duration::ZERO;
    };
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    settings.crash_wait.saturating_mul(factor).min(settings.longest_crash_wait)
}
