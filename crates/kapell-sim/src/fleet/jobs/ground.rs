//! The machines of hosts in the world.

use std::sync::Arc;

use super::yard::{Yard, YardNews};
use crate::fleet::checks::Violation;
use crate::fleet::fact::Fact;
use crate::fleet::plan::Plan;
use crate::fleet::seat::Seat;
use crate::fleet::timing;
use crate::fleet::world::{Event, World};
use crate::parts::chance::Chance;

impl World {
    /// Whether runs are under way or something is left of them, and may be for now.
    pub(in crate::fleet) fn waits_for_runs(&self) -> bool {
        let since = self.truth.calm_since.unwrap_or_default();
        let most = timing::bound(&self.plan) + timing::run_bound(&self.plan);
        let records = self.truth.ledger.records();
        let is_left = records.active_runs().next().is_some()
            || records.tasks.keys().any(kapell_core::run::is_of_run)
            || !self.truth.works.is_empty();
        is_left && self.time.now() < since + most
    }

    /// What happened on the machine of a host.
    pub(in crate::fleet) fn hear_yard(&mut self, host: usize) -> Result<(), Violation> {
        for news in self.yards[host].take_news() {
            match news {
                YardNews::Over(attempt) => self.tell(&Fact::WorkOver { host, attempt })?,
                YardNews::EndsIn { attempt, wait, code } => {
                    let machine = self.yards[host].boot();
                    self.plan_in(wait, Event::WorkEnds { host, machine, attempt, code });
                }
                YardNews::Late { news, wait } => {
                    self.plan_in(wait, Event::WorkNews { host, news });
                }
            }
        }
        Ok(())
    }
}

/// What draws for them draws for nobody else: worlds without jobs are as they were without them.
pub(in crate::fleet) fn yards(plan: &Plan, seats: &[Seat]) -> Vec<Arc<Yard>> {
    let mut chance = Chance::new(plan.seed.rotate_left(32) ^ 0x6a6f_6273);
    let moody = !plan.is_without_faults();
    let yard = |(host, seat): (usize, &Seat)| {
        Arc::new(Yard::new(host, Arc::clone(&seat.clock), chance.fork(), moody))
    };
    seats.iter().take(plan.hosts).enumerate().map(yard).collect()
}
