//! Placing a batch: the processor time of the rule alone.

use std::collections::BTreeMap;

use anyhow::ensure;
use kapell_backend::heap;
use kapell_core::auction::{Limits, Needs, Work, place};
use kapell_core::board::{CellState, LrpKey, Resources};
use kapell_sim::figure::figure;

use crate::Plan;
use kapell_sim::bench::population::{cell_id, guid, memory_mb, zone};
use kapell_sim::bench::usage::{Stopwatch, thousands};

const EACH: u32 = 10;
const DISK_MB: u32 = 1024;

/// As the auctioneer describes it: instances share the guid of their process.
fn work(count: u32) -> Vec<Work> {
    let guids: Vec<_> = (0..count.div_ceil(EACH)).map(guid).collect();
    let unit = |number: u32| {
        let app = number / EACH;
        let process_guid = guids[app as usize].clone();
        Work::Lrp {
            key: LrpKey { process_guid, index: number % EACH },
            memory_mb: memory_mb(app),
            disk_mb: DISK_MB,
            needs: Needs::default(),
        }
    };
    (0..count).map(unit).collect()
}

/// Empty cells in two zones, with twice the room that is wanted.
fn cells(count: u32, work: &[Work]) -> Vec<CellState> {
    let memory: u64 = work.iter().map(|unit| u64::from(unit.memory_mb())).sum();
    let share = |all: u64| u32::try_from(2 * all / u64::from(count)).unwrap_or(u32::MAX);
    let total = Resources {
        memory_mb: share(memory),
        disk_mb: share(work.len() as u64 * u64::from(DISK_MB)),
        containers: share(work.len() as u64),
    };
    let cell = |number| CellState::empty(cell_id(number), zone(number), total);
    (0..count).map(cell).collect()
}

/// What one batch took, and how even it came out.
#[derive(Debug, Clone, Copy)]
struct Round {
    cpu: f64,
    wall: f64,
    /// Between the fullest and the emptiest cell, in instances.
    uneven: f64,
    /// The standard deviation of the share of memory in use.
    spread: f64,
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn once((lrps, count): (u32, u32)) -> anyhow::Result<Round> {
    let work = work(lrps);
    let cells = cells(count, &work);
    let total = f64::from(cells[0].total.memory_mb);
    let mut used = vec![(0_u32, 0_u32); count as usize];
    let numbers: BTreeMap<_, _> =
        cells.iter().enumerate().map(|(at, cell)| (cell.cell_id.clone(), at)).collect();
    let watch = Stopwatch::start();
    let placed = place(cells, work, Limits::default());
    let took = watch.used();
    ensure!(placed.failed().len() == 0, "{} were not placed", placed.failed().len());
    for (cell, unit) in placed.assigned() {
        let (instances, memory) = &mut used[numbers[cell]];
        *instances += 1;
        *memory += unit.memory_mb();
    }
    let most = used.iter().map(|(count, _)| *count).max().unwrap_or(0);
    let least = used.iter().map(|(count, _)| *count).min().unwrap_or(0);
    let shares: Vec<f64> = used.iter().map(|(_, memory)| f64::from(*memory) / total).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let variance = shares.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / shares.len() as f64;
    Ok(Round {
        cpu: took.cpu.as_secs_f64(),
        wall: took.wall.as_secs_f64(),
        uneven: f64::from(most - least),
        spread: variance.sqrt(),
    })
}

/// What a batch costs that is ten times as large. Small ones are measured ten at a time: the system counts in steps
/// of about what one of them takes. Before either, one is not measured: what memory costs that a process has never
/// used before is no part of the auction, and the small ones would pay it once in ten times only. For the same reason
/// what is freed is kept: of the large ones the heap would give it back, and of the small ones not.
fn ratio(plan: Plan) -> anyhow::Result<f64> {
    let mean = |size, rounds: u32| {
        once(size)?;
        let sum = (0..rounds).map(|_| Ok(once(size)?.cpu)).sum::<anyhow::Result<f64>>()?;
        anyhow::Ok(sum / f64::from(rounds))
    };
    Ok(mean(plan.large, 2)? / mean(plan.batch, 10)?)
}

pub(crate) fn measure(plan: Plan) -> anyhow::Result<()> {
    heap::keep();
    let name = |(lrps, cells): (u32, u32)| {
        format!("auction: {} LRPs on {} cells", thousands(lrps), thousands(cells))
    };
    let rounds = |size| (0..plan.rounds).map(|_| once(size)).collect::<anyhow::Result<Vec<_>>>();
    let pick = |rounds: &[Round], of: fn(&Round) -> f64| rounds.iter().map(of).collect::<Vec<_>>();
    let small = rounds(plan.batch)?;
    figure(&format!("{}, CPU", name(plan.batch)), &pick(&small, |it| it.cpu), "s", Some(0.1));
    let uneven = pick(&small, |it| it.uneven);
    figure(&format!("{}, fullest - emptiest cell", name(plan.batch)), &uneven, "LRPs", Some(0.0));
    let spread = pick(&small, |it| it.spread);
    figure(&format!("{}, stddev of used memory", name(plan.batch)), &spread, "ratio", Some(0.03));
    let large = rounds(plan.large)?;
    for (size, rounds) in [(plan.large, &large), (plan.largest, &rounds(plan.largest)?)] {
        figure(&name(size), &pick(rounds, |it| it.wall), "s", Some(1.0));
        figure(&format!("{}, CPU", name(size)), &pick(rounds, |it| it.cpu), "s", None);
        let spread = pick(rounds, |it| it.spread);
        figure(&format!("{}, stddev of used memory", name(size)), &spread, "ratio", None);
    }
    let ratios = (0..plan.rounds).map(|_| ratio(plan)).collect::<anyhow::Result<Vec<_>>>()?;
    figure("auction: CPU of ten times the batch / of the batch", &ratios, "ratio", Some(12.0));
    Ok(())
}
