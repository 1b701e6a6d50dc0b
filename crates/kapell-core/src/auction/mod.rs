//! Which cell gets which work.

#[expect(clippy::module_inception, reason = "the auction is what this is about")]
mod auction;
mod batch;
mod bid;
mod cell;
mod kind;
mod needs;
mod placed;
mod pool;
mod siblings;
#[cfg(test)]
mod tests;
mod tree;
mod unplaced;

pub use auction::Auction;
pub use needs::Needs;
pub use placed::Placed;
pub use unplaced::{Cause, Unplaced};

use crate::board::{CellState, LrpKey, TaskGuid};

/// One unit of work that wants a cell. Of memory or disk, 0 means that it wants none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Work {
    Lrp { key: LrpKey, memory_mb: u32, disk_mb: u32, needs: Needs },
    Task { task_guid: TaskGuid, memory_mb: u32, disk_mb: u32, needs: Needs },
}

impl Work {
    pub const fn memory_mb(&self) -> u32 {
        match self {
            Self::Lrp { memory_mb, .. } | Self::Task { memory_mb, .. } => *memory_mb,
        }
    }

    pub const fn disk_mb(&self) -> u32 {
        match self {
            Self::Lrp { disk_mb, .. } | Self::Task { disk_mb, .. } => *disk_mb,
        }
    }

    pub const fn needs(&self) -> &Needs {
        match self {
            Self::Lrp { needs, .. } | Self::Task { needs, .. } => needs,
        }
    }

    pub fn rootfs(&self) -> Option<&str> {
        self.needs().rootfs()
    }

    pub fn placement_tags(&self) -> &[String] {
        self.needs().placement_tags()
    }
}

/// What holds for all cells together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// How many containers may be starting at once; without it, as many as like.
    pub in_flight_starts: Option<u32>,
}

impl Limits {
    /// Whether one more may start.
    fn allow(self, starting: u64) -> bool {
        self.in_flight_starts.is_none_or(|most| starting < u64::from(most))
    }
}

/// Places a batch of work on cells. The order of neither matters; work that is there twice is placed once.
pub fn place(cells: Vec<CellState>, work: Vec<Work>, limits: Limits) -> Placed {
    Auction::new(cells, work, limits).finish()
}
