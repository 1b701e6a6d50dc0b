use std::collections::BTreeMap;

use kapell_core::board::CellId;
use kapell_core::seat::Epoch;
use kapell_store::model::{Fence, Shard};

use super::Check;
use crate::fleet::fact::Fact;
use crate::fleet::view::View;

/// A deposed leader changes nothing, in the store or on a cell.
///
/// Commits to a shard land in the order of their fences, each once, and all commits of an epoch
/// come from the one host that leads in it. A cell that has heard of an epoch takes no order of a lower one after.
/// That it says how it stands changes nothing: an agent that was just restarted tells anybody.
#[derive(Debug, Default)]
pub(super) struct Deposed {
    fences: BTreeMap<Shard, Fence>,
    leaders: BTreeMap<Epoch, usize>,
    /// The highest that each cell has heard of.
    heard: BTreeMap<CellId, Epoch>,
}

impl Deposed {
    fn leads(&mut self, host: usize, epoch: Epoch) -> Result<(), String> {
        let leader = *self.leaders.entry(epoch).or_insert(host);
        if leader == host {
            return Ok(());
        }
        Err(format!("host {host} acts in epoch {epoch}, in which host {leader} leads"))
    }

    /// The highest epoch that a cell has heard of by now.
    fn hears(&mut self, cell: &CellId, epoch: Epoch) -> Epoch {
        let highest = self.heard.entry(cell.clone()).or_default();
        *highest = epoch.max(*highest);
        *highest
    }

    fn committed(&mut self, host: usize, shard: Shard, at: Fence) -> Result<(), String> {
        self.leads(host, at.epoch)?;
        match self.fences.insert(shard, at) {
            Some(before) if at <= before => {
                Err(format!("a commit to shard {shard} at {at} after one at {before}"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Check for Deposed {
    fn name(&self) -> &'static str {
        "deposed"
    }

    fn saw(&mut self, fact: &Fact, _view: &View<'_>) -> Result<(), String> {
        if let Fact::TookOver { host, epoch } = fact {
            return self.leads(*host, *epoch);
        }
        if let Fact::Committed { host, shard, at, .. } = fact {
            return self.committed(*host, *shard, *at);
        }
        if let Fact::HeardOf { cell, epoch } = fact {
            self.hears(cell, *epoch);
        }
        if let Fact::Heeded { cell, epoch, what } = fact {
            let highest = self.hears(cell, *epoch);
            if *epoch < highest && *what != "state" {
                return Err(format!("{cell} heeds {what} of epoch {epoch} after epoch {highest}"));
            }
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
