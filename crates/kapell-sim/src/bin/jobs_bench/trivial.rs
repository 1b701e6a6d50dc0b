//! The smallest runs that there are, from the wish over HTTP to the stored outcome, beside bare starts of the same program.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use kapell_api::client::{Client, RunFilter};
use kapell_api::v1::TriggerWanted;
use kapell_core::run::RunState;
use kapell_sim::bench::site::Site;
use kapell_sim::figure::{figure, figure_at_least};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::json;
use tokio::task::JoinSet;

use crate::Plan;

const PROGRAM: &str = "/bin/true";
/// Bare starts that are under way at once.
const IN_FLIGHT: usize = 5;
/// Connections over which runs are asked for, each with one wish at a time.
const CONNECTIONS: u32 = 8;
/// Between two looks whether all have ended.
const PAUSE: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(120);
/// What is to be reached of the bare starts.
const GOAL: f64 = 0.40;

/// Runs and bare starts in turns: in each round half of the bare ones come before the runs, and half after them.
pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let mut site = Site::new(kapell, dir.join("trivial"))?;
    site.start()?;
    site.ready().await?;
    let client = site.client()?;
    // Once for all that is made with the first run.
    runs(&site, &client, "first", CONNECTIONS).await?;
    let (mut bare, mut whole, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let before = bare_starts(plan.trivial / 2).await?;
        let reached = runs(&site, &client, &format!("round-{round}"), plan.trivial).await?;
        let after = bare_starts(plan.trivial / 2).await?;
        let floor = 2.0 / (1.0 / before + 1.0 / after);
        bare.push(floor);
        whole.push(reached);
        shares.push(reached / floor);
    }
    figure("bare posix_spawn of /bin/true", &bare, "1/s", None);
    figure("runs of /bin/true, trigger to stored Completed", &whole, "1/s", None);
    figure_at_least("runs of /bin/true, share of posix_spawn", &shares, "ratio", GOAL);
    Ok(())
}

/// How many runs a second are asked for, done and stored.
async fn runs(site: &Site, client: &Client, job: &str, count: u32) -> anyhow::Result<f64> {
    let definition = json!({
        "job_id": job,
        "overlap": "allow",
        "history": {"succeeded": count},
        "command": {"command": PROGRAM, "args": []},
    });
    client.apply_job(&serde_json::from_value(definition)?).await?;
    let mut askers = JoinSet::new();
    let begun = Instant::now();
    for asker in 0..CONNECTIONS {
        let (client, job) = (site.client()?, job.to_owned());
        let share = count / CONNECTIONS + u32::from(asker < count % CONNECTIONS);
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
    let active =
        RunFilter { job: Some(job), active: Some(true), limit: Some(1), ..RunFilter::default() };
    while !client.runs(active).await?.items.is_empty() {
        ensure!(begun.elapsed() < PATIENCE, "the runs do not end");
        tokio::time::sleep(PAUSE).await;
    }
    let took = begun.elapsed();
    let ended = RunFilter { job: Some(job), limit: Some(count), ..RunFilter::default() };
    let ended = client.runs(ended).await?.items;
    let well = ended.iter().filter(|view| view.run.state == RunState::Completed).count();
    ensure!(well == count as usize, "{well} of {count} runs are stored as completed");
    Ok(f64::from(count) / took.as_secs_f64())
}

/// How many bare starts a second there are: each in a process group of its own, with both of its pipes drained.
async fn bare_starts(count: u32) -> anyhow::Result<f64> {
    tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        let mut left = count;
        let mut running: Vec<Bare> = Vec::with_capacity(IN_FLIGHT);
        while left > 0 || !running.is_empty() {
            while left > 0 && running.len() < IN_FLIGHT {
                running.push(Bare::start()?);
                left -= 1;
            }
            drain(&mut running)?;
        }
        Ok(f64::from(count) / begun.elapsed().as_secs_f64())
    })
    .await?
}

struct Bare(Child);

impl Bare {
    fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(PROGRAM);
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map(Self).context("cannot start it")
    }
}

/// Waits for output of any, reads it, and buries those that have none left.
fn drain(running: &mut Vec<Bare>) -> anyhow::Result<()> {
    let mut waiting = Vec::with_capacity(2 * IN_FLIGHT);
    for Bare(child) in running.iter() {
        let out = child.stdout.as_ref().map(AsFd::as_fd);
        let streams = out.into_iter().chain(child.stderr.as_ref().map(AsFd::as_fd));
        waiting.extend(streams.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
    }
    poll(&mut waiting, PollTimeout::NONE)?;
    let ready: Vec<bool> = waiting.iter().map(|fd| fd.any().unwrap_or(false)).collect();
    let mut ready = ready.into_iter();
    for Bare(child) in running.iter_mut() {
        child.stdout.take_if(|out| ready.next() == Some(true) && is_over(out));
        child.stderr.take_if(|err| ready.next() == Some(true) && is_over(err));
    }
    let mut at = 0;
    while let Some(Bare(child)) = running.get_mut(at) {
        if child.stdout.is_some() || child.stderr.is_some() {
            at += 1;
            continue;
        }
        ensure!(child.wait()?.success(), "a bare start failed");
        running.swap_remove(at);
    }
    Ok(())
}

/// Reads what is there; whether that was the end.
fn is_over(stream: &mut impl Read) -> bool {
    stream.read(&mut [0; 4096]).is_ok_and(|count| count == 0)
}
