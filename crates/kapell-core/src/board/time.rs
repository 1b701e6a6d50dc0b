//! The board's own time.
//!
//! Timestamps of records are compared with those that another host wrote, and a wall clock may
//! jump. So the board counts its time itself, and steers it towards the wall clock.

use std::sync::Arc;
use std::time::Duration;

use super::record::Record;
use crate::seams::{Moment, Timestamp};

/// How much faster or slower than time itself the board's may go: one part in so many.
const STEER: i128 = 10;

/// The board's time as it was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    at: Moment,
    /// Since 1970: steps of less than a millisecond must add up.
    nanos: i128,
}

impl Reading {
    /// The first one: there is nothing to go by but the wall clock.
    pub fn first(at: Moment, wall: Timestamp) -> Self {
        Self { at, nanos: nanos(wall) }
    }

    pub fn time(self) -> Timestamp {
        Timestamp(i64::try_from(self.nanos.div_euclid(1_000_000)).unwrap_or(i64::MAX))
    }
}

fn nanos(time: Timestamp) -> i128 {
    i128::from(time.0) * 1_000_000
}

/// The next reading: as much later as time has passed, more or less by a tenth of it, so that it
/// comes closer to the wall clock. It never goes back.
#[must_use]
pub fn slewed(last: Reading, now: Moment, wall: Timestamp) -> Reading {
    let passed = i128::try_from(now.since(last.at).as_nanos()).unwrap_or(i128::MAX / 2);
    let counted = last.nanos + passed;
    let most = passed / STEER;
    let off = (nanos(wall) - counted).clamp(-most, most);
    Reading { at: now.max(last.at), nanos: counted + off }
}

/// Takes a record from a leader whose clock was ahead of ours: what is said to lie in the future
/// has happened just now, and what follows from it comes as long after it as it would have.
pub fn settle_in(record: &mut Record, now: Timestamp) {
    match record {
        Record::Desired(_) | Record::Definition(_) | Record::Message(_) => {}
        Record::Actual(lrp) => {
            let ahead = lrp.since.since(now);
            lrp.since = lrp.since.min(now);
            lrp.expires_at = lrp.expires_at.map(|at| at.before(ahead));
        }
        Record::Task(task) => {
            task.created_at = task.created_at.min(now);
            task.since = task.since.min(now);
            task.first_completed_at = task.first_completed_at.map(|at| at.min(now));
        }
        Record::Domain(fresh) => {
            let ahead = fresh.since.map_or(Duration::ZERO, |since| since.since(now));
            fresh.since = fresh.since.map(|since| since.min(now));
            fresh.expires_at = fresh.expires_at.map(|at| at.before(ahead));
        }
        // What was dealt with stays so: its mark, and the moments of its runs, are not touched.
        Record::Job(job) => {
            job.created_at = job.created_at.min(now);
            job.updated_at = job.updated_at.min(now);
            for revised in &mut job.revised {
                revised.at = revised.at.min(now);
            }
        }
        Record::Run(run) => {
            let run = Arc::make_mut(run);
            // What somebody asked for was to begin when it was asked for.
            if run.run_id.is_asked_for() {
                run.due_at = run.due_at.before(run.created_at.since(now));
            }
            run.created_at = run.created_at.min(now);
            run.started_at = run.started_at.map(|at| at.min(now));
            run.completed_at = run.completed_at.map(|at| at.min(now));
        }
    }
}
