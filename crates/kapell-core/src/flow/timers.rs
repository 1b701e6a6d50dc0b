//! What is due when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::seams::Moment;
use crate::workflow::StepIx;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A step's next attempt.
    Retry(StepIx),
    /// The limit of attempt number .1.
    Timeout(StepIx, u32),
    /// The end of the patience with attempt number .1 after its limit.
    Kill(StepIx, u32),
    /// The end of the patience with everything.
    KillAll,
    /// The limit of the whole workflow.
    Workflow,
}

/// Timers, nearest first. A timer whose occasion has passed is ignored when it is due.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Moment, Timer)>>);

impl Timers {
    pub(super) fn add(&mut self, at: Moment, timer: Timer) {
        self.0.push(Reverse((at, timer)));
    }

    pub(super) fn next(&self) -> Option<Moment> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn take_due(&mut self, now: Moment) -> Option<Timer> {
        let due = self.next().is_some_and(|at| at <= now);
        if due { self.0.pop().map(|Reverse((_, timer))| timer) } else { None }
    }
}
