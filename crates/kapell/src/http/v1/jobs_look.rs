//! Jobs and runs as people and programs see them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use kapell_api::v1::{JobView, RunBrief, RunLive, RunTimer, RunView};
use kapell_core::board::{Domain, JobId, Records};
use kapell_core::job::explain::{JobFacts, next_run};
use kapell_core::job::{Job, JobDefinition};
use kapell_core::run::sight::add_noted;
use kapell_core::run::{Run, RunId, RunState, Sight, Timer};
use kapell_core::schedule::{Moments as _, Schedule};
use kapell_core::seams::Timestamp;
use kapell_node::board::Sights;

use super::super::desk::{Desk, look};
use super::super::scheduler::Scheduler;

/// Of the runs that wait for their time so many are looked at, to say when the next one is.
const WAITING: usize = 64;

/// What the board has of a job, taken from it at once; the rest is worked out when nobody waits for the board.
struct Found {
    job: Job,
    definition: Arc<JobDefinition>,
    stands: Timestamp,
    /// Those that wait for their time.
    waiting: Vec<Run>,
    active: usize,
    last: Option<RunBrief>,
}

impl Found {
    fn of(records: &Records, sights: &Sights, job_id: &JobId, now: Timestamp) -> Option<Self> {
        let (job, definition) = records.job(job_id)?;
        let begun = |run: &&Run| sights.state_of(run) != RunState::PreRun;
        let waits = |run: &&Run| run.state == RunState::PreRun && run.due_at >= now;
        let last = records.runs_of(job_id).filter(begun).max_by_key(|run| run.due_at);
        Some(Self {
            job: job.clone(),
            definition: Arc::clone(definition),
            stands: records.stands(job),
            waiting: records.active_runs_of(job_id).filter(waits).take(WAITING).cloned().collect(),
            active: records.active_runs_of(job_id).count(),
            last: last.map(|run| {
                let mut brief = RunBrief::of(run);
                if let Some(sight) = sights.get(&run.run_id).filter(|it| it.is_ahead_of(run)) {
                    (brief.state, brief.reason) = (sight.state, sight.reason());
                }
                brief
            }),
        })
    }

    fn view(self, now: Timestamp) -> JobView {
        let runs: Vec<&Run> = self.waiting.iter().collect();
        let facts = JobFacts {
            job: &self.job,
            definition: &self.definition,
            stands: self.stands,
            runs: &runs,
        };
        let next_at = Schedule::of(&self.definition).ok().and_then(|schedule| {
            let at = next_run(&facts, &schedule, now)?;
            Some(schedule.put_off(at))
        });
        JobView {
            next_at,
            active_runs: u32::try_from(self.active).unwrap_or(u32::MAX),
            last_run: self.last,
            definition: (*self.definition).clone(),
            job: self.job,
        }
    }
}

/// A job as it stands.
pub(crate) fn job(desk: &dyn Desk, job_id: &JobId, now: Timestamp) -> Option<JobView> {
    let sights = desk.sights();
    let of = |records: &Records| Found::of(records, &sights, job_id, now);
    let found = look(desk, job_id.as_str(), of).flatten();
    found.map(|found| found.view(now))
}

/// All jobs that `wanted` takes, by their ids.
pub(crate) fn jobs(
    desk: &dyn Desk,
    now: Timestamp,
    wanted: impl Fn(&Job, &JobDefinition) -> bool,
) -> Vec<JobView> {
    let mut ids: Vec<JobId> = Vec::new();
    desk.look_at_all(&mut |records| {
        for id in records.jobs.keys() {
            if records.job(id).is_some_and(|(job, definition)| wanted(job, definition)) {
                ids.push(id.clone());
            }
        }
    });
    ids.sort();
    ids.iter().filter_map(|id| job(desk, id, now)).collect()
}

pub(crate) fn run_view(records: &Records, run: &Run) -> RunView {
    let job_id = run.run_id.job_id();
    let definition = records.definition(&job_id, run.revision);
    let definition = definition.or_else(|| records.job(&job_id).map(|(_, definition)| definition));
    let timezone = definition.map_or_else(|| "UTC".to_owned(), |it| it.timezone.clone());
    RunView { run: run.clone(), job_id, timezone, live: None }
}

