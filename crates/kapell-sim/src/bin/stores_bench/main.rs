//! Measures all drivers side by side. Run by `cargo xtask bench stores`.
//!
//! Prints one JSON object a figure, as `kapell_sim::figure` has it.

mod bare;
mod churn;
mod commits;
mod meter;
mod place;
mod renewals;
mod rest;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use kapell_sim::bench::population::Population;
use kapell_sim::bench::{handoff, hosts, takeover};

use place::{Kind, Place};

/// How much to measure.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rounds: usize,
    /// Records of one round of grouped commits.
    records: usize,
    /// Commits of one record, one after the other and then of all shards at once.
    single: usize,
    renewals: u32,
    /// Renewal intervals in which nothing happens.
    intervals: u32,
    lease: Duration,
    board: Population,
    /// Tasks that come and go.
    tasks: u32,
    hand_offs: usize,
    failovers: usize,
}

const FULL: Plan = Plan {
    rounds: 5,
    records: 64_000,
    single: 200,
    renewals: 20,
    intervals: 12,
    // As it is if nobody says otherwise.
    lease: Duration::from_secs(20),
    board: Population { apps: 25_000, each: 10, cells: 1_250, spare: false },
    tasks: 1_000_000,
    hand_offs: 20,
    failovers: 5,
};
const SMOKE: Plan = Plan {
    rounds: 1,
    records: 400,
    single: 2,
    renewals: 2,
    intervals: 1,
    lease: Duration::from_secs(3),
    board: Population { apps: 10, each: 10, cells: 20, spare: false },
    tasks: 200,
    hand_offs: 1,
    failovers: 1,
};

/// Nothing here takes so long unless something is wrong.
const LIMIT: Duration = Duration::from_mins(40);

const PARTS: [&str; 7] =
    ["commits", "renewals", "rest", "takeover", "churn", "handoff", "failover"];

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let kapell = PathBuf::from(words.next().context("say where kapell is")?);
    let mut plan = FULL;
    let (mut parts, mut kinds) = (Vec::new(), Vec::new());
    for word in words {
        match word.as_str() {
            "--smoke" => plan = SMOKE,
            part if PARTS.contains(&part) => parts.push(word),
            name => kinds.push(Kind::named(name).with_context(|| format!("what is `{name}`?"))?),
        }
    }
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|it| it == part);
    let dir = tempfile::tempdir().context("cannot make a directory")?;
    let is_wanted = |kind: &Kind| kinds.is_empty() || kinds.contains(kind);
    let wanted = Kind::ALL.into_iter().filter(is_wanted);
    let places: Vec<Place> = wanted.filter_map(|kind| Place::find(kind, dir.path())).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = async {
        for place in &places {
            let name = place.kind.name();
            if wants("commits") {
                commits::measure(place, plan).await.with_context(|| format!("{name}: commits"))?;
            }
            if wants("renewals") {
                renewals::measure(place, plan)
                    .await
                    .with_context(|| format!("{name}: renewals"))?;
            }
            if wants("takeover") {
                let (url, goal) = (place.url("takeover"), place.kind.take_over_goal());
                takeover::measure(name, &url, plan.board, plan.rounds.min(3), Some(goal)).await?;
            }
            // Elsewhere what is deleted is gone; DynamoDB Local would take an hour for it.
            if wants("churn") && matches!(place.kind, Kind::Cassandra | Kind::Postgres) {
                churn::measure(place, plan).await.with_context(|| format!("{name}: churn"))?;
            }
            if wants("handoff") && place.kind != Kind::Embedded {
                let goal = place.kind.hand_off_goal();
                handoff::measure(name, &place.url("handoff"), plan.hand_offs, goal).await;
            }
            if wants("failover") {
                hosts::measure(name, &place.url("failover"), &kapell, plan.failovers).await;
            }
        }
        if wants("rest") {
            rest::measure(&places, &kapell, plan).await.context("at rest")?;
        }
        Ok(())
    };
    runtime.block_on(async {
        let limited = tokio::time::timeout(LIMIT, measured).await;
        limited.unwrap_or_else(|_| bail!("it takes longer than {LIMIT:?}"))
    })
}
