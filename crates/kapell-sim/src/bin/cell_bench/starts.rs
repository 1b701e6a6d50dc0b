//! An instance with limits and a health check, from the call to RUNNING, beside its parts.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use kapell_api::client::Client;
use kapell_backend::containers::Limits;
use kapell_core::board::Event;
use kapell_sim::bench::parts::{Commits, RoundTrips, Spawns, Start, ms};
use kapell_sim::bench::site::{DOMAIN, Site};
use kapell_sim::bench::watch::{Watch, is_gone, running};
use kapell_sim::figure::{figure, median, share};
use serde_json::{Value, json};

use crate::Plan;

/// Desired, UNCLAIMED, CLAIMED, RUNNING.
const COMMITS: usize = 4;
const LIMITS: Limits = Limits { memory_mb: Some(64), cpu_millis: Some(1000), pids: Some(64) };
const SCRIPT: &str = "exec busybox nc -ll -p $PORT -e /bin/true";

#[derive(Debug, Default)]
struct Samples {
    whole: Vec<f64>,
    commits: Vec<f64>,
    round_trips: Vec<f64>,
    /// Until it listens.
    spawn: Vec<f64>,
    limited: Vec<f64>,
    unlimited: Vec<f64>,
}

impl Samples {
    fn parts(&self) -> f64 {
        median(&self.commits) + median(&self.round_trips) + median(&self.spawn)
    }
}

/// Checked every millisecond: at the usual pace the first check comes after 2 s.
fn listener(guid: &str, instances: u32) -> Value {
    json!({
        "process_guid": guid,
        "domain": DOMAIN,
        "instances": instances,
        "memory_mb": LIMITS.memory_mb,
        "cpu_millis": LIMITS.cpu_millis,
        "max_pids": LIMITS.pids,
        "ports": [8080],
        "check": {"tcp": {"port": 8080}, "every_ms": 1},
        "action": {"run": {"path": "/bin/sh", "args": ["-c", SCRIPT]}},
    })
}

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let dir = dir.join("starts");
    let mut site = Site::new(kapell, dir.clone())?;
    site.start()?;
    site.ready().await?;
    let client = site.client()?;
    let mut watch = Watch::begin(&client).await?;
    let mut commits = Commits::open(&dir.join("commits")).await?;
    let mut spawns = Spawns::open(&dir.join("spawns"))?;
    let mut rounds = Vec::new();
    // The first one shows what is written.
    once(&client, &mut watch, "first").await?;
    let stands = listener("stands", 0);
    client.desire(&serde_json::from_value(stands.clone())?).await?;
    // It is desired, the cell is asked how it stands, gets it, claims it and reports that it runs.
    let mut round_trips = RoundTrips::open(&site, ("/v1/desired-lrps", &stands), 2).await?;
    for round in 0..plan.rounds {
        let mut samples = Samples::default();
        for number in 0..plan.starts_a_round {
            let written = watch.written();
            let to_running = written.get(..COMMITS).context("what an instance writes")?;
            // Nobody has to wait for what the one before has left to the disk.
            commits.each(to_running).await?;
            samples.commits.push(commits.each(to_running).await?);
            samples.round_trips.push(round_trips.each().await?);
            samples.spawn.push(spawns.once(&listening()?).await?);
            samples.unlimited.push(spawns.once(&Start::SLEEPER).await?);
            let limited = Start { limits: LIMITS, ..Start::SLEEPER };
            samples.limited.push(spawns.once(&limited).await?);
            let guid = format!("lrp-{round}-{number}");
            samples.whole.push(once(&client, &mut watch, &guid).await?);
        }
        rounds.push(samples);
    }
    site.clear(&client).await?;
    site.kill().await?;
    report(&rounds);
    Ok(())
}

fn listening() -> anyhow::Result<Start<'static>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    Ok(Start { limits: LIMITS, path: "/bin/sh", args: &["-c", SCRIPT], port: Some(port) })
}

/// One instance until it is gone; what it took until it was seen to run, in milliseconds.
async fn once(client: &Client, watch: &mut Watch, guid: &str) -> anyhow::Result<f64> {
    let desired = serde_json::from_value(listener(guid, 1))?;
    let runs = |event: &Event| running(event).is_some_and(|lrp| lrp.process_guid.as_str() == guid);
    let begun = Instant::now();
    let (made, ran) = tokio::join!(client.desire(&desired), watch.until(runs));
    made?;
    let took = ms(ran?.duration_since(begun));
    client.remove_desired(guid).await?;
    watch.until(|event| is_gone(event, guid)).await?;
    Ok(took)
}

fn report(rounds: &[Samples]) {
    let each = |of: &dyn Fn(&Samples) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
    let row = |name: &str, of: &dyn Fn(&Samples) -> f64| {
        figure(&format!("process start: {name}"), &each(of), "ms", None);
    };
    let ratios = each(&|round| median(&round.whole) / round.parts());
    let name = "process start: call to RUNNING, limits and health / its parts, medians";
    figure(name, &ratios, "ratio", Some(1.5));
    row("call to RUNNING, median", &|it| median(&it.whole));
    row("call to RUNNING, p99", &|it| share(&it.whole, 990));
    row("four commits, median", &|it| median(&it.commits));
    row("five round trips, median", &|it| median(&it.round_trips));
    row("shim and program until it listens, median", &|it| median(&it.spawn));
    row("shim and `sleep` with limits, median", &|it| median(&it.limited));
    row("shim and `sleep` without, median", &|it| median(&it.unlimited));
    let dearer = each(&|it| median(&it.limited) / median(&it.unlimited));
    figure("process start: shim and `sleep`, with limits / without", &dearer, "ratio", None);
}
