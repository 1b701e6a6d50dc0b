//! Who is alive: a run that waits is, by the sweep that is its own step; one that a task works for is while that task
//! ticks.

use std::time::Duration;

use kapell_core::run::{Happened, Orchestrator};
use kapell_core::seams::Moment;

use super::slab::{Key, Slab};
use super::step::log_beat;

/// When to listen, and what too long is.
#[derive(Debug)]
pub(super) struct Heart {
    interval: Duration,
    most_missed: u32,
    last: Moment,
}

impl Heart {
    pub(super) const fn new(interval: Duration, most_missed: u32, now: Moment) -> Self {
        Self { interval, most_missed, last: now }
    }

    pub(super) const fn next(&self) -> Moment {
        self.last.after(self.interval)
    }

    /// Listens to all runs, and tells of those that have been silent for too long.
    pub(super) fn sweep(&mut self, slab: &mut Slab, now: Moment) -> Vec<(Key, Happened)> {
        // Who was not there to listen has missed nothing: this process was stopped, or its machine slept.
        let absent = now.since(self.last) > self.interval * 2;
        self.last = now;
        let told = tracing::enabled!(tracing::Level::DEBUG);
        let mut silent = Vec::new();
        for (key, entry) in slab.iter_mut() {
            let Some(working) = &mut entry.working else {
                beat(&mut entry.it, told);
                continue;
            };
            let count = working.pulse.beats();
            if count != working.seen || absent {
                (working.seen, working.last) = (count, now);
                beat(&mut entry.it, told);
            } else if missed(now, working.last, self.interval) >= u128::from(self.most_missed)
                && !entry.it.state().is_final()
            {
                silent.push((key, Happened::Silent));
            }
        }
        silent
    }
}

fn beat(it: &mut Orchestrator, told: bool) {
    if it.beat() && told {
        log_beat(it);
    }
}

/// How many beats are missing.
fn missed(now: Moment, last: Moment, interval: Duration) -> u128 {
    now.since(last).as_nanos() / interval.as_nanos().max(1)
}
