//! Measures jobs and runs at scale, beside controls in the same run. Run by `cargo xtask bench jobs`.
//!
//! Prints one JSON object a figure, as `kapell_sim::figure` has it.

mod crowd;
mod held;
mod instant;
mod load;
mod rest;
mod schedules;
mod spread;
mod stage;
mod trivial;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use kapell_backend::heap;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rounds: u32,
    /// Runs that are active at once, and how long they are watched at rest.
    active: u32,
    rest: Duration,
    /// Jobs that are due at one instant, or spread over some time.
    due: u32,
    spread: Duration,
    /// From the first of them on, how far instants lie apart, and how far ahead runs are made.
    lead: Duration,
    apart: Duration,
    ahead: Duration,
    /// Schedules to be indexed, and jobs to be read and loaded.
    schedules: u32,
    loaded: u32,
    /// Runs of a program that does nothing.
    trivial: u32,
}

const FULL: Plan = Plan {
    rounds: 3,
    active: 100_000,
    rest: Duration::from_secs(30),
    due: 100_000,
    spread: Duration::from_secs(10),
    lead: Duration::from_secs(30),
    apart: Duration::from_secs(30),
    ahead: kapell_core::job::due::AHEAD,
    schedules: 1_000_000,
    loaded: 100_000,
    trivial: 3_000,
};
const SMOKE: Plan = Plan {
    rounds: 1,
    active: 300,
    rest: Duration::from_secs(1),
    due: 200,
    spread: Duration::from_secs(1),
    lead: Duration::from_secs(3),
    apart: Duration::from_secs(2),
    ahead: Duration::from_secs(2),
    schedules: 1_000,
    loaded: 200,
    trivial: 40,
};

/// Nothing here takes so long unless something is wrong.
const LIMIT: Duration = Duration::from_secs(900);
/// Threads, as a host has them.
const WORKERS: u16 = 2;

/// What can be measured alone. `held` is what `rest` starts in a process of its own.
const PARTS: [&str; 7] =
    ["rest", "spread", "instant", "schedules", "load", "trivial", rest::INSIDE];

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let kapell = PathBuf::from(words.next().context("say where kapell is")?);
    let mut plan = FULL;
    let mut only: Vec<String> = Vec::new();
    for word in words {
        match word.as_str() {
            "--smoke" => plan = SMOKE,
            part if PARTS.contains(&part) => only.push(word),
            word => bail!("what is `{word}`?"),
        }
    }
    let asked = |part: &str| only.iter().any(|it| it == part);
    let wants = |part: &str| only.is_empty() || asked(part);
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    heap::share(WORKERS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS.into())
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let measured = async {
            if asked(rest::INSIDE) {
                return rest::inside(dir.path(), plan).await.context("at rest");
            }
            if wants("schedules") {
                schedules::measure(plan);
            }
            if wants("load") {
                load::measure(dir.path(), plan).await.context("loading jobs")?;
            }
            if wants("trivial") {
                trivial::measure(&kapell, dir.path(), plan).await.context("trivial runs")?;
            }
            if wants("rest") {
                rest::measure(&kapell, plan).await.context("at rest")?;
            }
            if wants("spread") {
                spread::measure(dir.path(), plan).await.context("spread starts")?;
            }
            if wants("instant") {
                instant::measure(dir.path(), plan).await.context("at one instant")?;
            }
            Ok(())
        };
        tokio::time::timeout(LIMIT, measured)
            .await
            .unwrap_or_else(|_| bail!("it takes longer than {LIMIT:?}"))
    })
}
