//! Jobs and runs as people and programs see them.

use std::sync::Arc;

use kapell_api::v1::{JobView, RunBrief, RunView};
use kapell_core::board::{Domain, JobId, Records};
use kapell_core::job::explain::{JobFacts, next_run};
use kapell_core::job::{Job, JobDefinition};
use kapell_core::run::{Run, RunId, RunState};
use kapell_core::schedule::{Moments as _, Schedule};
use kapell_core::seams::Timestamp;

use super::super::desk::{Desk, look};

/// What the board has of a job, taken from it at once; the rest is worked out when nobody waits for the board.
struct Found {
    job: Job,
    definition: Arc<JobDefinition>,
    stands: Timestamp,
    active: Vec<Run>,
    last: Option<RunBrief>,
}

impl Found {
    fn of(records: &Records, job_id: &JobId) -> Option<Self> {
        let (job, definition) = records.job(job_id)?;
        let begun = |run: &&Run| run.state != RunState::PreRun;
        Some(Self {
            job: job.clone(),
            definition: Arc::clone(definition),
            stands: records.stands(job),
            active: records.active_runs_of(job_id).cloned().collect(),
            last: records
                .runs_of(job_id)
                .filter(begun)
                .max_by_key(|run| run.due_at)
                .map(RunBrief::of),
        })
    }

    fn view(self, now: Timestamp) -> JobView {
        let runs: Vec<&Run> = self.active.iter().collect();
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
            active_runs: u32::try_from(self.active.len()).unwrap_or(u32::MAX),
            last_run: self.last,
            definition: (*self.definition).clone(),
            job: self.job,
        }
    }
}

/// A job as it stands.
pub(crate) fn job(desk: &dyn Desk, job_id: &JobId, now: Timestamp) -> Option<JobView> {
    let found = look(desk, job_id.as_str(), |records| Found::of(records, job_id)).flatten();
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
    RunView { run: run.clone(), job_id, timezone }
}

pub(crate) fn run(desk: &dyn Desk, run_id: &RunId) -> Option<RunView> {
    let of = |records: &Records| records.runs.get(run_id).map(|run| run_view(records, run));
    look(desk, run_id.job(), of).flatten()
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
    fn takes(&self, run: &Run) -> bool {
        self.job.as_ref().is_none_or(|job| run.run_id.job() == job.as_str())
            && self.state.is_none_or(|state| run.state == state)
            && self.active.is_none_or(|active| run.state.is_final() != active)
            && self.domain.as_ref().is_none_or(|domain| run.domain == *domain)
            && self.before.is_none_or(|before| run.due_at < before)
    }

    /// The fewest that an index knows to hold all that is asked for.
    fn among<'a>(&'a self, records: &'a Records) -> Box<dyn Iterator<Item = &'a Run> + 'a> {
        match (&self.job, self.active, &self.domain) {
            (Some(job), Some(true), _) => Box::new(records.active_runs_of(job)),
            (Some(job), _, _) => Box::new(records.runs_of(job)),
            (None, Some(true), _) => Box::new(records.active_runs()),
            (None, _, Some(domain)) => Box::new(records.runs_in(domain)),
            (None, _, None) => Box::new(records.runs.values().map(AsRef::as_ref)),
        }
    }
}

/// Runs, the latest due first, of those that are `seen`.
pub(crate) fn runs(
    desk: &dyn Desk,
    wanted: &RunsWanted,
    seen: impl Fn(&Domain) -> bool,
) -> Vec<RunView> {
    let mut found: Vec<(Timestamp, RunId)> = Vec::new();
    let mut gather = |records: &Records| {
        let fits = wanted.among(records).filter(|run| wanted.takes(run) && seen(&run.domain));
        found.extend(fits.map(|run| (run.due_at, run.run_id.clone())));
    };
    match &wanted.job {
        Some(job) => desk.look(job.as_str(), &mut gather),
        None => desk.look_at_all(&mut gather),
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.truncate(wanted.limit);
    found.iter().filter_map(|(_, run_id)| run(desk, run_id)).collect()
}
