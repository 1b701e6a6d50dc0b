use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{InstanceGuid, LrpKey};

use super::Check;
use crate::fleet::fact::{Fact, Unit};
use crate::fleet::view::View;

/// How long two processes may run for one index although all is well: until the cell that has one too
/// many has asked the board, told it to stop, and given it the time for that.
const SETTLED: Duration = Duration::from_secs(90);

/// Once quiet, at most one process runs for each index.
///
/// It is broken when two have run for [`SETTLED`] in which nothing went wrong and nobody asked for
/// anything, and when two run in the end. A process that an evacuating record names does not count,
/// nor does one on a machine without an agent, which nobody can stop.
#[derive(Debug, Default)]
pub(super) struct OneInstance {
    /// Since when more than one has run.
    crowded: BTreeMap<LrpKey, Duration>,
}

/// What runs for an index and counts.
fn running(key: &LrpKey, view: &View<'_>) -> BTreeSet<InstanceGuid> {
    let twin = view.records.evacuating.get(key).and_then(|twin| twin.instance_guid.as_ref());
    let unit = Unit::Lrp(key.clone());
    let counts = |cell| view.machines.get(cell).is_some_and(|machine| machine.has_agent);
    let all = view.running.values().filter(|it| it.unit == unit && counts(&it.cell));
    all.map(|it| it.container.clone()).filter(|container| twin != Some(container)).collect()
}

impl OneInstance {
    fn look(&mut self, key: &LrpKey, view: &View<'_>) {
        if running(key, view).len() > 1 {
            self.crowded.entry(key.clone()).or_insert(view.now);
        } else {
            self.crowded.remove(key);
        }
    }
}

impl Check for OneInstance {
    fn name(&self) -> &'static str {
        "one instance"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        match fact {
            Fact::Began(process) => {
                if let Unit::Lrp(key) = &process.unit {
                    self.look(key, view);
                }
            }
            Fact::Over(_) | Fact::Committed { .. } => {
                for key in self.crowded.keys().cloned().collect::<Vec<_>>() {
                    self.look(&key, view);
                }
            }
            Fact::Asked { .. }
            | Fact::Acknowledged { .. }
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
            | Fact::WorkBegan { .. }
            | Fact::WorkOver { .. }
            | Fact::FaultsOver => {}
        }
        let Some(calm) = view.calm_since else { return Ok(()) };
        let late = self.crowded.iter().find(|(_, since)| view.now > calm.max(**since) + SETTLED);
        late.map_or(Ok(()), |(key, since)| {
            let all = running(key, view);
            Err(format!("{key} runs more than once since {since:?}: {all:?}"))
        })
    }

    fn at_end(&mut self, view: &View<'_>) -> Result<(), String> {
        let keys = view.running.values().filter_map(|process| match &process.unit {
            Unit::Lrp(key) => Some(key.clone()),
            Unit::Task(_) => None,
        });
        for key in keys.collect::<BTreeSet<_>>() {
            let all = running(&key, view);
            if all.len() > 1 {
                return Err(format!("{key} runs more than once in the end: {all:?}"));
            }
        }
        Ok(())
    }
}
