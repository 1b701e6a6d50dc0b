//! Many instances that crash at once, until all run again.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use kapell_core::board::ActualLrp;
use kapell_sim::bench::census;
use kapell_sim::bench::site::{all, sleepers};
use kapell_sim::bench::watch::{Watch, running};
use kapell_sim::figure::figure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Plan;
use crate::fleet::Fleet;

const CELLS: usize = 4;

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let mut fleet = Fleet::start(kapell, dir.join("crashes"), &[]).await?;
    for _ in 0..CELLS {
        fleet.add_cell(&[]).await?;
    }
    let count = plan.crashing;
    let begun = Instant::now();
    let mut ran = fleet.desire(sleepers("web", count), count).await?;
    let first = begun.elapsed().as_secs_f64();
    let mut again = Vec::new();
    for round in 1..=plan.crashes {
        again.push(crash(&fleet, count).await?);
        let now = fleet.client.actual_lrps(all()).await?.items;
        ensure!(now.iter().all(|lrp| lrp.crash_count == round), "each has crashed once more");
        ensure!(guids(&now).is_disjoint(&guids(&ran)), "each is another one now");
        ran = now;
    }
    fleet.end().await?;
    figure(&format!("{count} crashed instances: all run again"), &again, "s", Some(5.0));
    figure(&format!("{count} instances on {CELLS} cells: started"), &[first], "s", None);
    Ok(())
}

/// Kills every program; what it took until all were seen to run again, in seconds.
async fn crash(fleet: &Fleet, count: u32) -> anyhow::Result<f64> {
    let mut programs = Vec::new();
    for shim in fleet.shims()? {
        programs.extend(census::children(shim)?);
    }
    ensure!(programs.len() == count as usize, "{} programs", programs.len());
    let mut watch = Watch::begin(&fleet.client).await?;
    let mut seen = BTreeSet::new();
    let begun = Instant::now();
    for program in programs {
        kill(Pid::from_raw(program), Signal::SIGKILL)?;
    }
    let all_run = watch.until(|event| {
        seen.extend(running(event).map(|lrp| lrp.index));
        seen.len() == count as usize
    });
    Ok(all_run.await?.duration_since(begun).as_secs_f64())
}

pub(crate) fn guids(instances: &[ActualLrp]) -> BTreeSet<String> {
    let guids = instances.iter().filter_map(|lrp| lrp.instance_guid.as_ref());
    guids.map(ToString::to_string).collect()
}
