//! What a host answers on one processor, asked from the other over connections that are kept.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use kapell_sim::bench::show::embedded;
use kapell_sim::figure::{figure, figure_at_least};
use tokio::task::LocalSet;

use crate::Plan;
use crate::host::{Host, pin};
use crate::wire::{Place, Wire};
use kapell_sim::bench::population::{cell_id, guid};
use kapell_sim::bench::usage::{Stopwatch, rate};

const CONNECTIONS: usize = 16;

/// What is asked for in the request of this number.
type PathOf = fn(&Plan, u32) -> String;

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let store = embedded(&dir.join("store"))?;
    plan.board.fill(&store).await?;
    drop(store);
    let url = format!("file:{}", dir.join("store").display());
    let host = Host::start(kapell, dir, &url, Some(0))?;
    let kinds: [(&str, PathOf, Option<f64>); 4] = [
        ("a desired LRP", desired, Some(20_000.0)),
        ("the instances of a process", of_process, None),
        ("one instance", instance, Some(20_000.0)),
        ("list by cell", of_cell, None),
    ];
    for (name, path, goal) in kinds {
        let (mut rates, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            let count = if name == "list by cell" { plan.reads / 50 } else { plan.reads };
            let before = host.cpu()?;
            let took = ask(&host.place, &plan, count, path)?;
            let used = host.cpu()?.saturating_sub(before);
            rates.push(rate(u32::try_from(count)?, took));
            cpu.push(used.as_secs_f64() * 1e6 / f64::from(u32::try_from(count)?));
        }
        let name = format!("reads on one core: {name}");
        figure(&format!("{name}, CPU of the host"), &cpu, "µs", None);
        match goal {
            Some(goal) => figure_at_least(&name, &rates, "1/s", goal),
            None => figure(&name, &rates, "1/s", None),
        }
    }
    Ok(())
}

fn desired(plan: &Plan, number: u32) -> String {
    format!("/v1/desired-lrps/{}", guid(number % plan.board.apps))
}

fn of_process(plan: &Plan, number: u32) -> String {
    format!("/v1/actual-lrps?process_guid={}", guid(number % plan.board.apps))
}

fn instance(plan: &Plan, number: u32) -> String {
    let index = number % plan.board.each;
    format!("/v1/actual-lrps?process_guid={}&index={index}", guid(number % plan.board.apps))
}

fn of_cell(plan: &Plan, number: u32) -> String {
    format!("/v1/actual-lrps?cell_id={}", cell_id(number % plan.board.cells))
}

/// From a thread on the other processor, over several connections.
fn ask(place: &Place, plan: &Plan, count: usize, path: PathOf) -> anyhow::Result<Duration> {
    let requests: Vec<Vec<u8>> = (0..count)
        .map(|number| {
            let number = u32::try_from(number).unwrap_or(0).wrapping_mul(7919);
            place.request(&format!("GET {}", path(plan, number)), "")
        })
        .collect();
    std::thread::scope(|scope| {
        let work = || -> anyhow::Result<Duration> {
            // With one processor there is no other.
            let _same = pin(1);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            LocalSet::new().block_on(&runtime, async {
                let mut wires = Vec::new();
                for _ in 0..CONNECTIONS {
                    wires.push(Wire::open(place).await?);
                }
                let watch = Stopwatch::start();
                let shares = requests.chunks(requests.len().div_ceil(CONNECTIONS));
                let asked = shares.zip(wires).map(|(share, mut wire)| async move {
                    for request in share {
                        wire.ask(request).await?;
                    }
                    anyhow::Ok(())
                });
                futures_util::future::try_join_all(asked).await?;
                Ok(watch.used().wall)
            })
        };
        scope.spawn(work).join().map_err(|_| anyhow::anyhow!("the reader panicked"))?
    })
    .context("reading")
}
