//! How long it takes until a million records are at hand.

use std::path::Path;
use std::any::Any;
use std::time::{Duration, Instant};

use kapell_store::model::{Key, Op};
use tokio::runtime::Runtime;

use crate::batch::{Fjall, Redb};
use crate::ours::{self, Leader};
use crate::stats::Series;

pub const RECORDS: u64 = 1_000_000;
const BATCH: u64 = 1_000;

/// A key at a random place in the order, the same each time.
pub fn key(n: u64) -> Vec<u8> {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("lrp/{mixed:016x}").into_bytes()
}

pub fn value(n: u64) -> Vec<u8> {
    let mut value = vec![b'r'; 120];
    value[..8].copy_from_slice(&n.to_le_bytes());
    value
}

pub fn measure(runtime: &Runtime, place: &Path, rounds: u64) {
    println!("\nopen and read {RECORDS} records of 140 bytes, seconds, median (range) of {rounds}");
    ours(runtime, place, rounds);
    let dir = place.join("load-fjall");
    let mut fjall = Fjall::open(&dir);
    for first in (0..RECORDS).step_by(BATCH as usize) {
        fjall.insert(&batch(first));
    }
    drop(fjall);
    time("fjall", rounds, || {
        let fjall = Fjall::open(&dir);
        let all = fjall.scan();
        (all.len(), Box::new((fjall, all)))
    });
    std::fs::remove_dir_all(&dir).expect("remove");

    let dir = place.join("load-redb");
    let mut redb = Redb::open(&dir);
    for first in (0..RECORDS).step_by(BATCH as usize) {
        redb.insert(&batch(first));
    }
    drop(redb);
    time("redb", rounds, || {
        let redb = Redb::open(&dir);
        let all = redb.scan();
        (all.len(), Box::new((redb, all)))
    });
    std::fs::remove_dir_all(&dir).expect("remove");
}

pub fn ours(runtime: &Runtime, place: &Path, rounds: u64) {
    let dir = place.join("load-log");
    let mut leader = runtime.block_on(Leader::of(ours::open(&dir), 1));
    runtime.block_on(fill(&mut leader, RECORDS));
    drop(leader);
    time_ours(runtime, "ours, log", &dir, rounds);

    // Written once more, most of the log no longer counts.
    let mut leader = runtime.block_on(Leader::of(ours::open(&dir), 2));
    runtime.block_on(async {
        fill(&mut leader, RECORDS).await;
        // Few more, so that little comes behind the snapshot.
        while !has_snapshot(&dir) {
            fill(&mut leader, BATCH).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    drop(leader);
    time_ours(runtime, "ours, snapshot", &dir, rounds);
    std::fs::remove_dir_all(&dir).expect("remove");
}

fn batch(first: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    (first..first + BATCH).map(|n| (key(n), value(n))).collect()
}

pub async fn fill(leader: &mut Leader, records: u64) {
    for (turn, first) in (0..records).step_by(BATCH as usize).enumerate() {
        let put = |n| Op::Put(Key::new(key(n)), value(n));
        let ops: Vec<_> = (first..first + BATCH).map(put).collect();
        leader.commit(turn % 16, &ops).await;
    }
}

pub fn has_snapshot(dir: &Path) -> bool {
    let is_snapshot = |name: &str| name.starts_with("snap.") && !name.ends_with(".tmp");
    let mut entries = std::fs::read_dir(dir).expect("list");
    entries.any(|entry| is_snapshot(entry.expect("entry").file_name().to_str().expect("text")))
}

fn time_ours(runtime: &Runtime, name: &str, dir: &Path, rounds: u64) {
    let mut opened = Series::default();
    time(name, rounds, || {
        let begun = Instant::now();
        let store = ours::open(dir);
        opened.add(begun.elapsed().as_secs_f64());
        let all = runtime.block_on(ours::scan(&store));
        (all.iter().map(Vec::len).sum(), Box::new((store, all)))
    });
    println!("{:16} {:6.2}", "  of which open", opened.median());
}

fn time(name: &str, rounds: u64, mut run: impl FnMut() -> (usize, Box<dyn Any>)) {
    let (mut series, mut cpu) = (Series::default(), Series::default());
    for _ in 0..rounds {
        let (begun, before) = (Instant::now(), cpu_seconds());
        let (count, all) = run();
        series.add(begun.elapsed().as_secs_f64());
        cpu.add(cpu_seconds() - before);
        drop(all);
        assert_eq!(count as u64, RECORDS);
    }
    println!(
        "{name:16} {:6.2} ({:.2}–{:.2}), {:.2} of CPU",
        series.median(),
        series.least(),
        series.most(),
        cpu.median()
    );
}

/// What this process has used: on a machine with others on it, the clock alone says little.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("stat");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks: f64 =
        fields[11].parse::<f64>().expect("user") + fields[12].parse::<f64>().expect("system");
    ticks / 100.0
}
