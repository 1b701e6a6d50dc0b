//! The smallest runs there are, one by one, from the wish over HTTP to the stored outcome, beside bare Jobs in turns.

use std::time::{Duration, Instant};

use anyhow::ensure;
use kapell_api::client::Client;
use kapell_api::v1::TriggerWanted;
use kapell_core::run::{RunId, RunState};
use kapell_sim::bench::site::PATIENCE;
use kapell_sim::figure::figure;

use crate::Plan;
use crate::bare;
use crate::cluster::{Cluster, apply, cleared, pod};

const JOB: &str = "trivial";
/// Between two looks at a run.
const PAUSE: Duration = Duration::from_millis(2);
/// So much later than the bare Job at most, in milliseconds.
const LATER: f64 = 100.0;
/// Calls to the cluster for a run at most.
const CALLS: f64 = 4.0;

pub(crate) async fn measure(cluster: &Cluster, plan: Plan) -> anyhow::Result<()> {
    let (_site, client) = cluster.host(JOB, "").await?;
    let jobs = cluster.jobs().await?;
    apply(&client, JOB, &pod()).await?;
    // Once for all that is made with the first.
    run(&client).await?;
    bare::run(&jobs, "first", 1).await?;
    cleared(&jobs).await?;
    let (mut bares, mut runs, mut later, mut calls) = (vec![], vec![], vec![], vec![]);
    for round in 0..plan.trivial {
        let bare = millis(bare::run(&jobs, &format!("bare-{round}"), 1).await?);
        cleared(&jobs).await?;
        let (took, id) = run(&client).await?;
        cleared(&jobs).await?;
        let whole = millis(took);
        calls.push(calls_for(cluster, &id)?);
        bares.push(bare);
        runs.push(whole);
        later.push(whole - bare);
    }
    let name = "trivial run, trigger to stored Completed";
    figure(&format!("{name}: later than a bare Job"), &later, "ms", Some(LATER));
    let most = calls.iter().copied().fold(0.0, f64::max);
    figure("trivial run: calls to the cluster, at most", &[most], "calls", Some(CALLS));
    figure(name, &runs, "ms", None);
    figure("bare Job, creation to Complete as its watch tells it", &bares, "ms", None);
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

async fn run(client: &Client) -> anyhow::Result<(Duration, RunId)> {
    let begun = Instant::now();
    let id = client.trigger_job(JOB, &TriggerWanted::default()).await?.run.run_id;
    loop {
        let state = client.run(id.as_str()).await?.run.state;
        if state == RunState::Completed {
            return Ok((begun.elapsed(), id));
        }
        ensure!(!state.is_final() && begun.elapsed() < PATIENCE, "{id} is {}", state.name());
        tokio::time::sleep(PAUSE).await;
    }
}

/// Calls that name the Job of a run or a pod of it, as the cluster counts them.
fn calls_for(cluster: &Cluster, run: &RunId) -> anyhow::Result<f64> {
    let audit = cluster.audit()?;
    let about = |line: &&serde_json::Value| {
        let text = &line["requestObject"]["metadata"]["annotations"]["kapell/run-id"];
        text.as_str() == Some(run.as_str())
    };
    let pod = audit.iter().find(about).and_then(|line| {
        let owner = &line["requestObject"]["metadata"]["ownerReferences"][0]["name"];
        owner.as_str().map(str::to_owned)
    });
    let Some(name) = pod else { anyhow::bail!("the cluster made no pod for {run}") };
    let is_ours = |line: &&serde_json::Value| {
        let named = line["objectRef"]["name"].as_str().unwrap_or_default();
        line["user"]["username"] == "admin"
            && line["stage"] == "ResponseComplete"
            && named.starts_with(&name)
    };
    #[expect(clippy::cast_precision_loss, reason = "they are few")]
    let count = audit.iter().filter(is_ours).count() as f64;
    Ok(count)
}
