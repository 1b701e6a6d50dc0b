use std::collections::{BTreeMap, BTreeSet};

use kapell_core::board::{DesiredLrp, ProcessGuid};

use super::grounds::Grounds;
use super::{Check, is_undisturbed, room};
use crate::fleet::fact::{Fact, Unit};
use crate::fleet::view::View;

/// An evacuation never drops below the desired count while capacity allows.
///
/// In worlds in which nothing goes wrong and no application crashes: once as many indices of a process
/// have run as are desired, so many run from then on, until somebody wants another number. That one
/// fewer runs is let pass if no machine that stays has room for one more. What somebody has once given
/// up, by scaling down or deleting, does not count: it ends, whatever is wanted since.
#[derive(Debug, Default)]
pub(super) struct EvacuationGap {
    grounds: Grounds,
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

/// How many of the indices that are desired run somewhere.
fn running(desired: &DesiredLrp, grounds: &Grounds, view: &View<'_>) -> usize {
    let indices: BTreeSet<u32> = view
        .running
        .values()
        .filter(|process| !grounds.of(&process.container).given_up)
        .filter_map(|process| match &process.unit {
            Unit::Lrp(key) if key.process_guid == desired.process_guid => Some(key.index),
            Unit::Lrp(_) | Unit::Task(_) => None,
        })
        .filter(|index| desired.wants(*index))
        .collect();
    indices.len()
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
        let (process, over) = match fact {
            Fact::Began(process) => (process, false),
            Fact::Over(process) => (process, true),
            Fact::Asked { .. }
            | Fact::Acknowledged { .. }
            | Fact::Committed { .. }
            | Fact::Corrupted { .. }
            | Fact::Heeded { .. }
            | Fact::HeardOf { .. }
            | Fact::Welcomed { .. }
            | Fact::Left { .. }
            | Fact::StopSent { .. }
            | Fact::WorkSent { .. }
            | Fact::Calling { .. }
            | Fact::Called { .. }
            | Fact::Inconceivable { .. }
            | Fact::TookOver { .. }
            | Fact::FaultsOver => return Ok(()),
        };
        let Unit::Lrp(key) = &process.unit else { return Ok(()) };
        let Some(desired) = view.records.desired_lrp(&key.process_guid) else { return Ok(()) };
        let wish = wish(desired);
        let over = over && !self.grounds.of(&process.container).given_up;
        let count = running(desired, &self.grounds, view);
        if count >= usize::try_from(wish.instances).unwrap_or(usize::MAX) {
            self.reached.insert(key.process_guid.clone(), wish);
            return Ok(());
        }
        let was_reached = self.reached.get(&key.process_guid) == Some(&wish);
        if over && was_reached && room::is_there_for(desired.memory_mb, desired.disk_mb, view) {
            let (guid, wanted) = (&key.process_guid, wish.instances);
            let (index, cell) = (key.index, &process.cell);
            return Err(format!("{count} of {wanted} of {guid} run after {index} left {cell}"));
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
