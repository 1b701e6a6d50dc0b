//! What placing one unit on a cell would cost.

use crate::board::Resources;

/// A whole of a resource. Fractions are integers, so that equal cells tie exactly.
const WHOLE: u64 = 1 << 44;
/// What one starting container adds: a quarter of the mean over three resources.
const STARTING: u64 = WHOLE / 4 * 3;
/// More than these on one cell weigh no more, so that no sum is too large.
const MOST_STARTING: u32 = 1 << 16;

/// What placing one unit on a cell of a zone would cost. The lowest bid wins.
///
/// From top to bottom it is made of the siblings on the cell, the load and the cell, so their order *is* the policy:
/// spread over cells first, and only then balance load. Cells are numbered in order of their id, so equal bids always
/// fall to the lowest. Zones are walked before, from the one with the fewest siblings. One number is compared at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bid(u128);

impl Bid {
    /// Higher than any that is made.
    pub(super) const NONE: Self = Self(u128::MAX);

    pub(super) fn new(siblings_on_cell: u32, load: u64, cell: u32) -> Self {
        Self(u128::from(siblings_on_cell) << 96 | u128::from(load) << 32 | u128::from(cell))
    }

    pub(super) const fn siblings_on_cell(self) -> u32 {
        (self.0 >> 96) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower 32 bits are wanted")]
    pub(super) const fn cell(self) -> u32 {
        self.0 as u32
    }

    pub(super) fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// What is weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Memory, disk and containers, and how many of them are starting.
    Lrp,
    /// Memory and disk.
    Task,
}

/// How much of the whole one MB, or one container, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rates {
    memory: u64,
    disk: u64,
    containers: u64,
}

impl Rates {
    /// More than any cell has.
    pub(super) const HIGHEST: Self =
        Self { memory: u64::MAX, disk: u64::MAX, containers: u64::MAX };

    pub(super) fn of(total: Resources) -> Self {
        let rate = |total: u32| WHOLE.checked_div(u64::from(total)).unwrap_or(0);
        Self {
            memory: rate(total.memory_mb),
            disk: rate(total.disk_mb),
            containers: rate(total.containers),
        }
    }

    /// The lower of each.
    pub(super) fn lower(self, other: Self) -> Self {
        Self {
            memory: self.memory.min(other.memory),
            disk: self.disk.min(other.disk),
            containers: self.containers.min(other.containers),
        }
    }

    /// How much of a cell these resources are: what a unit adds to its load. No more than all of it.
    pub(super) fn share(self, part: Resources, measure: Measure) -> u64 {
        let both = share(self.memory, part.memory_mb) + share(self.disk, part.disk_mb);
        match measure {
            Measure::Lrp => both + share(self.containers, part.containers),
            Measure::Task => both,
        }
    }

    /// Which resource is the scarcest, and how much is free of it.
    pub(super) fn scarcest(self, free: Resources) -> (u8, u32) {
        let parts = [
            (share(self.memory, free.memory_mb), 0, free.memory_mb),
            (share(self.disk, free.disk_mb), 1, free.disk_mb),
            (share(self.containers, free.containers), 2, free.containers),
        ];
        let (_, which, count) = parts.into_iter().min().unwrap_or_default();
        (which, count)
    }
}

fn share(rate: u64, count: u32) -> u64 {
    rate.saturating_mul(u64::from(count)).min(WHOLE)
}

/// How full a cell is. What a unit adds is the same on all cells with the same total, so which
/// of these is the fullest does not depend on the unit.
pub(super) fn base(total: Resources, free: Resources, starting: u32, measure: Measure) -> u64 {
    let used = Resources {
        memory_mb: total.memory_mb.saturating_sub(free.memory_mb),
        disk_mb: total.disk_mb.saturating_sub(free.disk_mb),
        containers: total.containers.saturating_sub(free.containers),
    };
    // Of nothing, all is used.
    let none = |total: u32| if total == 0 { WHOLE } else { 0 };
    let both = Rates::of(total).share(used, measure) + none(total.memory_mb) + none(total.disk_mb);
    let starting = u64::from(starting.min(MOST_STARTING)) * STARTING;
    match measure {
        Measure::Lrp => both + none(total.containers) + starting,
        Measure::Task => both,
    }
}
