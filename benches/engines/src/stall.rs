//! How long a commit waits while the log is being replaced.

use std::path::Path;
use std::time::Instant;

use kapell_store::model::{Key, Op};
use tokio::runtime::Runtime;

use crate::load::{fill, has_snapshot, key, value};
use crate::ours::{self, Leader};
use crate::stats::Series;

const RECORDS: u64 = 250_000;

pub fn measure(runtime: &Runtime, place: &Path) {
    println!("\na commit of 16 records in a store of {RECORDS}, milliseconds");
    println!("{:24} {:>6} {:>8} {:>8} {:>8} {:>8}", "", "count", "p50", "p99", "p99.9", "most");
    let dir = place.join("stall");
    runtime.block_on(async {
        let mut leader = Leader::of(ours::open(&dir), 1).await;
        fill(&mut leader, RECORDS).await;
        let (mut calm, mut busy) = (Vec::new(), Vec::new());
        let mut turn = 0;
        while !has_snapshot(&dir) {
            // Records that are there already, in the shard that `fill` has put them into.
            let (block, within) = (turn % (RECORDS / 1000), turn / (RECORDS / 1000) * 16 % 984);
            let put = |n| Op::Put(Key::new(key(block * 1000 + within + n)), value(turn));
            let ops: Vec<_> = (0..16).map(put).collect();
            let begun = Instant::now();
            leader.commit((block % 16) as usize, &ops).await;
            let took = begun.elapsed().as_secs_f64() * 1e3;
            if is_compacting(&dir) {
                busy.push(took)
            } else {
                calm.push(took)
            }
            turn += 1;
        }
        for (name, values) in [("before", calm), ("while a snapshot is made", busy)] {
            let (count, series) = (values.len(), Series::of(values));
            let [p50, p99, p999, most] = [500, 990, 999, 1000].map(|permille| series.at(permille));
            println!("{name:24} {count:6} {p50:8.2} {p99:8.2} {p999:8.2} {most:8.2}");
        }
        drop(leader);
    });
    std::fs::remove_dir_all(&dir).expect("remove");
}

fn is_compacting(dir: &Path) -> bool {
    let mut entries = std::fs::read_dir(dir).expect("list");
    entries.any(|entry| {
        let name = entry.expect("entry").file_name();
        let name = name.to_str().expect("text");
        name.starts_with("snap.") && name.ends_with(".tmp")
    })
}
