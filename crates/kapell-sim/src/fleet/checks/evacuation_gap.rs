use std::collections::{BTreeMap, BTreeSet};

use kapell_core::board::{ActualState, DesiredLrp, InstanceGuid, ProcessGuid, Record};

use super::grounds::Grounds;
use super::{Check, is_undisturbed, room};
use crate::fleet::fact::{Fact, Unit};
use crate::fleet::view::View;

/// An evacuation never drops below the desired count while capacity allows.
///
/// In worlds in which nothing goes wrong and no application crashes: once as many indices of a process
/// have run as are desired, so many run from then on, until somebody wants another number. That one
/// fewer runs is let pass if no machine that stays has room for one more. What the board has never had as
/// RUNNING does not count: a cell that leaves need not keep what is being started. Nor does what somebody has
/// once given up, by scaling down or deleting: it ends, whatever is wanted since.
#[derive(Debug, Default)]
pub(super) struct EvacuationGap {
    grounds: Grounds,
    /// What the board has had as RUNNING.
    known: BTreeSet<InstanceGuid>,
    /// The wish for which all have run.
    reached: BTreeMap<ProcessGuid, Wish>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wish {
    instances: u32,
    incarnation: u64,
}

fn wish(desired: &DesiredLrp) -> Wish {
    Wish { instances: desired.instances, incarnation: desired.incarnation }
}

impl EvacuationGap {
    fn counts(&self, container: &InstanceGuid) -> bool {
        self.known.contains(container) && !self.grounds.of(container).given_up
    }

    /// How many of the indices that are desired run somewhere.
    fn running(&self, desired: &DesiredLrp, view: &View<'_>) -> usize {
        let indices: BTreeSet<u32> = view
            .running
            .values()
            .filter(|process| self.counts(&process.container))
            .filter_map(|process| match &process.unit {
                Unit::Lrp(key) if key.process_guid == desired.process_guid => Some(key.index),
                Unit::Lrp(_) | Unit::Task(_) => None,
            })
            .filter(|index| desired.wants(*index))
            .collect();
        indices.len()
    }

    /// Notes what the board has as RUNNING, and gives back the processes that it is of.
    fn noted(&mut self, fact: &Fact) -> BTreeSet<ProcessGuid> {
        let Fact::Committed { changes, .. } = fact else { return BTreeSet::new() };
        let mut of = BTreeSet::new();
        for change in changes {
            if let Some(Record::Actual(lrp)) = &change.after
                && lrp.state == ActualState::Running
                && let Some(container) = lrp.instance_guid.clone()
                && self.known.insert(container)
            {
                of.insert(lrp.process_guid.clone());
            }
        }
        of
    }

    /// Whether as many run as are desired, and how many do.
    fn look(&mut self, desired: &DesiredLrp, view: &View<'_>) -> (bool, usize) {
        let (count, wish) = (self.running(desired, view), wish(desired));
        let all = count >= usize::try_from(wish.instances).unwrap_or(usize::MAX);
        if all {
            self.reached.insert(desired.process_guid.clone(), wish);
        }
        (all, count)
    }
}

impl Check for EvacuationGap {
    fn name(&self) -> &'static str {
        "evacuation gap"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        if !is_undisturbed(view.plan) || view.plan.crashing_apps {
            return Ok(());
        }
        self.grounds.saw(fact, view.records);
        for guid in self.noted(fact) {
            if let Some(desired) = view.records.desired_lrp(&guid) {
                self.look(desired, view);
            }
        }
        let Fact::Over(process) = fact else { return Ok(()) };
        let Unit::Lrp(key) = &process.unit else { return Ok(()) };
        let Some(desired) = view.records.desired_lrp(&key.process_guid) else { return Ok(()) };
        let (all, count) = self.look(desired, view);
        let was_reached = self.reached.get(&key.process_guid) == Some(&wish(desired));
        let is_missed = !all && was_reached && self.counts(&process.container);
        if is_missed && room::is_there_for(desired.memory_mb, desired.disk_mb, view) {
            let (guid, wanted) = (&key.process_guid, desired.instances);
            let (index, cell) = (key.index, &process.cell);
            return Err(format!("{count} of {wanted} of {guid} run after {index} left {cell}"));
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
