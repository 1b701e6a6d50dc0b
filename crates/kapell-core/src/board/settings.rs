//! Every timer and bound of the board.

use std::time::Duration;

use crate::planted::Planted;

/// How the board waits and when it gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub presence_ttl: Duration,
    pub converge_every: Duration,
    pub stale_unclaimed: Duration,
    pub kick_task: Duration,
    /// After this in PENDING a task is given up.
    pub pending_task: Duration,
    /// After its first completion a task is deleted.
    pub completed_task: Duration,
    pub evacuation: Duration,
    /// Crashes that are followed by a restart at once.
    pub immediate_restarts: u32,
    pub crash_wait: Duration,
    pub longest_crash_wait: Duration,
    /// No restart after more crashes than this.
    pub most_crashes: u32,
    /// Having run for so long, an instance's crashes are forgotten.
    pub crash_reset: Duration,
    /// How many containers may be starting at once on all cells together; without it, as many as like.
    pub in_flight_starts: Option<u32>,
    pub planted: Planted,
}

impl Default for Settings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            presence_ttl: seconds(15),
            converge_every: seconds(30),
            stale_unclaimed: seconds(30),
            kick_task: seconds(30),
            pending_task: seconds(30 * 60),
            completed_task: seconds(2 * 60),
            evacuation: seconds(10 * 60),
            immediate_restarts: 3,
            crash_wait: seconds(30),
            longest_crash_wait: seconds(16 * 60),
            most_crashes: 200,
            crash_reset: seconds(5 * 60),
            in_flight_starts: None,
            planted: Planted::default(),
        }
    }
}
