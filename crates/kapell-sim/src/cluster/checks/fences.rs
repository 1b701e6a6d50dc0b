use std::collections::BTreeMap;

use kapell_core::seat::{Epoch, Seat};
use kapell_store::model::{Fence, Shard};

use super::Violation;

/// No commit of a former epoch lands once the fences were raised to a later one.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Fences(BTreeMap<Seat, Epoch>);

impl Fences {
    pub(in crate::cluster) fn raised(&mut self, seat: Seat, epoch: Epoch) {
        let highest = self.0.entry(seat).or_default();
        *highest = epoch.max(*highest);
    }

    pub(in crate::cluster) fn landed(&self, shard: Shard, at: Fence) -> Result<(), Violation> {
        let highest = self.0.get(&shard.seat).copied().unwrap_or_default();
        if at.epoch == highest {
            return Ok(());
        }
        let how = format!("{shard}: a commit at {at} landed under epoch {highest}");
        Err(Violation::new("fenced", how))
    }
}
