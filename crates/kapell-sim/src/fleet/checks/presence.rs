use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{ActualLrp, ActualState, CellId, Task, TaskState};

use super::Check;
use crate::fleet::fact::Fact;
use crate::fleet::ledger::Change;
use crate::fleet::view::View;

/// Moments are rounded here and there.
const SLACK: Duration = Duration::from_millis(500);
/// How long a commit may be on its way.
const LATE: Duration = Duration::from_secs(15);

/// No cell is taken for lost that had no time to say that it is there.
///
/// A commit that fails a task because its cell disappeared, or that takes an instance from a cell on which it
/// runs and which does not evacuate, comes from a leader that has led, and has not heard of this cell, for the
/// whole time to live of a presence; or the cell has told that leader that it goes. A commit may land late:
/// such a silence counts for [`LATE`] after its end.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// Since when each host leads.
    leads: BTreeMap<usize, Duration>,
    heard: BTreeMap<(usize, CellId), Duration>,
    left: BTreeSet<(usize, CellId)>,
    /// When each cell was last heard of again that was rightly taken for lost.
    returned: BTreeMap<(usize, CellId), Duration>,
}

/// The cell that a commit takes for lost.
fn lost(change: &Change, view: &View<'_>) -> Option<CellId> {
    let (before, after) = (change.before.as_ref()?, change.after.as_ref()?);
    if let Some((before, after)) = before.as_task().zip(after.as_task()) {
        return lost_task(before, after);
    }
    let (before, after) = before.as_actual().zip(after.as_actual())?;
    lost_instance(before, after, view)
}

fn lost_task(before: &Task, after: &Task) -> Option<CellId> {
    let failed = before.state == TaskState::Running
        && after.state != TaskState::Running
        && before.instance_guid == after.instance_guid
        && (after.failure_reason.contains("disappeared") || after.state == TaskState::Pending);
    before.cell_id.clone().filter(|_| failed)
}

/// Cells themselves give up only what does not run any more, or what they evacuate.
fn lost_instance(before: &ActualLrp, after: &ActualLrp, view: &View<'_>) -> Option<CellId> {
    let (container, cell) = (before.instance_guid.as_ref()?, before.cell_id.as_ref()?);
    let stays = view.machines.get(cell).is_some_and(|machine| !machine.evacuating);
    let runs = view.running.get(container).is_some_and(|process| process.cell == *cell);
    let taken = before.state == ActualState::Running
        && after.state == ActualState::Unclaimed
        && before.crash_count == after.crash_count;
    (taken && stays && runs).then(|| cell.clone())
}

impl Presence {
    fn silence(&self, at: &(usize, CellId), view: &View<'_>) -> Duration {
        let since = self.leads.get(&at.0).copied().max(self.heard.get(at).copied());
        view.now.saturating_sub(since.unwrap_or_default())
    }

    /// Whether a host may take a cell for lost now.
    fn is_lost(&self, at: &(usize, CellId), view: &View<'_>) -> bool {
        self.left.contains(at) || self.silence(at, view) + SLACK >= view.settings.presence_ttl
    }

    fn committed(&self, host: usize, change: &Change, view: &View<'_>) -> Result<(), String> {
        let Some(cell) = lost(change, view) else { return Ok(()) };
        let at = (host, cell);
        let returned = self.returned.get(&at).is_some_and(|when| view.now <= *when + LATE);
        if returned || self.is_lost(&at, view) {
            return Ok(());
        }
        let silence = self.silence(&at, view);
        let (cell, key) = (at.1, &change.key);
        Err(format!("host {host} takes {cell} for lost after {silence:?}, and {key:?} with it"))
    }
}

impl Check for Presence {
    fn name(&self) -> &'static str {
        "presence"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        if let Fact::TookOver { host, .. } = fact {
            self.leads.insert(*host, view.now);
            self.left.retain(|(at, _)| at != host);
        }
        if let Fact::Welcomed { host, cell } = fact {
            let at = (*host, cell.clone());
            if self.is_lost(&at, view) {
                self.returned.insert(at.clone(), view.now);
            }
            self.left.remove(&at);
            self.heard.insert(at, view.now);
        }
        if let Fact::Left { host, cell } = fact {
            self.left.insert((*host, cell.clone()));
        }
        if let Fact::Committed { host, changes, .. } = fact {
            for change in changes {
                self.committed(*host, change, view)?;
            }
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
