//! Measures runs on a Kubernetes cluster beside the same Jobs without Kapell, in turns. Run by `cargo xtask bench kubernetes`.
//!
//! Prints one JSON object a figure, as `kapell_sim::figure` has it.

mod bare;
mod cluster;
mod crowd;
mod memory;
mod trivial;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::cluster::Cluster;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Runs one by one, each beside a bare Job.
    trivial: u32,
    /// Runs at once, and how often.
    crowd: u32,
    rounds: u32,
    /// Runs that wait for their pods, and those before from which on memory is counted.
    watched: u32,
    before: u32,
}

const FULL: Plan = Plan { trivial: 20, crowd: 100, rounds: 2, watched: 3_000, before: 500 };
const SMOKE: Plan = Plan { trivial: 2, crowd: 4, rounds: 1, watched: 20, before: 5 };

/// Nothing here takes so long unless something is wrong.
const LIMIT: Duration = Duration::from_secs(900);

/// What can be measured alone.
const PARTS: [&str; 3] = ["trivial", "crowd", "memory"];

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
    let wants = |part: &str| only.is_empty() || only.iter().any(|it| it == part);
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let cluster = Cluster::open(kapell, dir.path()).await?;
        let measured = async {
            if wants("trivial") {
                trivial::measure(&cluster, plan).await.context("trivial runs")?;
            }
            if wants("crowd") {
                crowd::measure(&cluster, plan).await.context("runs at once")?;
            }
            if wants("memory") {
                memory::measure(&cluster, plan).await.context("memory")?;
            }
            Ok(())
        };
        tokio::time::timeout(LIMIT, measured)
            .await
            .unwrap_or_else(|_| bail!("it takes longer than {LIMIT:?}"))
    })
}
