//! An instance, from the call to RUNNING, beside its commits, round trips and its start.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use kapell_api::client::Client;
use kapell_core::board::Event;
use kapell_sim::figure::{figure, median, share};

use crate::Plan;
use kapell_sim::bench::parts::{Commits, RoundTrips, Spawns, Start, ms};
use kapell_sim::bench::site::{Site, sleepers};
use kapell_sim::bench::watch::{Watch, is_gone, running};

/// Desired, UNCLAIMED, CLAIMED, RUNNING.
const COMMITS: usize = 4;

#[derive(Debug, Default)]
struct Samples {
    whole: Vec<f64>,
    commits: Vec<f64>,
    round_trips: Vec<f64>,
    spawn: Vec<f64>,
}

impl Samples {
    fn parts(&self) -> f64 {
        median(&self.commits) + median(&self.round_trips) + median(&self.spawn)
    }
}

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let dir = dir.join("instances");
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
    let stands = sleepers("stands", 0);
    client.desire(&serde_json::from_value(stands.clone())?).await?;
    // It is desired, the cell is asked how it stands, gets it, claims it and reports that it runs.
    let mut round_trips = RoundTrips::open(&site, ("/v1/desired-lrps", &stands), 2).await?;
    for round in 0..plan.rounds {
        let mut samples = Samples::default();
        for number in 0..plan.instances_a_round {
            let written = watch.written();
            let to_running = written.get(..COMMITS).context("what an instance writes")?;
            // Nobody has to wait for what the one before has left to the disk.
            commits.each(to_running).await?;
            samples.commits.push(commits.each(to_running).await?);
            samples.round_trips.push(round_trips.each().await?);
            samples.spawn.push(spawns.once(&Start::SLEEPER).await?);
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

/// One instance until it is gone; what it took until it was seen to run, in milliseconds.
async fn once(client: &Client, watch: &mut Watch, guid: &str) -> anyhow::Result<f64> {
    let desired = serde_json::from_value(sleepers(guid, 1))?;
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
    let ratios = each(&|round| median(&round.whole) / round.parts());
    figure("instance: call to RUNNING / its parts, medians", &ratios, "ratio", Some(1.5));
    figure("instance: call to RUNNING, median", &each(&|it| median(&it.whole)), "ms", None);
    figure("instance: call to RUNNING, p99", &each(&|it| share(&it.whole, 990)), "ms", None);
    figure("instance: four commits, median", &each(&|it| median(&it.commits)), "ms", None);
    figure("instance: five round trips, median", &each(&|it| median(&it.round_trips)), "ms", None);
    figure("instance: shim and program, median", &each(&|it| median(&it.spawn)), "ms", None);
}
