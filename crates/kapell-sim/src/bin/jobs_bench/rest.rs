//! What very many active runs cost at rest, in a process that does nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kapell_core::board::JobId;
use kapell_core::job::{JobRequest, NewRun};
use kapell_core::run::{RunId, RunState, Trigger};
use kapell_core::seams::Timestamp;
use kapell_node::scheduler::Settings;
use kapell_sim::bench::usage::{Stopwatch, thousands};
use kapell_sim::figure::figure;
use serde_json::json;

use crate::held::{Held, wall};
use crate::stage::Stage;
use crate::{Plan, SMOKE};

/// How the process of its own is told what it is.
pub(crate) const INSIDE: &str = "held";

/// So many runs a job has.
const EACH: u32 = 100;
/// Nothing here takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the runs of a job are at.
#[derive(Debug, Clone, Copy)]
enum At {
    Work,
    /// Behind another one of their job, which works.
    Queue,
    /// Made long ahead of their time.
    Wait,
}

const KINDS: [(At, &str); 4] =
    [(At::Work, "work"), (At::Work, "works"), (At::Queue, "queue"), (At::Wait, "wait")];

/// Starts this very program, which prints figures of its own.
pub(crate) async fn measure(kapell: &Path, plan: Plan) -> anyhow::Result<()> {
    let mut inside = tokio::process::Command::new(std::env::current_exe()?);
    inside.arg(kapell).arg(INSIDE);
    if plan.active == SMOKE.active {
        inside.arg("--smoke");
    }
    let ended = inside.status().await?;
    ensure!(ended.success(), "it failed: {ended}");
    Ok(())
}

/// Half of all runs work, a quarter queues, and a quarter waits for its time.
pub(crate) async fn inside(dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let held = Held::counting();
    // All that is done from time to time is done within the time that is watched.
    let settings = Settings { safety_pass: plan.rest / 3, ..Settings::default() };
    let stage = Stage::open(&dir.join("rest"), Arc::new(held.clone()), settings).await?;
    let jobs = plan.active.div_ceil(EACH);
    stage.ask_all((0..jobs).map(|number| apply(kind_of(number), number))).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = resident("VmRSS:")?;
    let rested = cpu_at_rest(plan.rest / 3).await;
    let now = wall();
    stage.ask_all((0..plan.active).map(|number| trigger(number, jobs, now))).await?;
    settle(&stage, plan.active, jobs).await?;
    let full = resident("VmRSS:")?;
    let cpu = cpu_at_rest(plan.rest).await;
    let after = resident("VmRSS:")?;
    ensure!(count(&stage, |_| true) == plan.active as usize, "all runs are still there");
    let name = format!("{} active runs", thousands(plan.active));
    figure(&format!("{name}: memory above idle"), &[full.max(after) - idle], "MB", Some(100.0));
    figure(&format!("{name}: CPU at rest"), &[cpu], "%", Some(3.0));
    figure(&format!("{name}: memory without them"), &[idle], "MB", None);
    figure(&format!("{name}: memory at most"), &[resident("VmHWM:")?], "MB", None);
    figure(&format!("{name}: CPU at rest without them"), &[rested], "%", None);
    stage.close().await
}

const fn kind_of(job: u32) -> (At, &'static str) {
    KINDS[job as usize % KINDS.len()]
}

fn job_id((_, kind): (At, &str), job: u32) -> JobId {
    JobId::new(format!("{kind}-{job}"))
}

#[expect(clippy::expect_used, reason = "it is written here")]
fn apply(kind: (At, &str), job: u32) -> JobRequest {
    let overlap = match kind.0 {
        At::Work | At::Wait => "allow",
        At::Queue => "queue",
    };
    let job = json!({
        "job_id": job_id(kind, job),
        "overlap": overlap,
        "command": {"command": "/usr/bin/report", "args": ["--all"]},
    });
    let definition = serde_json::from_value(job).expect("it is a job");
    JobRequest::Apply { definition: Box::new(definition) }
}

fn trigger(number: u32, jobs: u32, now: Timestamp) -> JobRequest {
    let (job, drawn) = (number % jobs, number / jobs);
    let kind = kind_of(job);
    let job_id = job_id(kind, job);
    let due_at = match kind.0 {
        At::Work | At::Queue => now,
        At::Wait => now.after(Duration::from_secs(86_400)),
    };
    let run = NewRun {
        run_id: RunId::asked_for(&job_id, due_at, u64::from(drawn)),
        scheduled_at: due_at,
        due_at,
        trigger: Trigger::Manual { who: arcstr::literal!("bench") },
        parameters: BTreeMap::new(),
    };
    JobRequest::Trigger { job_id, run }
}

fn count(stage: &Stage, is: impl Fn(RunState) -> bool) -> usize {
    let mut count = 0;
    stage.show.board.look_at_all(|records| {
        count += records.active_runs().filter(|run| is(run.state)).count();
    });
    count
}

/// Waits until all that can work works, and all is on disk.
async fn settle(stage: &Stage, active: u32, jobs: u32) -> anyhow::Result<()> {
    let works = |number: &u32| match kind_of(number % jobs).0 {
        At::Work => true,
        At::Queue => number / jobs == 0,
        At::Wait => false,
    };
    let expected = (0..active).filter(works).count();
    let begun = std::time::Instant::now();
    while count(stage, |state| state == RunState::Running) < expected {
        ensure!(begun.elapsed() < PATIENCE, "not all of {expected} runs came to work");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

async fn cpu_at_rest(time: Duration) -> f64 {
    let watch = Stopwatch::start();
    tokio::time::sleep(time).await;
    let used = watch.used();
    used.cpu.as_secs_f64() / used.wall.as_secs_f64() * 100.0
}

/// What this process holds, in MB.
fn resident(field: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field)).context("a field")?;
    let kb: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kb * 1024.0 / 1e6)
}
