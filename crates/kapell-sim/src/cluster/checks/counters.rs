use std::collections::{BTreeMap, BTreeSet};

use kapell_store::model::{Fence, Shard};

use super::Violation;

/// What was acknowledged has landed, nothing lands twice, and each shard's counter is the
/// number of commits that landed there: no writer ever built on a state that was not the last.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Counters {
    landed: BTreeSet<(Shard, Fence)>,
    counts: BTreeMap<Shard, u64>,
    acknowledged: u64,
}

const RULE: &str = "counted";

impl Counters {
    pub(in crate::cluster) fn landed(&mut self, shard: Shard, at: Fence) -> Result<(), Violation> {
        *self.counts.entry(shard).or_default() += 1;
        if self.landed.insert((shard, at)) {
            return Ok(());
        }
        Err(Violation::new(RULE, format!("{shard}: the commit at {at} landed twice")))
    }

    pub(in crate::cluster) fn acknowledged(
        &mut self,
        shard: Shard,
        at: Fence,
    ) -> Result<(), Violation> {
        self.acknowledged += 1;
        if self.landed.contains(&(shard, at)) {
            return Ok(());
        }
        let how = format!("{shard}: the commit at {at} was acknowledged but has not landed");
        Err(Violation::new(RULE, how))
    }

    pub(in crate::cluster) const fn count(&self) -> u64 {
        self.acknowledged
    }

    pub(in crate::cluster) fn at_end(
        &self,
        counter: impl Fn(Shard) -> u64,
    ) -> Result<(), Violation> {
        for (shard, landed) in &self.counts {
            let says = counter(*shard);
            if says != *landed {
                let how = format!("{shard}: {landed} commits landed, its counter says {says}");
                return Err(Violation::new(RULE, how));
            }
        }
        Ok(())
    }
}
