//! A cell whose machine is lost, until its instances run elsewhere.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use kapell_core::board::{ActualLrp, ActualState};
use kapell_sim::bench::site::{all, sleepers};
use kapell_sim::bench::watch::{Watch, running};
use kapell_sim::figure::figure;

use crate::Plan;
use crate::fleet::Fleet;

const CELLS: u32 = 3;
/// What it may take besides the time for which a cell may say nothing.
const BEYOND_S: f64 = 2.0;

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let ttl = plan.presence_ttl;
    let settings = [("KAPELL_PRESENCE_TTL", format!("{}s", ttl.as_secs()))];
    let mut fleet = Fleet::start(kapell, dir.join("failover"), &settings).await?;
    for _ in 0..CELLS {
        fleet.add_cell(&[]).await?;
    }
    let mut samples = Vec::new();
    for round in 0..plan.losses {
        let count = plan.lost * CELLS;
        let ran = fleet.desire(sleepers(&format!("web-{round}"), count), count).await?;
        samples.push(lose(&mut fleet, &ran, plan).await?);
        fleet.start_cell(0).await?;
        fleet.clear().await?;
    }
    fleet.end().await?;
    let name = format!("a lost cell with {} instances: all run elsewhere, TTL {ttl:?}", plan.lost);
    figure(&name, &samples, "s", Some(ttl.as_secs_f64() + BEYOND_S));
    Ok(())
}

/// What it took until all of the first cell's instances were seen to run elsewhere, in seconds.
async fn lose(fleet: &mut Fleet, ran: &[ActualLrp], plan: Plan) -> anyhow::Result<f64> {
    let lost = fleet.cells[0].id.clone();
    let is_there = |lrp: &ActualLrp| lrp.cell_id.as_ref().is_some_and(|id| id.as_str() == lost);
    let theirs: BTreeSet<u32> = ran.iter().filter(|lrp| is_there(lrp)).map(|it| it.index).collect();
    ensure!(theirs.len() == plan.lost as usize, "{} are on it", theirs.len());
    let mut watch = Watch::begin(&fleet.client).await?;
    let mut seen = BTreeSet::new();
    let begun = Instant::now();
    fleet.cells[0].lose().await?;
    let all_run = watch.until(|event| {
        let elsewhere = running(event).filter(|lrp| !is_there(lrp));
        seen.extend(elsewhere.map(|lrp| lrp.index).filter(|index| theirs.contains(index)));
        seen.len() == theirs.len()
    });
    let took = all_run.await?.duration_since(begun).as_secs_f64();
    let now = fleet.client.actual_lrps(all()).await?.items;
    let fine = |lrp: &ActualLrp| lrp.state == ActualState::Running && !is_there(lrp);
    ensure!(now.len() == ran.len() && now.iter().all(fine), "all run, and elsewhere");
    Ok(took)
}
