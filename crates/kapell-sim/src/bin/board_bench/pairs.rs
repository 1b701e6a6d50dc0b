//! Claims and starts in this process, on the embedded store, beside its bare commits of the same bytes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, ensure};
use kapell_core::board::{Record, Request};
use kapell_core::seat::{Epoch, Seat};
use kapell_sim::figure::{figure, figure_at_least};
use kapell_store::model::{Commit, Key, Op, Raise, Shard};
use tokio::task::JoinSet;

use crate::Plan;
use kapell_sim::bench::population::Population;
use kapell_sim::bench::show::{Cells, Show, embedded};
use kapell_sim::bench::usage::{Stopwatch, rate};

/// What one round has shown.
#[derive(Debug, Clone, Copy)]
struct Round {
    rate: f64,
    /// Of the whole process, a pair, in microseconds.
    cpu: f64,
    /// Changes in one commit of one shard.
    group: f64,
}

pub(crate) async fn measure(dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let mut rounds = Vec::new();
    let mut floors = Vec::new();
    for round in 0..plan.rounds {
        let home = dir.join(format!("pairs{round}"));
        let made = board(&home, plan).await?;
        rounds.push(made);
        floors.push(floor(&dir.join(format!("floor{round}")), plan, made.group).await?);
        std::fs::remove_dir_all(home)?;
    }
    let pick = |of: fn(&Round) -> f64| rounds.iter().map(of).collect::<Vec<_>>();
    let name = "board, embedded store: claim + start in process";
    figure_at_least(name, &pick(|it| it.rate), "1/s", 25_000.0);
    let shares: Vec<f64> =
        rounds.iter().zip(&floors).map(|(round, floor)| round.rate / floor).collect();
    figure(&format!("{name} / bare commits of the same bytes"), &shares, "ratio", None);
    figure(&format!("{name}, bare commits of the same bytes"), &floors, "1/s", None);
    figure(&format!("{name}, CPU of a pair"), &pick(|it| it.cpu), "µs", None);
    figure(&format!("{name}, changes in a commit"), &pick(|it| it.group), "ops", None);
    Ok(())
}

/// So many at once claim an instance, wait, say that it runs, wait, and take the next one.
async fn board(dir: &Path, plan: Plan) -> anyhow::Result<Round> {
    let of = plan.pairs;
    let store = embedded(dir)?;
    of.fill(&store).await?;
    let show = Show::open(store, Epoch(2), Arc::<Cells>::default()).await?;
    let (commits, ops) = (show.figure(COMMITS), show.figure(OPS));
    let next = Arc::new(AtomicU32::new(0));
    let requests: Arc<[[Request; 2]]> = (0..of.instances()).map(|number| of.pair(number)).collect();
    let watch = Stopwatch::start();
    let mut tasks = JoinSet::new();
    for _ in 0..plan.at_once {
        let (board, next) = (show.board.clone(), Arc::clone(&next));
        let requests = Arc::clone(&requests);
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(pair) = requests.get(number as usize) else { return Ok(()) };
                for request in pair {
                    board.ask(request.clone()).await?;
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done?.map_err(|declined: kapell_node::board::Declined| declined)?;
    }
    let used = watch.used();
    let commits = show.figure(COMMITS) - commits;
    let ops = show.figure(OPS) - ops;
    ensure!(ops >= f64::from(of.instances()), "every pair is written: {ops} changes");
    show.close().await?;
    let pairs = of.instances();
    Ok(Round {
        rate: rate(pairs, used.wall),
        cpu: used.cpu.as_secs_f64() * 1e6 / f64::from(pairs),
        group: ops / commits,
    })
}

const COMMITS: &str = "kapell_board_commits_total";
const OPS: &str = "kapell_board_commit_ops_total";

/// The store alone: the same changes in groups of the same size, all shards at once.
async fn floor(dir: &Path, plan: Plan, group: f64) -> anyhow::Result<f64> {
    let of = Population { spare: false, ..plan.pairs };
    let store = embedded(dir)?;
    let Raise::Done(fences) = store.raise(Seat::FIRST, Epoch(1)).await? else {
        anyhow::bail!("a fresh store")
    };
    let ops: Vec<Op> = of
        .records()
        .filter(|record| matches!(record, Record::Actual(_)))
        .map(|record| Op::Put(Key::new(record.key().encode()), record.encode()))
        .collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
    let group = (group.round() as usize).max(1);
    let share = ops.len().div_ceil(fences.len());
    let watch = Stopwatch::start();
    let mut tasks: JoinSet<anyhow::Result<()>> = JoinSet::new();
    for ((shard, mut fence), ops) in Shard::all(Seat::FIRST).zip(fences).zip(ops.chunks(share)) {
        let (store, ops) = (Arc::clone(&store), ops.to_vec());
        tasks.spawn(async move {
            // A pair is two changes.
            for group in ops.chunks(group).chain(ops.chunks(group)) {
                let committed = store.commit(shard, fence, group).await?;
                ensure!(committed == Commit::Done, "it is alone");
                fence = fence.next();
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let used = watch.used();
    drop(store);
    std::fs::remove_dir_all(dir).context("its directory")?;
    Ok(rate(of.instances(), used.wall))
}
