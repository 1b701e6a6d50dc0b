//! A task, from the call to RUNNING, beside two commits and four round trips.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use kapell_api::client::Client;
use kapell_core::board::{TaskDefinition, TaskState};
use kapell_sim::figure::{figure, median, share};
use serde_json::{Value, json};

use crate::Plan;
use kapell_sim::bench::parts::{Commits, RoundTrips, ms};
use kapell_sim::bench::site::{DOMAIN, Site};
use kapell_sim::bench::watch::Watch;

#[derive(Debug, Default)]
struct Samples {
    whole: Vec<f64>,
    commits: Vec<f64>,
    round_trips: Vec<f64>,
}

impl Samples {
    fn parts(&self) -> f64 {
        median(&self.commits) + median(&self.round_trips)
    }
}

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let dir = dir.join("tasks");
    let mut site = Site::new(kapell, dir.clone())?;
    site.start()?;
    site.ready().await?;
    let client = site.client()?;
    let mut watch = Watch::begin(&client).await?;
    let mut commits = Commits::open(&dir.join("commits")).await?;
    let mut rounds = Vec::new();
    // The first one shows what is written.
    once(&client, &mut watch, "first").await?;
    let stands = definition("stands");
    client.create_task(&serde_json::from_value(stands.clone())?).await?;
    watch.task("stands", TaskState::Completed).await?;
    // The task is made, the cell is asked how it stands, gets the task and reports that it runs it.
    let mut round_trips = RoundTrips::open(&site, ("/v1/tasks", &stands), 1).await?;
    for round in 0..plan.rounds {
        let mut samples = Samples::default();
        for number in 0..plan.tasks_a_round {
            let written = watch.written();
            let to_running = written.get(..2).context("a task is written twice")?;
            // Nobody has to wait for what the one before has left to the disk.
            commits.each(to_running).await?;
            samples.commits.push(commits.each(to_running).await?);
            samples.round_trips.push(round_trips.each().await?);
            let guid = format!("task-{round}-{number}");
            samples.whole.push(once(&client, &mut watch, &guid).await?);
        }
        rounds.push(samples);
    }
    site.kill().await?;
    report(&rounds);
    Ok(())
}

fn definition(guid: &str) -> Value {
    json!({"task_guid": guid, "domain": DOMAIN, "action": {"run": {"path": "/bin/true"}}})
}

/// One task until it is gone; what it took until it was seen to run, in milliseconds.
async fn once(client: &Client, watch: &mut Watch, guid: &str) -> anyhow::Result<f64> {
    let definition: TaskDefinition = serde_json::from_value(definition(guid))?;
    let begun = Instant::now();
    let (made, ran) =
        tokio::join!(client.create_task(&definition), watch.task(guid, TaskState::Running));
    made?;
    let took = ms(ran?.duration_since(begun));
    watch.task(guid, TaskState::Completed).await?;
    client.delete_task(guid).await?;
    Ok(took)
}

fn report(rounds: &[Samples]) {
    let each = |of: &dyn Fn(&Samples) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
    let ratios = each(&|round| median(&round.whole) / round.parts());
    figure("task: call to RUNNING / its parts, medians", &ratios, "ratio", Some(1.5));
    figure("task: call to RUNNING, median", &each(&|it| median(&it.whole)), "ms", None);
    figure("task: call to RUNNING, p99", &each(&|it| share(&it.whole, 990)), "ms", None);
    figure("task: two commits, median", &each(&|it| median(&it.commits)), "ms", None);
    figure("task: four round trips, median", &each(&|it| median(&it.round_trips)), "ms", None);
}
