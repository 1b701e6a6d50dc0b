//! Measures the board at scale, beside floors in the same run. Run by `cargo xtask bench board`.
//!
//! Prints one JSON object a figure, as `kapell_sim::figure` has it.

mod auction;
mod convergence;
mod host;
mod over_http;
mod pairs;
mod reads;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};

use kapell_sim::bench::population::Population;
use kapell_sim::bench::takeover;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rounds: u32,
    /// LRPs and cells.
    batch: (u32, u32),
    /// Ten times the batch, on as many cells.
    large: (u32, u32),
    largest: (u32, u32),
    /// What a board holds.
    board: Population,
    /// What claims and starts are made of, in process and for each round.
    pairs: Population,
    /// How many of them wait for an answer at once.
    at_once: usize,
    /// The same over HTTP: cells at once, and batches of each in a round.
    cells_at_once: u32,
    batches: u32,
    reads: usize,
    lists: usize,
}

const FULL: Plan = Plan {
    rounds: 3,
    batch: (10_000, 1_000),
    large: (100_000, 1_000),
    largest: (250_000, 1_250),
    board: Population { apps: 25_000, each: 10, cells: 1_250, spare: false },
    pairs: Population { apps: 10_000, each: 10, cells: 1_250, spare: true },
    at_once: 4_000,
    cells_at_once: 50,
    batches: 8,
    reads: 20_000,
    lists: 10_000,
};
const SMOKE: Plan = Plan {
    rounds: 1,
    batch: (100, 10),
    large: (1_000, 10),
    largest: (1_000, 20),
    board: Population { apps: 100, each: 10, cells: 20, spare: false },
    pairs: Population { apps: 20, each: 10, cells: 20, spare: true },
    at_once: 100,
    cells_at_once: 2,
    batches: 1,
    reads: 200,
    lists: 20,
};

/// Nothing here takes so long unless something is wrong.
const LIMIT: Duration = Duration::from_secs(900);

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let kapell = PathBuf::from(words.next().context("say where kapell is")?);
    let mut plan = FULL;
    let mut only: Vec<String> = Vec::new();
    for word in words {
        match word.as_str() {
            "--smoke" => plan = SMOKE,
            "auction" | "convergence" | "pairs" | "http" | "takeover" | "reads" => only.push(word),
            word => bail!("what is `{word}`?"),
        }
    }
    let wants = |part: &str| only.is_empty() || only.iter().any(|it| it == part);
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let measured = async {
            if wants("auction") {
                auction::measure(plan)?;
            }
            if wants("convergence") {
                convergence::measure(plan).await.context("convergence")?;
            }
            if wants("pairs") {
                pairs::measure(dir.path(), plan).await.context("claims and starts")?;
            }
            if wants("takeover") {
                take_over(dir.path(), plan).await.context("taking over")?;
            }
            if wants("http") {
                let dir = dir.path().join("http");
                over_http::measure(&kapell, &dir, plan).await.context("over HTTP")?;
            }
            if wants("reads") {
                reads::measure(&kapell, &dir.path().join("reads"), plan).await.context("reads")?;
            }
            Ok(())
        };
        tokio::time::timeout(LIMIT, measured)
            .await
            .unwrap_or_else(|_| bail!("it takes longer than {LIMIT:?}"))
    })
}

/// On the stores whose servers are there. `cargo xtask bench stores` has them all.
async fn take_over(dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let (board, rounds) = (plan.board, plan.rounds as usize);
    let url = format!("file:{}", dir.join("takeover").display());
    takeover::measure("embedded", &url, board, rounds, Some(1.0)).await?;
    let unique = format!("board{}", std::process::id());
    if let Ok(server) = std::env::var("KAPELL_TEST_ETCD") {
        let url = format!("etcd://{}/{unique}", server.trim_start_matches("http://"));
        takeover::measure("etcd", &url, board, rounds, Some(3.0)).await?;
    }
    if let Ok(server) = std::env::var("KAPELL_TEST_POSTGRES") {
        let url = format!("{server}?schema={unique}");
        takeover::measure("PostgreSQL", &url, board, rounds, Some(3.0)).await?;
    }
    Ok(())
}
