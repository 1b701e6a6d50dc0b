//! What an agent uses whose containers are well and want nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use kapell_sim::bench::census::{self, Memory};
use kapell_sim::bench::site::DOMAIN;
use kapell_sim::figure::figure;
use serde_json::{Value, json};

use crate::Plan;
use crate::fleet::Fleet;
use crate::root::Root;

/// Each is asked for as long as it runs, as often as is usual.
fn servers(count: u32, rootfs: Option<&str>) -> Value {
    let script = "exec busybox httpd -f -h / -p $PORT";
    json!({
        "process_guid": "web",
        "domain": DOMAIN,
        "instances": count,
        "rootfs": rootfs,
        "memory_mb": 16,
        "cpu_millis": 1000,
        "max_pids": 16,
        "ports": [8080],
        "check": {"http": {"port": 8080, "path": "/etc/passwd"}},
        "action": {"run": {"path": "/bin/sh", "args": ["-c", script]}},
    })
}

pub(crate) async fn measure(
    kapell: &Path,
    dir: &Path,
    root: Option<&Root>,
    plan: Plan,
) -> anyhow::Result<()> {
    let all = dir.join("agent");
    rest(kapell, &all.join("processes"), None, plan).await?;
    if let Some(root) = root {
        rest(kapell, &all.join("containers"), Some(root), plan).await?;
    }
    Ok(())
}

async fn rest(kapell: &Path, dir: &Path, root: Option<&Root>, plan: Plan) -> anyhow::Result<()> {
    let mut fleet = Fleet::start(kapell, dir.to_owned(), &[]).await?;
    let roots = root.map(|root| root.dir.display().to_string());
    let oci = roots.as_deref().map(|roots| ["--oci", "--image-root", roots]);
    fleet.add_cell(oci.as_ref().map_or(&[], |words| &words[..])).await?;
    let count = plan.containers;
    let begun = Instant::now();
    fleet.desire(servers(count, root.map(Root::url).as_deref()), count).await?;
    let started = begun.elapsed().as_secs_f64();
    let pid = fleet.cells[0].pid()?;
    // What followed the start is over.
    tokio::time::sleep(plan.rest / 6).await;
    let percent = processor_share(pid, plan.rest).await?;
    let memory = census::memory(pid)?;
    let most = census::most_memory(pid)?;
    let mut shims = Vec::new();
    for shim in fleet.shims()? {
        shims.push(census::memory(shim)?);
    }
    ensure!(shims.len() == count as usize, "as many shims as containers: {}", shims.len());
    fleet.end().await?;
    let kind = if root.is_some() { "OCI containers" } else { "processes" };
    let name = |what: &str| format!("agent with {count} {kind}: {what}");
    figure(&name("CPU, checked as usual"), &[percent], "%", Some(2.0));
    figure(&name("memory at most"), &[most], "MB", Some(60.0));
    figure(&name("memory at rest"), &[memory.resident], "MB", None);
    figure(&name("share of memory at rest"), &[memory.proportional], "MB", None);
    let mean = |of: fn(&Memory) -> f64| shims.iter().map(of).sum::<f64>() / f64::from(count);
    figure(&name("a shim's memory, mean"), &[mean(|it| it.resident)], "MB", None);
    figure(&name("a shim's share of memory, mean"), &[mean(|it| it.proportional)], "MB", None);
    figure(&name("all healthy"), &[started], "s", None);
    Ok(())
}

/// Of a core, in percent.
async fn processor_share(pid: i32, rest: Duration) -> anyhow::Result<f64> {
    let (begun, before) = (Instant::now(), census::processor_time(pid)?);
    tokio::time::sleep(rest).await;
    let used = census::processor_time(pid)?.saturating_sub(before);
    Ok(used.as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0)
}
