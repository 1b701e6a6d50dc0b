//! Claims and starts over HTTP, in batches of many cells, with a full board behind them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use kapell_core::board::request::Report;
use kapell_sim::bench::show::embedded;
use kapell_sim::figure::{figure, figure_at_least, share};
use tokio::task::JoinSet;

use crate::Plan;
use crate::host::Host;
use crate::wire::{Place, Wire};
use kapell_sim::bench::parts::ms;
use kapell_sim::bench::population::{Population, cell_id, presence};
use kapell_sim::bench::usage::{Stopwatch, rate, thousands};

/// Reports in a request.
const BATCH: u32 = 100;
/// Claims and starts a second while lists are read.
const LOAD: u32 = 11_000;
/// How often cells say that they are there.
const BEAT: Duration = Duration::from_secs(5);

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let spare = spare(plan);
    // Together as many as a board is to hold.
    let apps = plan.board.apps.saturating_sub(spare.apps).max(1);
    let plan = Plan { board: Population { apps, ..plan.board }, ..plan };
    let store = embedded(&dir.join("store"))?;
    plan.board.fill(&store).await?;
    spare.fill(&store).await?;
    drop(store);
    let url = format!("file:{}", dir.join("store").display());
    let host = Host::start(kapell, dir, &url, None)?;
    let mut present = JoinSet::new();
    let beats = Beats::new(&host.place, plan.board.cells);
    beats.once().await?;
    present.spawn(beats.run());
    let count = thousands(plan.board.instances() + spare.instances());
    let resident = host.resident()?;
    figure(&format!("host with {count} instances: memory"), &[resident], "MB", Some(250.0));
    throughput(&host, plan, spare).await?;
    lists(&host, plan, spare).await?;
    let resident = host.resident()?;
    figure(&format!("host with {count} instances: memory after load"), &[resident], "MB", None);
    ensure!(present.try_join_next().is_none(), "the cells said that they are there");
    Ok(())
}

/// As many instances as are claimed and started in all rounds.
const fn spare(plan: Plan) -> Population {
    let instances = plan.rounds * plan.cells_at_once * plan.batches * BATCH;
    Population { apps: instances / 10, each: 10, cells: plan.board.cells, spare: true }
}

/// Cells that are there.
struct Beats {
    place: Place,
    requests: Vec<Vec<u8>>,
}

impl Beats {
    fn new(place: &Place, cells: u32) -> Self {
        let request = |cell: u32| {
            let presence = presence(cell);
            let line = format!("PUT /v1/cells/{}", presence.cell_id);
            place.request(&line, &serde_json::json!(presence).to_string())
        };
        Self { place: place.clone(), requests: (0..cells).map(request).collect() }
    }

    async fn once(&self) -> anyhow::Result<()> {
        let mut wire = Wire::open(&self.place).await?;
        for request in &self.requests {
            wire.ask(request).await.context("a cell is there")?;
        }
        Ok(())
    }

    /// Each cell in its own time, as those of a fleet that did not start at one instant.
    async fn run(self) -> anyhow::Result<()> {
        let count = u32::try_from(self.requests.len()).unwrap_or(u32::MAX).max(1);
        let mut turns = tokio::time::interval(BEAT / count);
        let mut wire = Wire::open(&self.place).await?;
        for request in self.requests.iter().cycle() {
            turns.tick().await;
            wire.ask(request).await.context("a cell is there")?;
        }
        Ok(())
    }
}

/// The requests of one cell: for each batch one that claims and one that starts.
fn batches(place: &Place, plan: Plan, from: u32, of: Population, kinds: &[Kind]) -> Vec<Vec<u8>> {
    let mut requests = Vec::new();
    for batch in 0..plan.batches {
        let first = from + batch * BATCH;
        // What a cell claims, only that cell may start.
        let cell = cell_id(first / BATCH % plan.board.cells);
        let line = format!("POST /v1/cells/{cell}/reports");
        for kind in kinds {
            let reports: Vec<Report> = (first..first + BATCH)
                .map(|number| match kind {
                    Kind::Claim => of.claim(number),
                    Kind::Running => of.running(number),
                })
                .collect();
            requests.push(place.request(&line, &serde_json::json!(reports).to_string()));
        }
    }
    requests
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Claim,
    Running,
}

