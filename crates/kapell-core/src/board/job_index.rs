//! Where runs are found other than by their ids.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::JobId;
use super::index::Index;
use crate::job::Job;
use crate::run::{Ending, Run, RunId, RunState};
use crate::seams::Timestamp;

/// Follows every change of jobs and runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct JobIndex {
    /// All that have not ended.
    pub(super) active: BTreeSet<RunId>,
    pub(super) jobs: BTreeMap<JobId, OfJob>,
}

/// What is known of the runs of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OfJob {
    pub(super) runs: usize,
    /// The latest moment that a run was made for by the schedule.
    pub(super) newest: Option<Timestamp>,
    /// By revision, lowest first: few at a time.
    pub(super) uses: Vec<(u64, Uses)>,
    /// Ended runs, the first to end first.
    pub(super) succeeded: BTreeSet<(Timestamp, RunId)>,
    pub(super) failed: BTreeSet<(Timestamp, RunId)>,
    pub(super) skipped: BTreeSet<(Timestamp, RunId)>,
}

/// How many active runs go by a revision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) active: usize,
    /// Of those, how many wait for their time: a later revision may still reach them.
    pub(super) waiting: usize,
}

/// How an ended run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
    /// It ended well without having done anything.
    Skipped,
}

impl Outcome {
    pub(crate) const ALL: [Self; 3] = [Self::Succeeded, Self::Failed, Self::Skipped];

    /// Of a run that has ended.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        match run.state.ending() {
            Some(Ending::Completed) if run.skipped => Some(Self::Skipped),
            Some(Ending::Completed) => Some(Self::Succeeded),
            Some(Ending::Failed | Ending::Cancelled | Ending::Orphaned) => Some(Self::Failed),
            None => None,
        }
    }
}

/// When a run ended, and which: what is forgotten first comes first.
pub(crate) fn ended(run: &Run) -> (Timestamp, RunId) {
    (run.completed_at.unwrap_or(run.created_at), run.run_id.clone())
}

impl OfJob {
    pub(super) const fn ended(&self, outcome: Outcome) -> &BTreeSet<(Timestamp, RunId)> {
        match outcome {
            Outcome::Succeeded => &self.succeeded,
            Outcome::Failed => &self.failed,
            Outcome::Skipped => &self.skipped,
        }
    }

    fn put(&mut self, run: &Run, is: bool) {
        self.runs = if is { self.runs + 1 } else { self.runs.saturating_sub(1) };
        let Some(outcome) = Outcome::of(run) else {
            self.use_revision(run, is);
            return;
        };
        let set = match outcome {
            Outcome::Succeeded => &mut self.succeeded,
            Outcome::Failed => &mut self.failed,
            Outcome::Skipped => &mut self.skipped,
        };
        if is {
            set.insert(ended(run));
        } else {
            set.remove(&ended(run));
        }
    }

    fn use_revision(&mut self, run: &Run, is: bool) {
        let place = match self.uses.binary_search_by_key(&run.revision, |(revision, _)| *revision) {
            Ok(place) => place,
            Err(place) => {
                self.uses.reserve_exact(1);
                self.uses.insert(place, (run.revision, Uses::default()));
                place
            }
        };
        let uses = &mut self.uses[place].1;
        uses.count(run, is);
        if *uses == Uses::default() {
            self.uses.remove(place);
        }
    }
}

impl Uses {
    pub(super) fn count(&mut self, run: &Run, is: bool) {
        let waits = usize::from(run.state == RunState::PreRun);
        if is {
            self.active += 1;
            self.waiting += waits;
        } else {
            self.active = self.active.saturating_sub(1);
            self.waiting = self.waiting.saturating_sub(waits);
        }
    }
}

/// Whether both are under way in the same domain.
fn is_within(one: &Run, other: &Run) -> bool {
    !one.state.is_final() && !other.state.is_final() && one.domain == other.domain
}

/// Whether both are found in the same places.
fn stands_alike(one: &Run, other: &Run) -> bool {
    let waits = |run: &Run| run.state == RunState::PreRun;
    is_within(one, other) && waits(one) == waits(other) && one.revision == other.revision
}

impl Index {
    pub(super) fn job(&mut self, before: Option<&Job>, after: Option<&Job>) {
        let Some(job) = after.or(before) else { return };
        self.move_job(&job.job_id, before.map(|job| &job.domain), after.map(|job| &job.domain));
    }

    /// Who takes a run away whose moment was the newest says afterwards which one is now.
    pub(super) fn run(&mut self, before: Option<&Run>, after: Option<&Run>) {
        let Some(run) = after.or(before) else { return };
        if before.zip(after).is_some_and(|(before, after)| stands_alike(before, after)) {
            return;
        }
        if let (Some(before), Some(after)) = (before, after)
            && is_within(before, after)
            && let Some(of_job) = self.jobs.jobs.get_mut(run.run_id.job())
        {
            of_job.use_revision(before, false);
            of_job.use_revision(after, true);
            return;
        }
        let job = run.run_id.job_id();
        let job = self.jobs.jobs.get_key_value(&job).map_or(job, |(known, _)| known.clone());
        self.move_job(&job, before.map(|run| &run.domain), after.map(|run| &run.domain));
        let of_job = self.jobs.jobs.entry(job.clone()).or_default();
        for (run, is) in [(before, false), (after, true)] {
            let Some(run) = run else { continue };
            of_job.put(run, is);
            if is && run.trigger.is_of_schedule() {
                of_job.newest = of_job.newest.max(Some(run.scheduled_at));
            }
        }
        if of_job.runs == 0 {
            self.jobs.jobs.remove(&job);
        }
        let is_active = |run: Option<&Run>| run.is_some_and(|run| !run.state.is_final());
        if is_active(after) {
            if !is_active(before) {
                self.jobs.active.insert(run.run_id.clone());
            }
        } else {
            self.jobs.active.remove(&run.run_id);
        }
    }
}
