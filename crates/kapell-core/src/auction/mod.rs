//! Which cell gets which work.

mod bid;
mod kind;
mod pool;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::board::{CellId, CellState, LrpKey, TaskGuid};

/// One unit of work that wants a cell. Of memory or disk, 0 means that it wants none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Work {
    Lrp {
        key: LrpKey,
        memory_mb: u32,
        disk_mb: u32,
        rootfs: Option<String>,
        placement_tags: Vec<String>,
    },
    Task {
        task_guid: TaskGuid,
        memory_mb: u32,
        disk_mb: u32,
        rootfs: Option<String>,
        placement_tags: Vec<String>,
    },
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

    pub fn rootfs(&self) -> Option<&str> {
        match self {
            Self::Lrp { rootfs, .. } | Self::Task { rootfs, .. } => rootfs.as_deref(),
        }
    }

    pub fn placement_tags(&self) -> &[String] {
        match self {
            Self::Lrp { placement_tags, .. } | Self::Task { placement_tags, .. } => placement_tags,
        }
    }

    fn name(&self) -> Name<'_> {
        match self {
            Self::Lrp { key, .. } => Name::Lrp(key),
            Self::Task { task_guid, .. } => Name::Task(task_guid),
        }
    }

    /// First instances first, so that every process has one; then tasks; then all further instances.
    const fn rank(&self) -> (u32, bool) {
        match self {
            Self::Lrp { key, .. } => (key.index, false),
            Self::Task { .. } => (0, true),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name<'a> {
    Lrp(&'a LrpKey),
    Task(&'a TaskGuid),
}

/// Where each unit goes, or why it goes nowhere; in the order in which it was decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placed {
    pub assigned: Vec<(CellId, Work)>,
    pub failed: Vec<(Work, String)>,
}

/// Places a batch of work on cells. The order of neither matters; work that is there twice is placed once.
pub fn place(cells: Vec<CellState>, work: Vec<Work>) -> Placed {
    let mut pool = pool::Pool::new(cells);
    let mut placed = Placed::default();
    for unit in in_order(work) {
        match pool.take(&unit) {
            Ok(cell_id) => placed.assigned.push((cell_id, unit)),
            Err(reason) => placed.failed.push((unit, reason)),
        }
    }
    placed
}

/// Larger units come before smaller ones of the same rank.
fn in_order(mut work: Vec<Work>) -> Vec<Work> {
    work.sort_by(|one, other| {
        let order =
            |work: &Work| (work.rank(), u32::MAX - work.memory_mb(), u32::MAX - work.disk_mb());
        let wish = |work: &Work| (work.rootfs().map(str::to_owned), work.placement_tags().to_vec());
        order(one)
            .cmp(&order(other))
            .then_with(|| one.name().cmp(&other.name()))
            .then_with(|| wish(one).cmp(&wish(other)))
    });
    let keep: Vec<bool> = {
        let mut seen = BTreeSet::new();
        work.iter().map(|unit| seen.insert(unit.name())).collect()
    };
    work.into_iter().zip(keep).filter_map(|(unit, keep)| keep.then_some(unit)).collect()
}
