//! Measures `kapell up` beside the parts that it is made of. Run by `cargo xtask bench platform`.
//!
//! Prints one JSON object a figure, as `kapell_sim::figure` has it.

mod fleet;
mod instances;
mod start;
mod tasks;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// How much to measure.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rounds: usize,
    tasks_a_round: usize,
    instances_a_round: usize,
    fleets: usize,
    fleet: u32,
    rest: Duration,
    restarts: usize,
    starts: usize,
}

const FULL: Plan = Plan {
    rounds: 7,
    tasks_a_round: 200,
    instances_a_round: 40,
    fleets: 3,
    fleet: 1000,
    // Poll and convergence come every 30 s.
    rest: Duration::from_secs(30),
    restarts: 5,
    starts: 15,
};
const SMOKE: Plan = Plan {
    rounds: 1,
    tasks_a_round: 3,
    instances_a_round: 3,
    fleets: 1,
    fleet: 20,
    rest: Duration::from_secs(1),
    restarts: 1,
    starts: 1,
};

/// Nothing here takes so long unless something is wrong.
const LIMIT: Duration = Duration::from_secs(600);

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let kapell = PathBuf::from(words.next().context("say where kapell is")?);
    let plan = match words.next().as_deref() {
        None => FULL,
        Some("--smoke") => SMOKE,
        Some(word) => bail!("what is `{word}`?"),
    };
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = runtime.block_on(async {
        let limited = tokio::time::timeout(LIMIT, measure(&kapell, dir.path(), plan));
        limited.await.unwrap_or_else(|_| bail!("it takes longer than {LIMIT:?}"))
    });
    runtime.shutdown_background();
    // What a failure has left goes as well: everything of ours names this directory.
    let left = kapell_sim::bench::census::end_shims(dir.path());
    measured?;
    let left = left?;
    anyhow::ensure!(left == 0, "{left} shims were left");
    Ok(())
}

async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    start::measure(kapell, dir, plan).await.context("starting")?;
    tasks::measure(kapell, dir, plan).await.context("tasks")?;
    instances::measure(kapell, dir, plan).await.context("instances")?;
    fleet::measure(kapell, dir, plan).await.context("the fleet")
}
