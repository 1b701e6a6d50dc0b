//! Commits: one at a time, one of each shard at a time, and as large as the driver takes them beside a client that does
//! nothing else.

use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use kapell_core::seat::{Epoch, Seat};
use kapell_sim::bench::show::open;
use kapell_sim::figure::{figure, figure_at_least, share};
use kapell_store::Store;
use kapell_store::model::{Commit, Fence, Key, Op, Raise, Shard};
use tokio::task::JoinSet;

use crate::Plan;
use crate::bare::{self, Bare};
use crate::place::Place;

const BYTES: usize = 150;

/// The least that the driver reaches of what a minimal client does.
const GOAL: f64 = 0.7;

/// What is written: new keys, spread as hashed ids are.
fn record(shard: u16, number: usize) -> (Vec<u8>, Vec<u8>) {
    let spread = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (format!("{spread:016x}/{shard:02}/{number:08}").into_bytes(), vec![7; BYTES])
}

pub(crate) async fn measure(place: &Place, plan: Plan) -> anyhow::Result<()> {
    let name = place.kind.name();
    let store = open(&place.url("commits")).await?;
    let Raise::Done(fences) = store.raise(Seat::FIRST, Epoch(1)).await? else {
        anyhow::bail!("somebody leads")
    };
    let mut ours = Ours { store, fences, written: 0 };
    let mut alone = Vec::new();
    for _ in 0..plan.single {
        alone.push(ours.one().await?);
    }
    figure(&format!("{name}: commit of one record, median"), &[share(&alone, 500)], "ms", None);
    figure(&format!("{name}: commit of one record, p99"), &[share(&alone, 990)], "ms", None);
    let mut rates = Vec::new();
    for _ in 0..plan.rounds {
        rates.push(ours.all(plan.single.div_ceil(4), 1).await?);
    }
    figure(&format!("{name}: commits of one record, 16 shards at once"), &rates, "1/s", None);

    let limits = ours.store.limits();
    let ops = limits.commit_ops.min(limits.commit_bytes / (2 * BYTES));
    let commits = (plan.records / ops / ours.fences.len()).max(1);
    let Some(bare) = bare::open(place).await? else {
        let mut rates = Vec::new();
        for _ in 0..plan.rounds {
            rates.push(ours.all(commits, ops).await?);
        }
        let what = format!("{name}: records of commits of {ops}, 16 shards at once");
        figure(&what, &rates, "1/s", None);
        return Ok(());
    };
    let mut bare = Control { bare, seqs: vec![0; ours.fences.len()], written: 0 };
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    // Whoever comes first finds a server that has just rested: in turns, and once unmeasured.
    for round in 0..=plan.rounds {
        let (driver, control) = if round % 2 == 0 {
            let control = bare.all(commits, ops).await?;
            (ours.all(commits, ops).await?, control)
        } else {
            (ours.all(commits, ops).await?, bare.all(commits, ops).await?)
        };
        if round > 0 {
            ratios.push(driver / control);
            rates.push(driver);
        }
    }
    let what = format!("{name}: records of commits of {ops}, driver / minimal client");
    figure_at_least(&what, &ratios, "ratio", GOAL);
    figure(&format!("{name}: records of commits of {ops}, 16 shards at once"), &rates, "1/s", None);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(records: usize, begun: Instant) -> f64 {
    records as f64 / begun.elapsed().as_secs_f64()
}

struct Ours {
    store: Arc<dyn Store>,
    fences: Vec<Fence>,
    written: usize,
}

impl Ours {
    /// A commit of one record to the first shard, in milliseconds.
    async fn one(&mut self) -> anyhow::Result<f64> {
        let (shard, fence) = (Shard { seat: Seat::FIRST, number: 0 }, self.fences[0]);
        let ops = puts(0, self.written, 1);
        let begun = Instant::now();
        ensure!(self.store.commit(shard, fence, &ops).await? == Commit::Done, "it is alone");
        self.fences[0] = fence.next();
        self.written += 1;
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    /// So many commits of so many records in each shard. Records a second.
    async fn all(&mut self, commits: usize, each: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (shard, mut fence) in Shard::all(Seat::FIRST).zip(self.fences.clone()) {
            let (store, from) = (Arc::clone(&self.store), self.written);
            tasks.spawn(async move {
                for number in 0..commits {
                    let ops = puts(shard.number, from + number * each, each);
                    ensure!(store.commit(shard, fence, &ops).await? == Commit::Done, "alone");
                    fence = fence.next();
                }
                Ok((shard, fence))
            });
        }
        while let Some(done) = tasks.join_next().await {
            let (shard, fence) = done??;
            self.fences[usize::from(shard.number)] = fence;
        }
        self.written += commits * each;
        Ok(rate(commits * each * self.fences.len(), begun))
    }
}

fn puts(shard: u16, from: usize, count: usize) -> Vec<Op> {
    let put = |number| {
        let (key, value) = record(shard, number);
        Op::Put(Key::new(key), value)
    };
    (from..from + count).map(put).collect()
}

struct Control {
    bare: Arc<dyn Bare>,
    seqs: Vec<u64>,
    written: usize,
}

impl Control {
    async fn all(&mut self, commits: usize, each: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (shard, seq) in (0..).zip(self.seqs.clone()) {
            let (bare, from) = (Arc::clone(&self.bare), self.written);
            tasks.spawn(async move {
                for number in 0..commits {
                    let first = from + number * each;
                    let records = (first..first + each).map(|at| record(shard, at)).collect();
                    bare.commit(shard, seq + number as u64, records).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        for seq in &mut self.seqs {
            *seq += commits as u64;
        }
        self.written += commits * each;
        Ok(rate(commits * each * self.seqs.len(), begun))
    }
}
