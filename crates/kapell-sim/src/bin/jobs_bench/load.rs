//! A file with very many jobs: read, checked, stored and known to the scheduler.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use kapell_core::job::JobRequest;
use kapell_core::manifest::{self, Document};
use kapell_node::scheduler::Settings;
use kapell_sim::bench::usage::thousands;
use kapell_sim::figure::figure;

use crate::Plan;
use crate::held::Held;
use crate::stage::Stage;

const GOAL_S: f64 = 4.0;
/// Nothing here takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn measure(dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let file = dir.join("jobs.yaml");
    std::fs::write(&file, text(plan.loaded))?;
    let (mut read, mut stored, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let home = dir.join(format!("load{round}"));
        let settings = Settings { stats_flush: Duration::from_millis(100), ..Settings::default() };
        let stage = Stage::open(&home, Arc::new(Held::counting()), settings).await?;
        let begun = Instant::now();
        let requests = requests(&std::fs::read(&file)?)?;
        read.push(begun.elapsed().as_secs_f64());
        ensure!(requests.len() == plan.loaded as usize, "the file has them all");
        stage.ask_all(requests).await?;
        stored.push(begun.elapsed().as_secs_f64());
        while stage.figure("kapell_scheduler_jobs") < f64::from(plan.loaded) {
            ensure!(begun.elapsed() < PATIENCE, "the scheduler does not take them up");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        known.push(begun.elapsed().as_secs_f64());
        stage.close().await?;
        std::fs::remove_dir_all(home)?;
    }
    let name = format!("{} jobs from a file", thousands(plan.loaded));
    figure(&format!("{name}: parsed and loaded"), &known, "s", Some(GOAL_S));
    figure(&format!("{name}: parsed"), &read, "s", None);
    figure(&format!("{name}: parsed and on disk"), &stored, "s", None);
    Ok(())
}

fn requests(bytes: &[u8]) -> anyhow::Result<Vec<JobRequest>> {
    let read = manifest::read(bytes).map_err(|problems| anyhow!("{problems:?}"))?;
    let jobs = read.into_iter().filter_map(|placed| match placed.document {
        Document::Job(definition) => Some(JobRequest::Apply { definition }),
        Document::Lrp { .. } | Document::Task(_) => None,
    });
    Ok(jobs.collect())
}

/// Jobs as people write them, one document each.
fn text(count: u32) -> String {
    let mut text = String::new();
    for number in 0..count {
        let (minute, hour) = (number % 60, number / 60 % 24);
        // Writing to a text does not fail.
        let _written = write!(
            text,
            "kind: job\njob_id: report-{number}\nschedule: '{minute} {hour} * * *'\n\
             timezone: Europe/Berlin\njitter: 30s\ncommand:\n  command: /usr/bin/report\n  \
             args: [--customer, '{number}']\nretry:\n  max_retries: 2\ntags: [reports, nightly]\n---\n"
        );
    }
    text
}