/// Sends all requests, those of a cell one after the other; how long that took.
async fn send(place: &Place, cells: Vec<Vec<Vec<u8>>>) -> anyhow::Result<Duration> {
    let mut wires = Vec::new();
    for _ in &cells {
        wires.push(Wire::open(place).await?);
    }
    let watch = Stopwatch::start();
    let mut tasks: JoinSet<anyhow::Result<()>> = JoinSet::new();
    for (mut wire, requests) in wires.into_iter().zip(cells) {
        tasks.spawn(async move {
            for request in &requests {
                let answer = wire.ask(request).await?;
                let refused =
                    answer.windows(9).any(|it| it == b"\"refused\"" || it.starts_with(b"\"busy\""));
                ensure!(!refused, "{}", String::from_utf8_lossy(&answer[..answer.len().min(400)]));
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(watch.used().wall)
}

async fn throughput(host: &Host, plan: Plan, of: Population) -> anyhow::Result<()> {
    let a_cell = plan.batches * BATCH;
    let a_round = plan.cells_at_once * a_cell;
    let (mut rates, mut floors, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let first = round * a_round;
        let froms = || (0..plan.cells_at_once).map(move |cell| first + cell * a_cell);
        let make = |kinds: &[Kind]| -> Vec<Vec<Vec<u8>>> {
            froms().map(|from| batches(&host.place, plan, from, of, kinds)).collect()
        };
        let before = host.cpu()?;
        let took = send(&host.place, make(&[Kind::Claim, Kind::Running])).await?;
        let used = host.cpu()?.saturating_sub(before);
        rates.push(rate(a_round, took));
        cpu.push(used.as_secs_f64() * 1e6 / f64::from(a_round));
        // Said once more, it changes nothing.
        let took = send(&host.place, make(&[Kind::Running, Kind::Running])).await?;
        floors.push(rate(a_round, took));
    }
    let name = "board, embedded store: claim + start over HTTP, batches of 100";
    figure_at_least(name, &rates, "1/s", 10_000.0);
    let shares: Vec<f64> = rates.iter().zip(&floors).map(|(it, floor)| it / floor).collect();
    figure(&format!("{name} / the same with nothing to commit"), &shares, "ratio", None);
    figure(&format!("{name}, the same with nothing to commit"), &floors, "1/s", None);
    figure(&format!("{name}, CPU of the host for a pair"), &cpu, "µs", None);
    Ok(())
}

/// Lists by cell while claims and starts go on, as many as a board is to bear over HTTP.
async fn lists(host: &Host, plan: Plan, of: Population) -> anyhow::Result<()> {
    let over = Arc::new(AtomicBool::new(false));
    let mut load: JoinSet<anyhow::Result<u32>> = JoinSet::new();
    let a_cell = plan.batches * BATCH;
    let loaders = 2.min(plan.cells_at_once);
    let every = Duration::from_secs(1) * BATCH * loaders / LOAD;
    for cell in 0..loaders {
        let (place, over) = (host.place.clone(), Arc::clone(&over));
        // A container that runs may be claimed once more by its cell, and started.
        let requests = batches(&place, plan, cell * a_cell, of, &[Kind::Claim, Kind::Running]);
        load.spawn(async move {
            let mut wire = Wire::open(&place).await?;
            let mut sent = 0;
            // Cells do not speak all at once.
            let first = tokio::time::Instant::now() + every * cell / loaders;
            let mut turns = tokio::time::interval_at(first, every);
            while !over.load(Ordering::Relaxed) {
                for pair in requests.chunks(2) {
                    turns.tick().await;
                    for request in pair {
                        wire.ask(request).await?;
                        sent += 1;
                    }
                }
            }
            Ok(sent * BATCH / 2)
        });
    }
    let mut wire = Wire::open(&host.place).await?;
    let mut took = Vec::with_capacity(plan.lists);
    let watch = Stopwatch::start();
    for number in 0..plan.lists {
        let cell = cell_id(u32::try_from(number)? * 7 % plan.board.cells);
        let line = format!("GET /v1/actual-lrps?cell_id={cell}");
        let request = host.place.request(&line, "");
        let begun = Instant::now();
        wire.ask(&request).await?;
        took.push(ms(begun.elapsed()));
    }
    let wall = watch.used().wall;
    over.store(true, Ordering::Relaxed);
    let mut pairs = 0;
    while let Some(done) = load.join_next().await {
        pairs += done??;
    }
    figure("list by cell under load, p99", &[share(&took, 990)], "ms", Some(2.0));
    figure("list by cell under load, median", &[share(&took, 500)], "ms", None);
    figure("list by cell under load: claim + start meanwhile", &[rate(pairs, wall)], "1/s", None);
    Ok(())
}
