//! Very many jobs that are due at the same moments, each run held until its round is over.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use kapell_core::job::{JobDefinition, JobRequest};
use kapell_core::run::{Noted, Run, RunState};
use kapell_core::seams::Timestamp;
use kapell_node::scheduler::Settings;
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::Plan;
use crate::held::{Held, wall};
use crate::stage::Stage;

/// Nothing of a round takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Crowd {
    pub(crate) stage: Stage,
    pub(crate) held: Held,
    /// The moments of their schedule.
    pub(crate) moments: Vec<Timestamp>,
    jobs: u32,
}

/// What became of one run, in milliseconds after it was due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lateness {
    /// By its timeline: it has its place, and its intent to launch is on its way to the disk.
    pub(crate) decided: f64,
    /// The intent is on disk, and the backend was asked.
    pub(crate) launched: f64,
}

impl Crowd {
    /// Applies all jobs in good time before the first moment.
    pub(crate) async fn gather(
        dir: &Path,
        plan: Plan,
        jitter: Option<Duration>,
    ) -> anyhow::Result<Self> {
        let held = Held::default();
        let settings = Settings { ahead: plan.ahead, ..Settings::default() };
        let stage = Stage::open(dir, Arc::new(held.clone()), settings).await?;
        let first = Timestamp((wall().0 / 1_000 + 1) * 1_000).after(plan.lead);
        let moments: Vec<Timestamp> =
            (0..plan.rounds).map(|round| first.after(plan.apart * round)).collect();
        let lines: Vec<String> = moments.iter().copied().map(line).collect();
        let job = |number: u32| JobRequest::Apply {
            definition: Box::new(definition(number, &lines, jitter)),
        };
        stage.ask_all((0..plan.due).map(job)).await?;
        ensure!(wall().after(plan.ahead) < first, "the jobs were not applied in time");
        Ok(Self { stage, held, moments, jobs: plan.due })
    }

    /// All runs of a moment, once they wait for their time.
    pub(crate) async fn made(&self, moment: Timestamp) -> anyhow::Result<Vec<Timestamp>> {
        let begun = std::time::Instant::now();
        loop {
            let due: Vec<Timestamp> = self.runs(moment, |run| run.due_at);
            if due.len() == self.jobs as usize {
                return Ok(due);
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "only {} of {} runs were made",
                due.len(),
                self.jobs
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn runs<T>(&self, moment: Timestamp, of: impl Fn(&Run) -> T) -> Vec<T> {
        let mut found = Vec::new();
        self.stage.show.board.look_at_all(|records| {
            let wanted = records.active_runs().filter(|run| run.scheduled_at == moment);
            found.extend(wanted.map(&of));
        });
        found
    }

    /// Waits until all runs of the round with this number work, says how late each was, and ends them.
    pub(crate) async fn round(
        &self,
        round: usize,
        moment: Timestamp,
    ) -> anyhow::Result<Vec<Lateness>> {
        let jobs = self.jobs as usize;
        let all = self.held.until(jobs * (round + 1));
        ensure!(
            tokio::time::timeout(PATIENCE + Duration::from_secs(60), all).await.is_ok(),
            "not all runs were launched"
        );
        let launches = self.held.take();
        self.settled(moment, |run| run.state == RunState::Running).await?;
        let begun = self.runs(moment, |run| (run.run_id.clone(), (run.due_at, decided(run))));
        let begun: FxHashMap<_, _> = begun.into_iter().collect();
        let mut late = Vec::with_capacity(jobs);
        for launch in &launches {
            let Some((due_at, decided)) = begun.get(&launch.run_id).copied() else { continue };
            let Some(decided) = decided else { continue };
            late.push(Lateness {
                decided: millis((decided.0 - due_at.0) * 1_000_000),
                launched: millis(launch.at_ns - due_at.0 * 1_000_000),
            });
            self.held.end(&launch.run_id);
        }
        ensure!(late.len() == jobs, "each of {jobs} runs was launched once, not {}", late.len());
        self.settled(moment, |_| false).await?;
        Ok(late)
    }

    /// Waits until all runs of a moment that are under way are stored as said.
    async fn settled(&self, moment: Timestamp, is: fn(&Run) -> bool) -> anyhow::Result<()> {
        let begun = std::time::Instant::now();
        while self.runs(moment, is).contains(&false) {
            ensure!(begun.elapsed() < PATIENCE, "the runs do not settle");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

fn decided(run: &Run) -> Option<Timestamp> {
    let intended =
        |noted: &Noted| matches!(noted, Noted::State { to: RunState::ContainerCreating, .. });
    run.timeline.iter().find(|entry| intended(&entry.noted)).map(|entry| entry.at)
}

#[expect(clippy::cast_precision_loss, reason = "nothing takes years")]
pub(crate) fn millis(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}

/// A line of cron for one moment of the day.
fn line(at: Timestamp) -> String {
    let second = at.0 / 1_000 % 86_400;
    format!("{} {} {} * * *", second % 60, second / 60 % 60, second / 3_600)
}

#[expect(clippy::expect_used, reason = "it is written here")]
fn definition(number: u32, lines: &[String], jitter: Option<Duration>) -> JobDefinition {
    let mut job = json!({
        "job_id": format!("report-{number}"),
        "schedule": lines,
        "command": {"command": "true"},
    });
    if let Some(jitter) = jitter {
        job["jitter"] = format!("{}ms", jitter.as_millis()).into();
    }
    serde_json::from_value(job).expect("it is a job")
}
