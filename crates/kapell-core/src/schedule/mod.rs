//! When something is due: lines of cron, time zones, clock changes, calendars.

pub mod crontab;
pub mod index;

mod calendar;
mod civil;
mod cron;
mod days;
mod fault;
mod field;
mod line;
mod lines;
mod spread;
#[cfg(test)]
mod tests;
mod zone;

pub use fault::{Fault, Place};
pub use lines::Schedule;
pub(crate) use zone::time_zone;

use crate::seams::Timestamp;

/// A moment of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// In whole seconds.
    pub at: Timestamp,
    /// The calendar that excludes it.
    pub excluded: Option<String>,
    /// The clock of its zone was changed there.
    pub change: Option<ClockChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockChange {
    /// Its local time does not exist: it is at the first instant after the gap.
    Gap,
    /// Its local time exists twice: it is at the first of both.
    FoldOnce,
    /// The first and the second of both, of a line that runs at each.
    FoldFirst,
    FoldSecond,
}

/// When a job is due, moment after moment.
pub trait Moments {
    /// The first moment after that, excluded or not.
    fn next_after(&self, after: Timestamp) -> Option<Occurrence>;

    /// When the run of a moment begins: the moment and its jitter.
    fn put_off(&self, at: Timestamp) -> Timestamp;
}
