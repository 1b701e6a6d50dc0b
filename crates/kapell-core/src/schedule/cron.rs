//! A line of cron, once it is read.

use super::ClockChange;
use super::civil::DAY_S;
use super::days::Days;
use super::zone::{Stretch, Zone};

/// Sets of local times, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cron {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) days: Days,
    /// The hour has a wildcard or a step: what counts is how often it runs, so it runs at every
    /// instant whose local time fits. Otherwise each local time counts, and comes once.
    pub(super) by_instant: bool,
}

/// A second since 1970 at which something is due, and what happened to the clock there.
pub(super) type Due = (i64, Option<ClockChange>);

impl Cron {
    /// The first instant that is this second or a later one; 1970 or later.
    pub(super) fn from(&self, second: i64, zone: &Zone) -> Option<Due> {
        let stretches = zone.stretches_from(second);
        if self.by_instant { self.each(second, stretches) } else { self.once(second, stretches) }
    }

    fn each(&self, second: i64, stretches: &[Stretch]) -> Option<Due> {
        let mut from = second + stretches[0].offset;
        let mut local = self.local_from(from)?;
        for (at, stretch) in stretches.iter().enumerate() {
            let first = stretch.first_local();
            if at > 0 && (first < from || local < first) {
                from = first;
                local = self.local_from(from)?;
            }
            if local < stretch.end_local() {
                let change = if local < stretch.seen {
                    Some(ClockChange::FoldSecond)
                } else if comes_again(local, stretches.get(at + 1)) {
                    Some(ClockChange::FoldFirst)
                } else {
                    None
                };
                return Some((local - stretch.offset, change));
            }
        }
        None
    }

    fn once(&self, second: i64, stretches: &[Stretch]) -> Option<Due> {
        let current = stretches[0];
        let from = if second == current.start {
            current.seen
        } else {
            current.seen.max(second + current.offset)
        };
        let local = self.local_from(from)?;
        for (at, stretch) in stretches.iter().enumerate() {
            if local < stretch.first_local() {
                return Some((stretch.start, Some(ClockChange::Gap)));
            }
            if local < stretch.end_local() {
                let again = comes_again(local, stretches.get(at + 1));
                return Some((local - stretch.offset, again.then_some(ClockChange::FoldOnce)));
            }
        }
        None
    }

    /// The first local time that is this one or a later one.
    fn local_from(&self, local: i64) -> Option<i64> {
        let (day, time) = (local.div_euclid(DAY_S), local.rem_euclid(DAY_S));
        let found = self.days.from(day)?;
        if found == day {
            if let Some(time) = self.time_from(time) {
                return Some(day * DAY_S + time);
            }
            return Some(self.days.from(day + 1)? * DAY_S + self.first_time());
        }
        Some(found * DAY_S + self.first_time())
    }

    fn first_time(&self) -> i64 {
        let hours = i64::from(self.hours.trailing_zeros());
        hours * 3_600 + self.first_of_hour()
    }

    fn first_of_hour(&self) -> i64 {
        i64::from(self.minutes.trailing_zeros()) * 60 + i64::from(self.seconds.trailing_zeros())
    }

    /// The first time of day that is this one or a later one.
    fn time_from(&self, time: i64) -> Option<i64> {
        let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                let seconds = self.seconds >> second;
                if seconds != 0 {
                    return Some(time + i64::from(seconds.trailing_zeros()));
                }
            }
            let minutes = self.minutes >> (minute + 1);
            if minutes != 0 {
                let minute = minute + 1 + i64::from(minutes.trailing_zeros());
                let second = i64::from(self.seconds.trailing_zeros());
                return Some(hour * 3_600 + minute * 60 + second);
            }
        }
        let hours = self.hours >> (hour + 1);
        let later = hour + 1 + i64::from(hours.trailing_zeros());
        (hours != 0).then(|| later * 3_600 + self.first_of_hour())
    }
}

fn comes_again(local: i64, next: Option<&Stretch>) -> bool {
    next.is_some_and(|next| next.first_local() <= local)
}