pub(crate) fn run(desk: &dyn Desk, run_id: &RunId) -> Option<RunView> {
    // Before its record: what is stored between the two is in the record.
    let sight = desk.sights().get(run_id);
    let of = |records: &Records| records.runs.get(run_id).map(|run| run_view(records, run));
    let mut view = look(desk, run_id.job(), of).flatten()?;
    if let Some(sight) = sight.filter(|sight| sight.put_over(&mut view.run)) {
        let Sight { since, doing, .. } = sight;
        view.live = Some(RunLive {
            since,
            doing: doing.map(|doing| *doing),
            heartbeats: None,
            timer: None,
        });
    }
    Some(view)
}

/// A run with all that is known of it: the scheduler is asked, if it is under way.
pub(crate) async fn whole_run(
    desk: &dyn Desk,
    scheduler: Option<&dyn Scheduler>,
    run_id: &RunId,
) -> Option<RunView> {
    let is_over = look(desk, run_id.job(), |records| {
        records.runs.get(run_id).is_none_or(|run| run.state.is_final())
    });
    let told = match scheduler {
        Some(scheduler) if is_over == Some(false) => scheduler.live(run_id).await,
        Some(_) | None => None,
    };
    let mut view = run(desk, run_id)?;
    if let Some(told) = told.filter(|_| !view.run.state.is_final()) {
        add_noted(&mut view.run, told.noted);
        let doing = view.live.and_then(|live| live.doing);
        let timer = |(timer, at): (Timer, _)| RunTimer { what: timer.name().to_owned(), at };
        view.live = Some(RunLive {
            since: told.since,
            doing,
            heartbeats: Some(told.heartbeats),
            timer: told.timer.map(timer),
        });
    }
    Some(view)
}

/// Which runs are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunsWanted {
    pub(crate) job: Option<JobId>,
    pub(crate) state: Option<RunState>,
    /// Only those that have not ended, or only those that have.
    pub(crate) active: Option<bool>,
    pub(crate) domain: Option<Domain>,
    /// Only those that were due before this.
    pub(crate) before: Option<Timestamp>,
    pub(crate) limit: usize,
}

impl RunsWanted {
    fn takes(&self, run: &Run, sights: &Sights) -> bool {
        self.job.as_ref().is_none_or(|job| run.run_id.job() == job.as_str())
            && self.state.is_none_or(|state| sights.state_of(run) == state)
            && self.active.is_none_or(|active| run.state.is_final() != active)
            && self.domain.as_ref().is_none_or(|domain| run.domain == *domain)
            && self.before.is_none_or(|before| run.due_at < before)
    }

    /// The fewest that an index knows to hold all that is asked for.
    fn among<'a>(&'a self, records: &'a Records) -> Box<dyn Iterator<Item = &'a Run> + 'a> {
        let active = self.active == Some(true) || self.state.is_some_and(|it| !it.is_final());
        match (&self.job, active, &self.domain) {
            (Some(job), true, _) => Box::new(records.active_runs_of(job)),
            (Some(job), false, _) => Box::new(records.runs_of(job)),
            (None, true, _) => Box::new(records.active_runs()),
            (None, false, Some(domain)) => Box::new(records.runs_in(domain)),
            (None, false, None) => Box::new(records.runs.values().map(AsRef::as_ref)),
        }
    }
}

/// Runs, the latest due first, of those that are `seen`.
pub(crate) fn runs(
    desk: &dyn Desk,
    wanted: &RunsWanted,
    seen: impl Fn(&Domain) -> bool,
) -> Vec<RunView> {
    let sights = desk.sights();
    // The earliest of those that are kept is on top: of very many, no more than are wanted are kept.
    let mut found: BinaryHeap<Reverse<(Timestamp, RunId)>> = BinaryHeap::new();
    let mut gather = |records: &Records| {
        for run in wanted.among(records) {
            let full = found.len() >= wanted.limit;
            let earlier = |Reverse((at, id)): &Reverse<(Timestamp, RunId)>| {
                (*at, id) < (run.due_at, &run.run_id)
            };
            if full && !found.peek().is_some_and(earlier) {
                continue;
            }
            if wanted.takes(run, &sights) && seen(&run.domain) {
                found.push(Reverse((run.due_at, run.run_id.clone())));
                if full {
                    found.pop();
                }
            }
        }
    };
    match &wanted.job {
        Some(job) => desk.look(job.as_str(), &mut gather),
        None => desk.look_at_all(&mut gather),
    }
    let found = found.into_sorted_vec();
    found.iter().filter_map(|Reverse((_, run_id))| run(desk, run_id)).collect()
}
