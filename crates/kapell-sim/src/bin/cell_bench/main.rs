//! Measures cells: what starts cost, and what becomes of many instances. Run by `cargo xtask bench cell`.
//!
//! Prints one JSON object a figure, as `kapell_sim::figure` has it.

mod agent;
mod crashes;
mod failover;
mod fleet;
mod oci;
mod root;
mod runc;
mod starts;

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use kapell_sim::bench::census;

use root::Root;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rounds: usize,
    oci_a_round: usize,
    starts_a_round: usize,
    /// Instances that crash at once, and how often.
    crashing: u32,
    crashes: u32,
    /// Instances of a cell that is lost, and how often one is.
    lost: u32,
    losses: usize,
    presence_ttl: Duration,
    /// Containers of an agent at rest.
    containers: u32,
    rest: Duration,
}

const FULL: Plan = Plan {
    rounds: 5,
    oci_a_round: 15,
    starts_a_round: 40,
    crashing: 1000,
    // The first three of an instance are restarted at once.
    crashes: 3,
    lost: 300,
    losses: 3,
    presence_ttl: Duration::from_secs(5),
    containers: 250,
    // A check of each, poll and convergence come once.
    rest: Duration::from_secs(30),
};
const SMOKE: Plan = Plan {
    rounds: 1,
    oci_a_round: 1,
    starts_a_round: 2,
    crashing: 10,
    crashes: 1,
    lost: 4,
    losses: 1,
    presence_ttl: Duration::from_secs(1),
    containers: 3,
    rest: Duration::from_millis(300),
};

/// Nothing here takes so long unless something is wrong.
const LIMIT: Duration = Duration::from_secs(900);
const PARTS: [&str; 5] = ["oci", "starts", "crashes", "failover", "agent"];

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
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    // Users of containers must get to their files.
    set_permissions(dir.path(), Permissions::from_mode(0o711))?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = runtime.block_on(async {
        let limited = tokio::time::timeout(LIMIT, measure(&kapell, dir.path(), plan, &only));
        limited.await.unwrap_or_else(|_| bail!("it takes longer than {LIMIT:?}"))
    });
    runtime.shutdown_background();
    // What a failure has left goes as well: everything of ours names this directory.
    let left = census::end_shims(dir.path());
    measured?;
    let left = left?;
    anyhow::ensure!(left == 0, "{left} shims were left");
    Ok(())
}

async fn measure(kapell: &Path, dir: &Path, plan: Plan, only: &[String]) -> anyhow::Result<()> {
    let wants = |part: &str| only.is_empty() || only.iter().any(|it| it == part);
    let root = Root::make(&dir.join("root"));
    let root = match &root {
        Ok(root) => Some(root),
        Err(reason) => {
            skip(&format!("containers with a root of their own: {reason}"));
            None
        }
    };
    if wants("oci")
        && let Some(root) = root
    {
        oci::measure(dir, root, plan).await.context("OCI starts")?;
    }
    if wants("starts") {
        starts::measure(kapell, dir, plan).await.context("starts")?;
    }
    if wants("crashes") {
        crashes::measure(kapell, dir, plan).await.context("crashes")?;
    }
    if wants("failover") {
        failover::measure(kapell, dir, plan).await.context("failover")?;
    }
    if wants("agent") {
        agent::measure(kapell, dir, root, plan).await.context("an agent at rest")?;
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a command-line tool speaks on its streams")]
fn skip(what: &str) {
    eprintln!("SKIPPED {what}");
}
