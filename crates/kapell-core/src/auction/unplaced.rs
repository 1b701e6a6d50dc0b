//! Why a unit was not placed.

use super::kind::Kind;
use crate::board::Resources;
use crate::board::placement::IN_FLIGHT;
use crate::board::text;

/// Which rule kept a unit from being placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No cell could ever take it, as the cells are.
    NoCompatibleCell,
    /// Compatible cells are there, and none of them has room.
    NoRoom,
    /// A cell would have taken it, and enough is starting already.
    InFlightLimit,
}

/// Why a unit was not placed: how many cells fell out by which constraint.
///
/// A cell is counted by the first that holds of: evacuating, unhealthy, other rootfs, other tags. A cell that is compatible
/// is counted once for each resource that it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unplaced {
    pub cause: Cause,
    /// All cells that were asked.
    pub cells: u32,
    pub evacuating: u32,
    pub unhealthy: u32,
    pub other_rootfs: u32,
    pub other_tags: u32,
    pub lacking_memory: u32,
    pub lacking_disk: u32,
    pub lacking_containers: u32,
    pub wanted: Resources,
    /// The most that a compatible cell has free of each.
    pub most_free: Resources,
}

impl Unplaced {
    /// How many cells could take it if they had room.
    pub const fn compatible(&self) -> u32 {
        let out = self.evacuating + self.unhealthy + self.other_rootfs + self.other_tags;
        self.cells.saturating_sub(out)
    }

    /// How many cells fell out by each constraint by which any did.
    pub fn by_constraint(&self) -> impl Iterator<Item = (u32, &'static str)> {
        let counts = [
            (self.evacuating, "evacuating"),
            (self.unhealthy, "unhealthy"),
            (self.other_rootfs, "without the rootfs scheme"),
            (self.other_tags, "with other tags"),
            (self.lacking_containers, "lacking containers"),
            (self.lacking_disk, "lacking disk"),
            (self.lacking_memory, "lacking memory"),
        ];
        counts.into_iter().filter(|(count, _)| *count > 0)
    }

    /// Takes in a compatible cell that has so much free.
    pub(super) fn count(&mut self, free: Resources) {
        let (wanted, most) = (self.wanted, &mut self.most_free);
        self.lacking_memory += u32::from(free.memory_mb < wanted.memory_mb);
        self.lacking_disk += u32::from(free.disk_mb < wanted.disk_mb);
        self.lacking_containers += u32::from(free.containers < wanted.containers);
        most.memory_mb = most.memory_mb.max(free.memory_mb);
        most.disk_mb = most.disk_mb.max(free.disk_mb);
        most.containers = most.containers.max(free.containers);
    }

    /// Says it in one line that fits into a record.
    pub(super) fn text(&self, kind: &Kind) -> String {
        text::reason(&match self.cause {
            Cause::NoCompatibleCell => self.incompatible(kind),
            Cause::NoRoom => self.no_room(),
            Cause::InFlightLimit => IN_FLIGHT.to_owned(),
        })
    }

    fn incompatible(&self, kind: &Kind) -> String {
        let up = self.cells - self.evacuating - self.unhealthy;
        let lack = if self.cells == 0 {
            return "found no compatible cells: there is no cell".to_owned();
        } else if up == 0 {
            "every cell is evacuating or has failed its self-test".to_owned()
        } else if up == self.other_rootfs {
            kind.rootfs_lack()
        } else {
            kind.tags_lack()
        };
        format!("found no compatible cells: {lack} ({})", self.counted())
    }

    /// Names what no compatible cell has enough of, what was wanted, and the most that is free.
    fn no_room(&self) -> String {
        let all = self.compatible();
        let parts = [
            ("containers", self.lacking_containers),
            ("disk", self.lacking_disk),
            ("memory", self.lacking_memory),
        ];
        let lack: Vec<&str> =
            parts.into_iter().filter(|(_, count)| *count == all).map(|(name, _)| name).collect();
        let lack = if lack.is_empty() {
            "no cell has all of it at once".to_owned()
        } else {
            lack.join(", ")
        };
        let (wanted, most) = (self.wanted, self.most_free);
        format!(
            "insufficient resources: {lack} (wanted {} MB of memory and {} MB of disk; the most that is \
             free on a cell is {} MB of memory, {} MB of disk, {} containers; {})",
            wanted.memory_mb,
            wanted.disk_mb,
            most.memory_mb,
            most.disk_mb,
            most.containers,
            self.counted(),
        )
    }

    fn counted(&self) -> String {
        let counts: Vec<String> =
            self.by_constraint().map(|(count, what)| format!("{count} {what}")).collect();
        let cells = if self.cells == 1 { "cell" } else { "cells" };
        format!("of {} {cells}: {}", self.cells, counts.join(", "))
    }
}
