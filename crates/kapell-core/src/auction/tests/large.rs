use std::collections::BTreeMap;

use super::*;
use crate::auction::Auction;

#[test]
fn a_large_batch_is_spread_evenly() {
    let cells: Vec<_> = (0..50).map(|n| cell(&format!("c{n:02}"), ["z1", "z2"][n % 2])).collect();
    let work = (0..100_u32).flat_map(|n| (0..10).map(move |i| lrp(&format!("p{n}"), i, 16)));
    let placed = place(cells, work.collect());
    assert_eq!(placed.failed, []);
    let mut counts = BTreeMap::<_, u32>::new();
    for (cell, _) in &placed.assigned {
        *counts.entry(cell.clone()).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 20), "{counts:?}");
}

/// Ten instances each of applications of five sizes, in two zones, with room for twice as much.
fn applications(cells: u32, instances: u32) -> (Vec<CellState>, Vec<Work>) {
    let work: Vec<Work> = (0..instances)
        .map(|n| Work::Lrp {
            key: LrpKey { process_guid: format!("app-{}", n / 10).into(), index: n % 10 },
            memory_mb: [128, 256, 512, 1024, 2048][n as usize / 10 % 5],
            disk_mb: 1024,
            needs: Needs::default(),
        })
        .collect();
    let memory: u32 = work.iter().map(Work::memory_mb).sum();
    let all = Resources {
        memory_mb: memory / cells * 2,
        disk_mb: instances / cells * 2 * 1024,
        containers: instances / cells * 2,
    };
    let cells = (0..cells).map(|n| CellState {
        total: all,
        available: all,
        ..cell(&format!("c{n:04}"), ["z1", "z2"][n as usize % 2])
    });
    (cells.collect(), work)
}

#[test]
fn ten_thousand_instances_are_spread_evenly_over_a_thousand_cells() {
    let (cells, work) = applications(1000, 10_000);
    let total = f64::from(cells[0].total.memory_mb);
    let placed = place(cells, work);
    assert_eq!(placed.failed, []);
    let mut counts = BTreeMap::<_, (u32, u32)>::new();
    for (cell, work) in &placed.assigned {
        let (count, memory) = counts.entry(cell.clone()).or_default();
        *count += 1;
        *memory += work.memory_mb();
    }
    assert_eq!(counts.len(), 1000);
    assert!(counts.values().all(|(count, _)| *count == 10));
    let used: Vec<f64> = counts.values().map(|(_, memory)| f64::from(*memory) / total).collect();
    let mean = used.iter().sum::<f64>() / 1000.0;
    let spread = (used.iter().map(|used| (used - mean).powi(2)).sum::<f64>() / 1000.0).sqrt();
    assert!(spread <= 0.03, "{spread}");
}

#[test]
fn in_slices_the_same_is_placed() {
    let (cells, work) = applications(50, 1000);
    let whole = place(cells.clone(), work.clone());
    for slice in [1, 7, 999, 1000] {
        let mut auction = Auction::new(cells.clone(), work.clone(), Limits::default());
        let mut steps = 1;
        while auction.step(slice) {
            steps += 1;
        }
        assert_eq!(steps, 1000_usize.div_ceil(slice));
        assert_eq!(Placed::from(auction.finish()), whole);
    }
}
