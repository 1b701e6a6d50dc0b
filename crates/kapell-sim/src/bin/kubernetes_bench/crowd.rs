//! Many runs at once, beside as many bare Jobs before and after them.

use std::time::Instant;

use kapell_api::v1::TriggerWanted;
use kapell_sim::figure::figure;
use tokio::task::JoinSet;

use crate::Plan;
use crate::bare;
use crate::cluster::{Cluster, all_completed, apply, cleared, pod};

/// Connections over which runs are asked for, each with one wish at a time.
const CONNECTIONS: u32 = 8;
const GOAL: f64 = 1.1;

pub(crate) async fn measure(cluster: &Cluster, plan: Plan) -> anyhow::Result<()> {
    let (site, client) = cluster.host("crowd", "").await?;
    let jobs = cluster.jobs().await?;
    let (mut bares, mut wholes, mut ratios) = (vec![], vec![], vec![]);
    let mut before = bare::run(&jobs, "bare-first", plan.crowd).await?.as_secs_f64();
    bares.push(before);
    for round in 0..plan.rounds {
        cleared(&jobs).await?;
        let job = format!("crowd-{round}");
        apply(&client, &job, &pod()).await?;
        let mut askers = JoinSet::new();
        let begun = Instant::now();
        for asker in 0..CONNECTIONS {
            let (client, job) = (site.client()?, job.clone());
            let share = plan.crowd / CONNECTIONS + u32::from(asker < plan.crowd % CONNECTIONS);
            askers.spawn(async move {
                for _ in 0..share {
                    client.trigger_job(&job, &TriggerWanted::default()).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(asked) = askers.join_next().await {
            asked??;
        }
        all_completed(&client, &job, plan.crowd).await?;
        let whole = begun.elapsed().as_secs_f64();
        cleared(&jobs).await?;
        let after = bare::run(&jobs, &format!("bare-{round}"), plan.crowd).await?.as_secs_f64();
        wholes.push(whole);
        bares.push(after);
        ratios.push(whole / f64::midpoint(before, after));
        before = after;
    }
    cleared(&jobs).await?;
    let name = format!("{} runs at once", plan.crowd);
    figure(&format!("{name}, by as many bare Jobs"), &ratios, "ratio", Some(GOAL));
    figure(&format!("{name}, first trigger to last stored Completed"), &wholes, "s", None);
    figure(&format!("{} bare Jobs at once", plan.crowd), &bares, "s", None);
    Ok(())
}
