//! What a host keeps for a run that it watches: it holds many whose pods are there and wait for ever.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kapell_api::v1::TriggerWanted;
use kapell_sim::bench::site::Site;
use kapell_sim::bench::usage::thousands;
use kapell_sim::figure::figure;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use tokio::task::JoinSet;

use crate::Plan;
use crate::cluster::{Cluster, apply, pod};

const JOB: &str = "watched";
const CONNECTIONS: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(150);
/// In KB, a run.
const GOAL: f64 = 4.0;

pub(crate) async fn measure(cluster: &Cluster, plan: Plan) -> anyhow::Result<()> {
    let (site, client) = cluster.host(JOB, ", calls_per_second: 1000, patience: 2m").await?;
    let (jobs, pods) = (cluster.jobs().await?, cluster.pods().await?);
    let mut waits = pod();
    // Nobody who places pods goes by this name.
    waits["schedulerName"] = "nobody".into();
    apply(&client, JOB, &waits).await?;
    trigger(&site, plan.before).await?;
    settle(&pods, plan.before).await?;
    let before = resident(&site)?;
    trigger(&site, plan.watched).await?;
    settle(&pods, plan.before + plan.watched).await?;
    let after = resident(&site)?;
    let each = (after - before) / f64::from(plan.watched);
    let name = format!("{} watched runs", thousands(plan.watched));
    figure(&format!("{name}: memory of the host, each"), &[each], "KB", Some(GOAL));
    figure(&format!("{name}: memory of the host before them"), &[before / 1e3], "MB", None);
    clear(site, &jobs).await
}

async fn trigger(site: &Site, count: u32) -> anyhow::Result<()> {
    let mut askers = JoinSet::new();
    for asker in 0..CONNECTIONS {
        let client = site.client()?;
        let share = count / CONNECTIONS + u32::from(asker < count % CONNECTIONS);
        askers.spawn(async move {
            for _ in 0..share {
                client.trigger_job(JOB, &TriggerWanted::default()).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(asked) = askers.join_next().await {
        asked??;
    }
    Ok(())
}

/// Waits until every run has a pod, and the host has seen all of them.
async fn settle(pods: &Api<Pod>, count: u32) -> anyhow::Result<()> {
    let begun = Instant::now();
    let quickly = ListParams::default().match_any();
    loop {
        let there = pods.list_metadata(&quickly).await?.items.len();
        if there >= count as usize {
            break;
        }
        ensure!(begun.elapsed() < PATIENCE, "{there} of {count} runs have pods");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    Ok(())
}

/// What the host holds, in KB of a thousand bytes.
fn resident(site: &Site) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", site.pid()?))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("a field")?;
    let kb: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kb * 1.024)
}

/// Without the host nobody makes them anew.
async fn clear(mut site: Site, jobs: &Api<Job>) -> anyhow::Result<()> {
    site.kill().await?;
    jobs.delete_collection(&DeleteParams::background().grace_period(0), &ListParams::default())
        .await?;
    Ok(())
}
