//! A cell as full as it becomes while work is placed.

use super::bid::{Measure, Rates, base};
use crate::board::{CellState, Resources};

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) free: Resources,
    pub(super) rates: Rates,
    pub(super) zone: u32,
    /// Which of its group's members it is.
    pub(super) member: u32,
    total: Resources,
    starting: u32,
    lrp_base: u64,
    task_base: u64,
}

impl Cell {
    pub(super) fn new(state: &CellState, zone: u32) -> Self {
        let (total, said) = (state.total, state.available);
        // No more is free than there is, whatever the cell says.
        let free = Resources {
            memory_mb: said.memory_mb.min(total.memory_mb),
            disk_mb: said.disk_mb.min(total.disk_mb),
            containers: said.containers.min(total.containers),
        };
        let mut cell = Self {
            free,
            rates: Rates::of(total),
            zone,
            member: 0,
            total,
            starting: state.starting,
            lrp_base: 0,
            task_base: 0,
        };
        cell.weigh();
        cell
    }

    fn weigh(&mut self) {
        self.lrp_base = base(self.total, self.free, self.starting, Measure::Lrp);
        self.task_base = base(self.total, self.free, self.starting, Measure::Task);
    }

    pub(super) const fn base(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Lrp => self.lrp_base,
            Measure::Task => self.task_base,
        }
    }

    /// Gives away what is wanted; it is there.
    pub(super) fn reserve(&mut self, wanted: Resources) {
        self.free.memory_mb -= wanted.memory_mb;
        self.free.disk_mb -= wanted.disk_mb;
        self.free.containers -= wanted.containers;
        self.starting = self.starting.saturating_add(1);
        self.weigh();
    }
}
