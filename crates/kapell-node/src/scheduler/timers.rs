//! One queue of timers for all runs.

use std::collections::BTreeSet;
use std::time::Duration;

use kapell_core::seams::{Moment, Timestamp};

use super::slab::Key;

/// What the clock on the wall and the one that never jumps may differ by between two looks.
const JUMP: Duration = Duration::from_secs(1);

/// Who is to be woken when, by the clock on the wall. A run has one timer, which its entry knows: whoever puts it off or
/// calls it off takes it out of the queue.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeSet<(Timestamp, Key)>,
}

impl Timers {
    pub(super) fn set(&mut self, at: Timestamp, key: Key) {
        self.queue.insert((at, key));
    }

    pub(super) fn call_off(&mut self, at: Timestamp, key: Key) {
        self.queue.remove(&(at, key));
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.queue.first().map(|(at, _)| *at)
    }

    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<(Timestamp, Key)> {
        self.queue.first().filter(|(at, _)| *at <= now)?;
        self.queue.pop_first()
    }

    /// All of them anew, after the clock was set.
    pub(super) fn replace(&mut self, all: impl Iterator<Item = (Timestamp, Key)>) {
        self.queue = all.collect();
    }

    /// About how much it has been given: its nodes are at least half full.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.queue.len() * size_of::<(Timestamp, Key)>() * 2
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

/// Notices when somebody sets the clock.
#[derive(Debug)]
pub(super) struct Watch {
    now: Moment,
    wall: Timestamp,
}

impl Watch {
    pub(super) const fn new(now: Moment, wall: Timestamp) -> Self {
        Self { now, wall }
    }

    /// By how many milliseconds the clock on the wall was set since the last look: 0 if nobody did.
    pub(super) fn look(&mut self, now: Moment, wall: Timestamp) -> i64 {
        let gone = i64::try_from(now.since(self.now).as_millis()).unwrap_or(i64::MAX);
        let by = wall.0.saturating_sub(self.wall.0).saturating_sub(gone);
        (self.now, self.wall) = (now, wall);
        let jumped = Duration::from_millis(by.unsigned_abs()) > JUMP;
        if jumped { by } else { 0 }
    }
}
