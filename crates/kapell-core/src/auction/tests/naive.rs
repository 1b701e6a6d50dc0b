//! The rules of the auction once more, as plainly as can be: every unit looks at every cell.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::auction::{Cause, Limits, Unplaced, Work};
use crate::board::validate::scheme;
use crate::board::{CellId, CellState, LrpKey, Resources};

/// Each unit in the order in which it is decided, with its cell or why there is none.
pub(super) fn place(
    cells: &[CellState],
    work: &[Work],
    limits: Limits,
) -> Vec<(Work, Result<CellId, Unplaced>)> {
    let mut cells = cells.to_vec();
    cells.sort_by(|one, other| one.cell_id.cmp(&other.cell_id));
    let mut work = work.to_vec();
    work.sort_by_key(order);
    let mut seen = BTreeSet::new();
    work.retain(|unit| seen.insert(name(unit)));
    work.into_iter().map(|unit| (unit.clone(), place_one(&mut cells, &unit, limits))).collect()
}

type Size = (Reverse<u32>, Reverse<u32>);

/// Index 0, tasks, index 1 and so on; the larger first.
fn order(work: &Work) -> ((u32, bool), Size, String, Option<String>, Vec<String>) {
    let (rank, guid) = match work {
        Work::Lrp { key, .. } => ((key.index, false), key.process_guid.to_string()),
        Work::Task { task_guid, .. } => ((0, true), task_guid.to_string()),
    };
    let size = (Reverse(work.memory_mb()), Reverse(work.disk_mb()));
    (rank, size, guid, work.rootfs().map(str::to_owned), work.placement_tags().to_vec())
}

fn name(work: &Work) -> String {
    match work {
        Work::Lrp { key, .. } => format!("lrp {} {}", key.process_guid, key.index),
        Work::Task { task_guid, .. } => format!("task {task_guid}"),
    }
}

fn place_one(cells: &mut [CellState], unit: &Work, limits: Limits) -> Result<CellId, Unplaced> {
    let can = |cell: &CellState| {
        !cell.evacuating && !cell.unhealthy && has_rootfs(cell, unit) && has_tags(cell, unit)
    };
    let best = (0..cells.len())
        .filter(|at| can(&cells[*at]) && has_room(&cells[*at], unit))
        .min_by_key(|at| (score(cells, *at, unit), *at));
    let starting: u32 = cells.iter().map(|cell| cell.starting).sum();
    let Some(best) = best else {
        let any = cells.iter().any(can);
        let cause = if any { Cause::NoRoom } else { Cause::NoCompatibleCell };
        return Err(why_not(cells, unit, cause));
    };
    if limits.in_flight_starts.is_some_and(|most| starting >= most) {
        return Err(why_not(cells, unit, Cause::InFlightLimit));
    }
    let cell = &mut cells[best];
    cell.available.memory_mb -= unit.memory_mb();
    cell.available.disk_mb -= unit.disk_mb();
    cell.available.containers -= 1;
    cell.starting += 1;
    if let Work::Lrp { key, .. } = unit {
        cell.lrps.push(super::held(key.process_guid.as_str(), key.index));
    }
    Ok(cell.cell_id.clone())
}

fn has_rootfs(cell: &CellState, unit: &Work) -> bool {
    let Some(rootfs) = unit.rootfs() else { return true };
    cell.rootfs_schemes.iter().any(|have| have == scheme(rootfs).unwrap_or_default())
}

fn has_tags(cell: &CellState, unit: &Work) -> bool {
    let wanted: BTreeSet<&String> = unit.placement_tags().iter().collect();
    let required: BTreeSet<&String> = cell.placement_tags.iter().collect();
    let mut all = required.clone();
    all.extend(&cell.optional_placement_tags);
    required.is_subset(&wanted) && wanted.is_subset(&all)
}

fn has_room(cell: &CellState, unit: &Work) -> bool {
    let free = cell.available;
    free.memory_mb >= unit.memory_mb() && free.disk_mb >= unit.disk_mb() && free.containers >= 1
}

/// Siblings in the zone, siblings on the cell, load.
fn score(cells: &[CellState], at: usize, unit: &Work) -> (usize, usize, u128) {
    let cell = &cells[at];
    let (total, free) = (cell.total, cell.available);
    let memory = filled(total.memory_mb, free.memory_mb, unit.memory_mb());
    let disk = filled(total.disk_mb, free.disk_mb, unit.disk_mb());
    match unit {
        Work::Task { .. } => (0, 0, memory + disk),
        Work::Lrp { key, .. } => {
            let containers = filled(total.containers, free.containers, 1);
            // A quarter of the mean is three quarters of the sum.
            let starting = u128::from(cell.starting) * (1 << 44) * 3 / 4;
            let in_zone = |other: &&CellState| other.zone == cell.zone && !other.evacuating;
            let zone = cells.iter().filter(in_zone).map(|cell| siblings(cell, key)).sum();
            (zone, siblings(cell, key), memory + disk + containers + starting)
        }
    }
}

fn siblings(cell: &CellState, key: &LrpKey) -> usize {
    cell.lrps.iter().filter(|held| held.key.process_guid == key.process_guid).count()
}

/// Which part of a resource would be used, in parts of 2^-44.
fn filled(total: u32, free: u32, wanted: u32) -> u128 {
    if total == 0 {
        return 1 << 44;
    }
    u128::from(total - free + wanted) * ((1 << 44) / u128::from(total))
}

fn why_not(cells: &[CellState], unit: &Work, cause: Cause) -> Unplaced {
    let count = |is: &dyn Fn(&CellState) -> bool| {
        u32::try_from(cells.iter().filter(|cell| is(cell)).count()).unwrap()
    };
    let up = |cell: &CellState| !cell.evacuating && !cell.unhealthy;
    let can = |cell: &CellState| up(cell) && has_rootfs(cell, unit) && has_tags(cell, unit);
    let most = |part: fn(&Resources) -> u32| {
        cells.iter().filter(|cell| can(cell)).map(|cell| part(&cell.available)).max().unwrap_or(0)
    };
    Unplaced {
        cause,
        cells: count(&|_| true),
        evacuating: count(&|cell| cell.evacuating),
        unhealthy: count(&|cell| !cell.evacuating && cell.unhealthy),
        other_rootfs: count(&|cell| up(cell) && !has_rootfs(cell, unit)),
        other_tags: count(&|cell| up(cell) && has_rootfs(cell, unit) && !has_tags(cell, unit)),
        lacking_memory: count(&|cell| can(cell) && cell.available.memory_mb < unit.memory_mb()),
        lacking_disk: count(&|cell| can(cell) && cell.available.disk_mb < unit.disk_mb()),
        lacking_containers: count(&|cell| can(cell) && cell.available.containers < 1),
        wanted: Resources { memory_mb: unit.memory_mb(), disk_mb: unit.disk_mb(), containers: 1 },
        most_free: Resources {
            memory_mb: most(|free| free.memory_mb),
            disk_mb: most(|free| free.disk_mb),
            containers: most(|free| free.containers),
        },
    }
}
