//! What the facts say about a constraint.

use std::cmp::Reverse;
use std::time::Duration;

use super::rule::{Health, OtherJob, OtherQuestion, PreviousSuccess, Room};
use crate::board::CellState;
use crate::job::Length;
use crate::run::{RunId, RunState};
use crate::seams::Timestamp;

/// Whether a constraint is met, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    Met(String),
    Violated(String),
}

impl Finding {
    fn of(met: bool, why: String) -> Self {
        if met { Self::Met(why) } else { Self::Violated(why) }
    }
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobState {
    /// Runs past their due time that have not ended.
    pub running: u32,
    /// When its next run is due, a retry included.
    pub next_at: Option<Timestamp>,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastRun {
    pub run_id: RunId,
    pub state: RunState,
    pub skipped: bool,
    pub completed_at: Timestamp,
}

impl PastRun {
    /// The newest first, so many of those that succeeded and as many of the others. What was skipped says nothing, and
    /// takes no room from what does.
    pub fn newest(ended: impl Iterator<Item = Self>, most: u32) -> Vec<Self> {
        let mut ended: Vec<Self> = ended.filter(|run| !run.skipped).collect();
        ended.sort_by_key(|run| Reverse(run.completed_at));
        let mut left = [most; 2];
        ended.retain(|run| {
            let left = &mut left[usize::from(run.succeeded())];
            let stays = *left > 0;
            *left = left.saturating_sub(1);
            stays
        });
        ended
    }

    fn succeeded(&self) -> bool {
        self.state == RunState::Completed
    }
}

impl PreviousSuccess {
    /// `history` is that of the job itself, the newest run first. What was skipped says nothing.
    pub fn judge(&self, history: &[PastRun]) -> Finding {
        match history.iter().find(|run| !run.skipped) {
            None => Finding::of(self.allow_first, "no run has done anything yet".to_owned()),
            Some(run) => {
                let (id, state) = (&run.run_id, run.state.name());
                Finding::of(run.succeeded(), format!("the run before, {id}, ended as {state}"))
            }
        }
    }
}

impl OtherJob {
    /// How far back the history of the other job is asked for.
    pub const HISTORY: u32 = 50;

    /// What is found out about the job. `state` is nothing if there is no such job.
    pub fn judge(
        &self,
        state: Option<&JobState>,
        history: &[PastRun],
        now: Timestamp,
    ) -> Result<Finding, String> {
        let job = &self.job;
        let state = state.ok_or_else(|| format!("there is no job `{job}`"))?;
        let (holds, why) = match self.question {
            OtherQuestion::Running => match state.running {
                0 => (false, format!("job `{job}` is not running")),
                running => (true, format!("job `{job}` is running ({running})")),
            },
            OtherQuestion::CompletedWithin { within, success } => {
                completed(job.as_str(), history, now, within, success)
            }
            OtherQuestion::ScheduledWithin { within } => match state.next_at {
                Some(at) if at.since(now) <= within.get() => {
                    (true, format!("job `{job}` is due in {:.0}s", at.since(now).as_secs_f64()))
                }
                Some(_) | None => (false, format!("job `{job}` is not due within {within}")),
            },
        };
        Ok(Finding::of(holds != self.negate, why))
    }
}

fn completed(
    job: &str,
    history: &[PastRun],
    now: Timestamp,
    within: Length,
    success: bool,
) -> (bool, String) {
    let counts = |run: &&PastRun| !run.skipped && (run.succeeded() || !success);
    let last = history.iter().filter(counts).max_by_key(|run| run.completed_at);
    let what = if success { "completed" } else { "ended" };
    match last {
        None => (false, format!("job `{job}` has not {what} yet")),
        Some(run) => {
            let ago = now.since(run.completed_at);
            let text = format!(
                "job `{job}` {what} {:.0}s ago, {} (within: {within})",
                ago.as_secs_f64(),
                run.run_id
            );
            (ago <= within.get(), text)
        }
    }
}

impl Room {
    /// Whether enough cells have room for it.
    pub fn judge(&self, cells: &[CellState]) -> Finding {
        let fits = |cell: &&CellState| {
            !cell.evacuating
                && !cell.unhealthy
                && self.zone.as_ref().is_none_or(|zone| *zone == cell.zone)
                && self.tags.iter().all(|tag| {
                    cell.placement_tags.contains(tag) || cell.optional_placement_tags.contains(tag)
                })
                && cell.available.memory_mb >= self.memory_mb
                && cell.available.disk_mb >= self.disk_mb
                && cell.available.containers >= self.containers
        };
        let found = cells.iter().filter(fits).count();
        let (wanted, all) = (self.cells, cells.len());
        let room = format!(
            "{} MB of memory, {} MB of disk and {} containers",
            self.memory_mb, self.disk_mb, self.containers
        );
        Finding::of(
            found >= wanted as usize,
            format!("{found} of {all} cells have room for {room}, {wanted} must"),
        )
    }
}

impl Health {
    pub fn judge(&self, status: u16) -> Finding {
        let good = if self.statuses.is_empty() {
            (200..=299).contains(&status)
        } else {
            self.statuses.contains(&status)
        };
        Finding::of(good, format!("the answer was {status}"))
    }
}

/// A hook must be answered by 200 and nothing else.
pub(super) fn hook(status: u16) -> Finding {
    Finding::of(status == 200, format!("the answer was {status}"))
}

pub(super) fn run_time(took: Duration, limit: Length, what: &str) -> Finding {
    let text =
        |how: &str| format!("it ran for {}, {how} {limit} ({what})", Length::new(round(took)));
    if took > limit.get() {
        Finding::Violated(text("longer than"))
    } else {
        Finding::Met(text("not longer than"))
    }
}

fn round(took: Duration) -> Duration {
    Duration::from_millis(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}
