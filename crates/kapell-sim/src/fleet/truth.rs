//! What really is, and what rules say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{CellId, InstanceGuid, Record, Request};
use kapell_core::seams::Timestamp;
use kapell_node::scheduler::backend::Attempt;
use kapell_store::model::{Fence, Op, Shard};

use super::checks::{Check, Violation};
use super::fact::{Fact, Process, Unit};
use super::ledger::{Change, Ledger};
use super::view::{self, View};
use super::world::World;

/// What people call the beginning of the world.
pub(super) const WALL_MS: i64 = 1_700_000_000_000;

/// What really is, which nobody in the world knows.
#[derive(Debug, Default)]
pub(super) struct Truth {
    pub(super) ledger: Ledger,
    pub(super) running: BTreeMap<InstanceGuid, Process>,
    pub(super) machines: BTreeMap<CellId, view::Machine>,
    /// Work of runs on the machines of hosts.
    pub(super) works: BTreeSet<(usize, Attempt)>,
    pub(super) corrupted: usize,
    /// How many machines have died for good.
    pub(super) dead: usize,
    pub(super) wanted: BTreeMap<u64, Request>,
    pub(super) calm_since: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) began: u64,
    pub(super) commits: u64,
    pub(super) acknowledged: u64,
    pub(super) takeovers: u64,
    pub(super) inconceivable: u64,
    pub(super) launches: u64,
    pub(super) runs: u64,
}

/// Whether it is the work of a run.
fn is_of_run(process: &Process) -> bool {
    matches!(&process.unit, Unit::Task(guid) if kapell_core::run::is_of_run(guid))
}

/// Whether a run has ended by this.
fn ends(change: &Change) -> bool {
    matches!(&change.after, Some(Record::Run(run)) if run.state.is_final())
}

impl World {
    /// A rule looks at what has happened.
    pub(super) fn tell(&mut self, fact: &Fact) -> Result<(), Violation> {
        self.log.note(self.time.now(), format_args!("= {}", fact.brief()));
        match fact {
            Fact::Began(process) => {
                self.tally.began += 1;
                self.tally.launches += u64::from(is_of_run(process));
                self.truth.running.insert(process.container.clone(), process.clone());
            }
            Fact::Over(process) => drop(self.truth.running.remove(&process.container)),
            Fact::Heeded { cell, what: "evacuate", .. } => {
                if let Some(machine) = self.truth.machines.get_mut(cell) {
                    machine.evacuating = true;
                }
            }
            Fact::WorkBegan { host, attempt, .. } => {
                self.tally.launches += 1;
                self.truth.works.insert((*host, attempt.clone()));
            }
            Fact::WorkOver { host, attempt } => {
                self.truth.works.remove(&(*host, attempt.clone()));
            }
            Fact::Acknowledged { .. } => self.tally.acknowledged += 1,
            Fact::Committed { changes, .. } => {
                self.tally.commits += 1;
                self.tally.runs += changes.iter().filter(|it| ends(it)).count() as u64;
            }
            Fact::Inconceivable { .. } => self.tally.inconceivable += 1,
            Fact::TookOver { .. } => self.tally.takeovers += 1,
            Fact::Heeded { .. }
            | Fact::Asked { .. }
            | Fact::Corrupted { .. }
            | Fact::HeardOf { .. }
            | Fact::Welcomed { .. }
            | Fact::Left { .. }
            | Fact::Calling { .. }
            | Fact::StopSent { .. }
            | Fact::WorkSent { .. }
            | Fact::Called { .. }
            | Fact::FaultsOver => {}
        }
        self.check(|check, view| check.saw(fact, view))
    }

    pub(super) fn check(
        &mut self,
        mut rule: impl FnMut(&mut dyn Check, &View<'_>) -> Result<(), String>,
    ) -> Result<(), Violation> {
        let view = View {
            plan: &self.plan,
            now: self.time.now(),
            records: self.truth.ledger.records(),
            settings: &self.settings,
            wall: Timestamp(WALL_MS).after(self.time.now()),
            running: &self.truth.running,
            machines: &self.truth.machines,
            works: &self.truth.works,
            leader: (0..self.plan.hosts).find(|host| self.seats[*host].acts()),
            calm_since: self.truth.calm_since,
        };
        for check in &mut self.checks {
            let at = self.time.now();
            rule(check.as_mut(), &view).map_err(|how| Violation { rule: check.name(), at, how })?;
        }
        Ok(())
    }

    /// The store has made a commit: the truth changes with it.
    pub(super) fn committed(
        &mut self,
        host: usize,
        shard: Shard,
        at: Fence,
        ops: &[Op],
    ) -> Result<(), Violation> {
        for op in ops {
            self.store.remember(shard, op);
        }
        let changes = self.truth.ledger.commit(ops);
        self.tell(&Fact::Committed { host, shard, at, changes })
    }
}
