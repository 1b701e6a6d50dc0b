//! One instance after the other, from the call to RUNNING, beside its commits, round trips and its start.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use kapell_api::client::Client;
use kapell_core::board::Event;
use serde_json::Value;

use super::parts::{Commits, RoundTrips, Spawns, Start, ms};
use super::site::Site;
use super::watch::{Watch, is_gone, running};
use crate::figure::median;

/// Desired, UNCLAIMED, CLAIMED, RUNNING.
const COMMITS: usize = 4;

/// What starts and their parts took, in milliseconds.
#[derive(Debug, Default)]
pub struct Samples {
    pub whole: Vec<f64>,
    pub commits: Vec<f64>,
    pub round_trips: Vec<f64>,
    pub spawn: Vec<f64>,
}

impl Samples {
    pub fn parts(&self) -> f64 {
        median(&self.commits) + median(&self.round_trips) + median(&self.spawn)
    }
}

/// A platform of its own, and what its parts are measured with.
#[derive(Debug)]
pub struct Instances {
    site: Site,
    client: Client,
    watch: Watch,
    commits: Commits,
    round_trips: RoundTrips,
    pub spawns: Spawns,
    desired: fn(&str, u32) -> Value,
}

impl Instances {
    /// `desired` makes a process of so many instances.
    pub async fn open(
        kapell: &Path,
        dir: &Path,
        desired: fn(&str, u32) -> Value,
    ) -> anyhow::Result<Self> {
        let mut site = Site::new(kapell, dir.to_owned())?;
        site.start()?;
        site.ready().await?;
        let client = site.client()?;
        let mut watch = Watch::begin(&client).await?;
        let commits = Commits::open(&dir.join("commits")).await?;
        let spawns = Spawns::open(&dir.join("spawns"))?;
        // The first one shows what is written.
        once(&client, &mut watch, "first", desired).await?;
        let stands = desired("stands", 0);
        client.desire(&serde_json::from_value(stands.clone())?).await?;
        // It is desired, the cell is asked how it stands, gets it, claims it and reports that it runs.
        let round_trips = RoundTrips::open(&site, ("/v1/desired-lrps", &stands), 2).await?;
        Ok(Self { site, client, watch, commits, round_trips, spawns, desired })
    }

    /// Each of the parts, `start` as the last of them, and then an instance.
    pub async fn sample(
        &mut self,
        guid: &str,
        start: &Start<'_>,
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        let written = self.watch.written();
        let to_running = written.get(..COMMITS).context("what an instance writes")?;
        // Nobody has to wait for what the one before has left to the disk.
        self.commits.each(to_running).await?;
        samples.commits.push(self.commits.each(to_running).await?);
        samples.round_trips.push(self.round_trips.each().await?);
        samples.spawn.push(self.spawns.once(start).await?);
        samples.whole.push(once(&self.client, &mut self.watch, guid, self.desired).await?);
        Ok(())
    }

    pub async fn close(mut self) -> anyhow::Result<()> {
        self.site.clear(&self.client).await?;
        self.site.kill().await
    }
}

/// One instance until it is gone; what it took until it was seen to run, in milliseconds.
async fn once(
    client: &Client,
    watch: &mut Watch,
    guid: &str,
    desired: fn(&str, u32) -> Value,
) -> anyhow::Result<f64> {
    let desired = serde_json::from_value(desired(guid, 1))?;
    let runs = |event: &Event| running(event).is_some_and(|lrp| lrp.process_guid.as_str() == guid);
    let begun = Instant::now();
    let (made, ran) = tokio::join!(client.desire(&desired), watch.until(runs));
    made?;
    let took = ms(ran?.duration_since(begun));
    client.remove_desired(guid).await?;
    watch.until(|event| is_gone(event, guid)).await?;
    Ok(took)
}
