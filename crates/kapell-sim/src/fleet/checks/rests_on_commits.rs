use std::collections::BTreeSet;

use kapell_core::board::{ActualState, Record, TaskState};

use super::Check;
use super::grounds::{Ground, Grounds};
use crate::fleet::fact::{Fact, Unit};
use crate::fleet::ledger::Change;
use crate::fleet::view::View;

/// What the board lets happen rests on what is committed at that time.
///
/// Work is handed out only if a commit has left its instance UNCLAIMED or its task PENDING. A stop is
/// sent only if a commit has left the instance undesired, or running as another container. (For
/// callbacks, see there.) The commit may be older: whoever leads hears of the last one a little later.
#[derive(Debug, Default)]
pub(super) struct RestsOnCommits {
    /// What was ever to be placed.
    placeable: BTreeSet<Unit>,
    grounds: Grounds,
}

fn to_place(change: &Change) -> Option<Unit> {
    match change.after.as_ref()? {
        Record::Actual(lrp) => (lrp.state == ActualState::Unclaimed).then(|| Unit::Lrp(lrp.key())),
        Record::Task(task) => {
            (task.state == TaskState::Pending).then(|| Unit::Task(task.guid().clone()))
        }
        Record::Desired(_)
        | Record::Domain(_)
        | Record::Job(_)
        | Record::Definition(_)
        | Record::Run(_)
        | Record::Message(_) => None,
    }
}

impl Check for RestsOnCommits {
    fn name(&self) -> &'static str {
        "rests on commits"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        self.grounds.saw(fact, view.records);
        if let Fact::Committed { changes, .. } = fact {
            self.placeable.extend(changes.iter().filter_map(to_place));
        }
        if let Fact::WorkSent { host, cell, unit } = fact
            && !self.placeable.contains(unit)
        {
            return Err(format!("host {host} gives {unit:?} to {cell}, and nothing says so"));
        }
        if let Fact::StopSent { host, cell, key, container, .. } = fact
            && self.grounds.of(container) == Ground::default()
            && !self.grounds.is_of_one_given_up(key, container)
        {
            return Err(format!("host {host} stops {key} ({container}) on {cell} for no reason"));
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
