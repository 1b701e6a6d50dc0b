//! `kapell wait`

use std::io::IsTerminal as _;
use std::time::Duration;

use kapell_api::client::{ActualFilter, Client, Error};
use kapell_core::board::{ActualLrp, ActualState, TaskState};
use kapell_core::run::{Ending, Run};
use kapell_core::workflow::show_duration;
use tokio::time::{Instant, timeout, timeout_at};

use super::FAILED;
use super::args::Wait;
use super::follower::Follower;
use super::table::cut;
use super::target::Target;
use super::task::outcome;
use super::text::{now, why};
use crate::logger::style::clean;
use crate::say;

/// Between two looks, should an event be missed.
const LOOK: Duration = Duration::from_secs(2);

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    Failed(String),
    Waiting(String),
}

pub(crate) async fn run(args: &Wait, client: &Client) -> anyhow::Result<u8> {
    let until = Instant::now() + args.timeout;
    let mut follower = Follower::begin(client).await?;
    let mut line = Line::new();
    let mut last = String::new();
    let mut first = true;
    loop {
        match timeout_at(until, look(&args.of, client)).await {
            Ok(Ok(Progress::Done)) => {
                line.clear();
                return Ok(0);
            }
            Ok(Ok(Progress::Failed(why))) => {
                line.clear();
                say(&format!("{why}\n"));
                return Ok(FAILED);
            }
            Ok(Ok(Progress::Waiting(what))) => last = what,
            Ok(Err(error)) if error.passes() && !first => last = error.to_string(),
            Ok(Err(error)) => {
                line.clear();
                return Err(error.into());
            }
            Err(_) => {}
        }
        first = false;
        line.draw(&last);
        // Any event may be the one, and none may come.
        let event = timeout(LOOK, follower.next());
        match timeout_at(until, event).await {
            Ok(Ok(event)) => drop(event?),
            Ok(Err(_)) => {}
            Err(_) => {
                line.clear();
                let waited = show_duration(args.timeout);
                say(&format!("gave up on {} after {waited}: {}\n", args.of, clean(&last)));
                return Ok(FAILED);
            }
        }
    }
}

async fn look(target: &Target, client: &Client) -> Result<Progress, Error> {
    match target {
        Target::Lrp { process_guid, index } => lrp(client, process_guid, *index).await,
        Target::Task(guid) => {
            let task = client.task(guid).await?;
            Ok(match task.state {
                TaskState::Completed | TaskState::Resolving if task.failed => {
                    Progress::Failed(format!("task {guid} {}", clean(&outcome(&task))))
                }
                TaskState::Completed | TaskState::Resolving => Progress::Done,
                TaskState::Pending | TaskState::Running => {
                    let why = outcome(&task);
                    let why = if why.is_empty() { why } else { format!(": {why}") };
                    Progress::Waiting(format!("task {guid} is {}{why}", task.state.name()))
                }
            })
        }
        Target::Run(id) => Ok(judge_run(&client.run(id).await?.run)),
        Target::Job(id) => {
            Ok(Progress::Failed(format!("job {id} has no end: wait for one of its runs")))
        }
        Target::Domain(name) => {
            let domains = client.domains().await?.items;
            let is_fresh = domains.iter().any(|it| it.domain == *name && it.fresh);
            Ok(if is_fresh {
                Progress::Done
            } else {
                Progress::Waiting(format!("domain {name} is not fresh"))
            })
        }
        Target::Cell(id) => {
            let cells = client.cells().await?.items;
            let cell = cells.iter().find(|cell| cell.presence.cell_id.as_str() == id);
            Ok(match cell {
                Some(cell) if cell.state == "present" => Progress::Done,
                Some(cell) => Progress::Waiting(format!("cell {id} is {}", cell.state)),
                None => Progress::Waiting(format!("cell {id} is not there")),
            })
        }
    }
}

/// How far a run is.
pub(crate) fn judge_run(run: &Run) -> Progress {
    let why = clean(&run.reason);
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let told = format!("run {} is {}{why}", run.run_id, run.state.name());
    match run.state.ending() {
        Some(Ending::Completed) => Progress::Done,
        Some(Ending::Failed | Ending::Cancelled | Ending::Orphaned) => Progress::Failed(told),
        None => Progress::Waiting(told),
    }
}

async fn lrp(client: &Client, guid: &str, index: Option<u32>) -> Result<Progress, Error> {
    let wanted = client.desired_lrp(guid).await?.instances;
    let filter = ActualFilter { process_guid: Some(guid), all: true, ..ActualFilter::default() };
    let actual = client.actual_lrps(filter).await?.items;
    Ok(judge(guid, wanted, index, &actual))
}

/// Whether all that are wanted run, or the one that is asked for.
pub(crate) fn judge(guid: &str, wanted: u32, index: Option<u32>, actual: &[ActualLrp]) -> Progress {
    let asked = match index {
        Some(index) if index >= wanted => {
            return Progress::Failed(format!(
                "{guid}/{index} is not desired: {guid} has {wanted} instances"
            ));
        }
        Some(index) => index..index + 1,
        None => 0..wanted,
    };
    let find = |index: u32| actual.iter().find(|lrp| lrp.index == index && !lrp.evacuating);
    let runs = |index: &u32| find(*index).is_some_and(|lrp| lrp.state == ActualState::Running);
    let total = asked.len();
    let running = asked.clone().filter(runs).count();
    let Some(first) = asked.clone().find(|index| !runs(index)) else { return Progress::Done };
    let state = find(first).map_or_else(
        || "not there yet".to_owned(),
        |lrp| {
            let why = why(lrp, now());
            let why = if why.is_empty() { why } else { format!(": {why}") };
            format!("{}{why}", lrp.state.name())
        },
    );
    let leaving = |index: &u32| {
        let twin = |lrp: &&ActualLrp| lrp.index == *index && lrp.evacuating;
        let twin = actual.iter().find(twin);
        !runs(index) && twin.is_some_and(|lrp| lrp.state == ActualState::Running)
    };
    // They still serve, but not where they are to be.
    let leaving = match asked.filter(leaving).count() {
        0 => String::new(),
        1 => ", 1 runs on a cell that is being evacuated".to_owned(),
        more => format!(", {more} run on a cell that is being evacuated"),
    };
    Progress::Waiting(format!(
        "{running} of {total} instances run{leaving}; {guid}/{first} is {state}"
    ))
}

/// The line that tells what is waited for, on a terminal.
struct Line {
    shows: bool,
    drawn: bool,
}

impl Line {
    fn new() -> Self {
        Self { shows: std::io::stderr().is_terminal(), drawn: false }
    }

    fn draw(&mut self, text: &str) {
        if self.shows {
            let width = terminal_size::terminal_size_of(std::io::stderr())
                .map_or(80, |(width, _)| usize::from(width.0));
            let text = cut(&clean(text), width.saturating_sub(1));
            say(&format!("\r\x1b[K{text}"));
            self.drawn = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            say("\r\x1b[K");
        }
    }
}
