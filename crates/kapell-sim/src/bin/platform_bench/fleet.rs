//! Many instances: how long until all run, what they cost at rest, and finding them again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use kapell_api::client::Client;
use kapell_core::board::{ActualLrp, ActualState};
use kapell_sim::figure::figure;

use crate::Plan;
use kapell_sim::bench::census::{self, Memory};
use kapell_sim::bench::site::{PATIENCE, Site, all, sleepers};
use kapell_sim::bench::watch::{Watch, running};

/// By index, which container runs.
type Guids = BTreeMap<u32, String>;

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let mut site = Site::new(kapell, dir.join("fleet"))?;
    site.start()?;
    site.ready().await?;
    let client = site.client()?;
    let mut up = Vec::new();
    for round in 1..=plan.fleets {
        up.push(desire(&client, &format!("fleet-{round}"), plan.fleet).await?);
        if round < plan.fleets {
            site.clear(&client).await?;
        }
    }
    let count = plan.fleet;
    figure(&format!("{count} instances: call to all RUNNING"), &up, "s", Some(10.0));
    let ran = guids(client.actual_lrps(all()).await?.items, plan)?;
    ensure!(site.shims()?.len() == ran.len(), "as many shims as instances");
    drop(client);
    rest(&site, plan).await?;
    shims(&site, plan)?;
    let mut again = Vec::new();
    for _ in 0..plan.restarts {
        again.push(restart(&mut site, &ran, plan).await?);
    }
    figure(&format!("{count} instances: restart until all are known"), &again, "s", Some(1.0));
    let client = site.client()?;
    let begun = Instant::now();
    site.clear(&client).await?;
    let gone = begun.elapsed().as_secs_f64();
    figure(&format!("{count} instances: call to none left"), &[gone], "s", None);
    site.kill().await
}

/// Desires them; what it took until all were seen to run, in seconds.
async fn desire(client: &Client, guid: &str, count: u32) -> anyhow::Result<f64> {
    let desired = serde_json::from_value(sleepers(guid, count))?;
    let mut watch = Watch::begin(client).await?;
    let mut seen = BTreeSet::new();
    let begun = Instant::now();
    let all_run = watch.until(|event| {
        seen.extend(running(event).map(|lrp| lrp.index));
        seen.len() == count as usize
    });
    let (made, ran) = tokio::join!(client.desire(&desired), all_run);
    made?;
    Ok(ran?.duration_since(begun).as_secs_f64())
}

fn guids(instances: Vec<ActualLrp>, plan: Plan) -> anyhow::Result<Guids> {
    ensure!(instances.len() == plan.fleet as usize, "{} instances", instances.len());
    let running = instances.into_iter().filter(|lrp| lrp.state == ActualState::Running);
    let named = running.filter_map(|lrp| Some((lrp.index, lrp.instance_guid?.to_string())));
    let guids: Guids = named.collect();
    ensure!(guids.len() == plan.fleet as usize, "only {} run", guids.len());
    Ok(guids)
}

async fn rest(site: &Site, plan: Plan) -> anyhow::Result<()> {
    let pid = site.pid()?;
    // What followed the start is over.
    tokio::time::sleep(plan.rest / 6).await;
    let (begun, before) = (Instant::now(), census::processor_time(pid)?);
    tokio::time::sleep(plan.rest).await;
    let used = census::processor_time(pid)?.saturating_sub(before);
    let percent = used.as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0;
    let memory = census::memory(pid)?;
    let count = plan.fleet;
    figure(&format!("{count} instances at rest: CPU of kapell up"), &[percent], "%", Some(2.0));
    let name = format!("{count} instances at rest: memory of kapell up");
    figure(&name, &[memory.resident], "MB", Some(100.0));
    Ok(())
}

fn shims(site: &Site, plan: Plan) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for pid in site.shims()? {
        all.push(census::memory(pid)?);
    }
    ensure!(!all.is_empty(), "there are shims");
    let count = u32::try_from(all.len())?;
    let mean = |of: fn(&Memory) -> f64| all.iter().map(of).sum::<f64>() / f64::from(count);
    let name = format!("{} instances at rest: a shim's memory, mean", plan.fleet);
    figure(&name, &[mean(|it| it.resident)], "MB", Some(1.0));
    let name = format!("{} instances at rest: a shim's share of memory, mean", plan.fleet);
    figure(&name, &[mean(|it| it.proportional)], "MB", None);
    Ok(())
}

/// kill -9 and a new start; what that took until all instances are there with their cell, in seconds.
async fn restart(site: &mut Site, ran: &Guids, plan: Plan) -> anyhow::Result<f64> {
    let client = site.client_with(Duration::ZERO)?;
    site.kill().await?;
    let begun = Instant::now();
    site.start()?;
    loop {
        ensure!(begun.elapsed() < PATIENCE, "they are not known again");
        let cells = client.cells().await.map(|it| it.items).unwrap_or_default();
        if cells.iter().any(|cell| cell.state == "present") {
            let known = guids(client.actual_lrps(all()).await?.items, plan)?;
            ensure!(known == *ran, "other instances run");
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let took = begun.elapsed().as_secs_f64();
    site.ready().await?;
    ensure!(site.shims()?.len() == ran.len(), "as many shims as instances");
    Ok(took)
}
