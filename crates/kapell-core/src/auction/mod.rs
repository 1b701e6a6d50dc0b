//! Which cell gets which work.

#[expect(clippy::module_inception, reason = "the auction is what this is about")]
mod auction;
mod batch;
mod bid;
mod cell;
mod kind;
mod needs;
mod pool;
mod siblings;
#[cfg(test)]
mod tests;
mod tree;
mod unplaced;

use std::sync::Arc;

pub use auction::Auction;
pub use needs::Needs;
pub use unplaced::{Cause, Unplaced};

use crate::board::{CellId, CellState, LrpKey, TaskGuid};

/// One unit of work that wants a cell. Of memory or disk, 0 means that it wants none.
///
/// Its tag is its own, so that there is room in it to say that there is none: an auction takes unit by unit out of its batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[repr(u8)]
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

/// Where each unit goes, or why it goes nowhere; in the order in which it was decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placed {
    pub assigned: Vec<(CellId, Work)>,
    /// Many have the same reason, and share its text.
    pub failed: Vec<(Work, Arc<str>)>,
    /// What each reason in `failed` rests on, in the same order.
    pub unplaced: Vec<Unplaced>,
}

/// Places a batch of work on cells. The order of neither matters; work that is there twice is placed once.
pub fn place(cells: Vec<CellState>, work: Vec<Work>, limits: Limits) -> Placed {
    Auction::new(cells, work, limits).finish()
}
