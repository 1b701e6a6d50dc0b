//! What placing one unit on a cell would cost.

use crate::board::{CellState, Resources};

/// A whole of a resource. Fractions are counted in millionths, so that equal cells tie exactly.
const WHOLE: u64 = 1_000_000;
/// What one starting container adds: a quarter of the mean over three resources.
const STARTING: u64 = WHOLE * 3 / 4;

/// What placing one unit on a cell would cost. The lowest bid wins.
///
/// Fields are compared from top to bottom, so their order *is* the policy: spread over zones
/// first, then over cells, and only then balance load. Cells are numbered in order of their id,
/// so equal bids always fall to the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bid {
    pub(super) siblings_in_zone: u32,
    pub(super) siblings_on_cell: u32,
    pub(super) load: u64,
    pub(super) cell: usize,
}

/// How full a cell would be with an instance on it.
pub(super) fn lrp_load(cell: &CellState, wanted: Resources) -> u64 {
    task_load(cell, wanted)
        + used(cell.total.containers, cell.available.containers, wanted.containers)
        + u64::from(cell.starting) * STARTING
}

/// How full a cell would be with a task on it: only memory and disk count.
pub(super) fn task_load(cell: &CellState, wanted: Resources) -> u64 {
    used(cell.total.memory_mb, cell.available.memory_mb, wanted.memory_mb)
        + used(cell.total.disk_mb, cell.available.disk_mb, wanted.disk_mb)
}

fn used(total: u32, available: u32, wanted: u32) -> u64 {
    let left = available.saturating_sub(wanted);
    let used = u64::from(total.saturating_sub(left));
    (used * WHOLE).checked_div(u64::from(total)).unwrap_or(WHOLE)
}
