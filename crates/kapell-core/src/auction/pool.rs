//! The cells of one batch, as full as they become while work is placed.

use std::collections::BTreeMap;

use super::Work;
use super::bid::{Bid, lrp_load, task_load};
use super::kind::Kind;
use crate::board::{CellId, CellState, ProcessGuid, Resources};

#[derive(Debug)]
pub(super) struct Pool {
    /// In order of their ids.
    cells: Vec<CellState>,
    /// The zone of each cell, numbered.
    zone_of: Vec<usize>,
    zones: usize,
    siblings: BTreeMap<ProcessGuid, Siblings>,
    candidates: BTreeMap<Kind, Result<Vec<usize>, String>>,
}

/// Where instances of one process are.
#[derive(Debug)]
struct Siblings {
    by_zone: Vec<u32>,
    /// Cells that have any, in order, and how many.
    by_cell: Vec<(usize, u32)>,
}

impl Siblings {
    fn new(zones: usize) -> Self {
        Self { by_zone: vec![0; zones], by_cell: Vec::new() }
    }

    fn add(&mut self, cell: usize, zone: usize) {
        self.by_zone[zone] += 1;
        match self.by_cell.binary_search_by_key(&cell, |(cell, _)| *cell) {
            Ok(at) => self.by_cell[at].1 += 1,
            Err(at) => self.by_cell.insert(at, (cell, 1)),
        }
    }
}

impl Pool {
    pub(super) fn new(mut cells: Vec<CellState>) -> Self {
        cells.sort_by(|one, other| one.cell_id.cmp(&other.cell_id));
        cells.dedup_by(|one, other| one.cell_id == other.cell_id);
        let mut numbers = BTreeMap::new();
        let zone_of = cells
            .iter()
            .map(|cell| {
                let next = numbers.len();
                *numbers.entry(cell.zone.clone()).or_insert(next)
            })
            .collect();
        let zones = numbers.len();
        let mut pool =
            Self { cells, zone_of, zones, siblings: BTreeMap::new(), candidates: BTreeMap::new() };
        pool.count_siblings();
        pool
    }

    fn count_siblings(&mut self) {
        for (at, cell) in self.cells.iter().enumerate() {
            // What is on an evacuating cell leaves it.
            for held in cell.lrps.iter().filter(|_| !cell.evacuating) {
                self.siblings
                    .entry(held.key.process_guid.clone())
                    .or_insert_with(|| Siblings::new(self.zones))
                    .add(at, self.zone_of[at]);
            }
        }
    }

    /// Reserves the best cell for a unit, or says why there is none.
    pub(super) fn take(&mut self, work: &Work) -> Result<CellId, String> {
        let kind = Kind::of(work);
        let cells = &self.cells;
        let candidates = self
            .candidates
            .entry(kind)
            .or_insert_with_key(|kind| kind.candidates(cells))
            .as_ref()
            .map_err(Clone::clone)?;
        let wanted =
            Resources { memory_mb: work.memory_mb(), disk_mb: work.disk_mb(), containers: 1 };
        let best = match work {
            Work::Lrp { key, .. } => {
                let siblings = self.siblings.get(&key.process_guid);
                best_for_lrp(cells, &self.zone_of, candidates, siblings, wanted)
            }
            Work::Task { .. } => best_for_task(cells, candidates, wanted),
        };
        let Some(best) = best else { return Err(lacking(cells, candidates, wanted)) };
        self.reserve(best.cell, work, wanted);
        Ok(self.cells[best.cell].cell_id.clone())
    }

    fn reserve(&mut self, at: usize, work: &Work, wanted: Resources) {
        let cell = &mut self.cells[at];
        cell.available.memory_mb -= wanted.memory_mb;
        cell.available.disk_mb -= wanted.disk_mb;
        cell.available.containers -= wanted.containers;
        cell.starting = cell.starting.saturating_add(1);
        if let Work::Lrp { key, .. } = work {
            self.siblings
                .entry(key.process_guid.clone())
                .or_insert_with(|| Siblings::new(self.zones))
                .add(at, self.zone_of[at]);
        }
    }
}

const fn fits(free: Resources, wanted: Resources) -> bool {
    free.memory_mb >= wanted.memory_mb
        && free.disk_mb >= wanted.disk_mb
        && free.containers >= wanted.containers
}

fn best_for_lrp(
    cells: &[CellState],
    zone_of: &[usize],
    candidates: &[usize],
    siblings: Option<&Siblings>,
    wanted: Resources,
) -> Option<Bid> {
    let mut best: Option<Bid> = None;
    // Candidates and cells with siblings are both in order: one walk over both.
    let mut taken = siblings.map_or(&[][..], |siblings| &siblings.by_cell);
    for &at in candidates {
        while let [(cell, _), rest @ ..] = taken
            && *cell < at
        {
            taken = rest;
        }
        if !fits(cells[at].available, wanted) {
            continue;
        }
        let on_cell = taken.first().filter(|(cell, _)| *cell == at).map_or(0, |(_, count)| *count);
        let in_zone = siblings.map_or(0, |siblings| siblings.by_zone[zone_of[at]]);
        // Load is the dear part: not computed for a cell that has lost already.
        if best
            .is_some_and(|best| (best.siblings_in_zone, best.siblings_on_cell) < (in_zone, on_cell))
        {
            continue;
        }
        let bid = Bid {
            siblings_in_zone: in_zone,
            siblings_on_cell: on_cell,
            load: lrp_load(&cells[at], wanted),
            cell: at,
        };
        if best.is_none_or(|best| bid < best) {
            best = Some(bid);
        }
    }
    best
}

fn best_for_task(cells: &[CellState], candidates: &[usize], wanted: Resources) -> Option<Bid> {
    let bids = candidates.iter().filter(|at| fits(cells[**at].available, wanted)).map(|&at| Bid {
        siblings_in_zone: 0,
        siblings_on_cell: 0,
        load: task_load(&cells[at], wanted),
        cell: at,
    });
    bids.min()
}

/// Names what no candidate has enough of, what was wanted, and the most that is free.
fn lacking(cells: &[CellState], candidates: &[usize], wanted: Resources) -> String {
    let most = |part: fn(&Resources) -> u32| {
        candidates.iter().map(|at| part(&cells[*at].available)).max().unwrap_or(0)
    };
    let memory = most(|free| free.memory_mb);
    let disk = most(|free| free.disk_mb);
    let containers = most(|free| free.containers);
    let parts = [
        ("memory", memory < wanted.memory_mb),
        ("disk", disk < wanted.disk_mb),
        ("containers", containers < wanted.containers),
    ];
    let lack: Vec<&str> =
        parts.into_iter().filter(|(_, lacks)| *lacks).map(|(name, _)| name).collect();
    let lack =
        if lack.is_empty() { "no cell has all of it at once".to_owned() } else { lack.join(", ") };
    format!(
        "insufficient resources: {lack} (wanted {} MB of memory and {} MB of disk; the most that is \
         free on a cell is {memory} MB of memory, {disk} MB of disk, {containers} containers)",
        wanted.memory_mb, wanted.disk_mb,
    )
}
