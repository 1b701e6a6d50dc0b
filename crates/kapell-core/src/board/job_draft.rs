//! Jobs and runs as they would be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::draft::Draft;
use super::ids::JobId;
use super::job_index::{Outcome, Uses, ended};
use super::record::{Record, RecordKey};
use crate::job::{ActionId, Job, JobDefinition};
use crate::run::{Run, RunId};
use crate::seams::Timestamp;

impl Draft<'_> {
    pub fn job(&self, job: &JobId) -> Option<Job> {
        self.get(&RecordKey::Job(job.clone()))?.into_job().map(|job| *job)
    }

    pub fn definition(&self, job: &JobId, revision: u64) -> Option<Arc<JobDefinition>> {
        self.get(&RecordKey::Definition(job.clone(), revision))?.into_definition()
    }

    pub fn run(&self, run: &RunId) -> Option<Arc<Run>> {
        self.get(&RecordKey::Run(run.clone()))?.into_run()
    }

    /// The revision of a job that counts.
    pub(crate) fn revision(&self, job: &JobId) -> Option<u64> {
        match self.changed(&RecordKey::Job(job.clone())) {
            None => self.base.jobs.get(job).map(|job| job.revision),
            Some(to) => to.clone()?.into_job().map(|job| job.revision),
        }
    }

    /// Whether there may be other definitions of a job than this one. Most often there are none, and nothing to do.
    pub(crate) fn has_revisions_besides(&self, job: &JobId, current: u64) -> bool {
        let whole = (job.clone(), 0)..=(job.clone(), u64::MAX);
        let at = |revision| RecordKey::Definition(job.clone(), revision);
        let kept = at(current);
        self.base.definitions.range(whole).any(|((_, revision), _)| *revision != current)
            || self.changes_in(at(0)..=at(u64::MAX)).any(|(key, _)| *key != kept)
    }

    /// The revisions that are there of a job, lowest first.
    pub(crate) fn revisions(&self, job: &JobId) -> BTreeSet<u64> {
        let whole = (job.clone(), 0)..=(job.clone(), u64::MAX);
        let mut found: BTreeSet<u64> =
            self.base.definitions.range(whole).map(|((_, it), _)| *it).collect();
        let at = |revision| RecordKey::Definition(job.clone(), revision);
        for (key, to) in self.changes_in(at(0)..=at(u64::MAX)) {
            let RecordKey::Definition(_, revision) = key else { continue };
            if to.is_some() {
                found.insert(*revision)
            } else {
                found.remove(revision)
            };
        }
        found
    }

    /// How many messages of a job wait to be sent.
    pub(crate) fn count_messages(&self, job: &JobId) -> usize {
        let ends = [ActionId(0), ActionId(u128::MAX)].map(|id| (job.clone(), id));
        let [first, last] = ends;
        let mut ids: BTreeSet<ActionId> =
            self.base.messages.range(first..=last).map(|((_, id), _)| *id).collect();
        let at = |id| RecordKey::Message(job.clone(), ActionId(id));
        for (key, to) in self.changes_in(at(0)..=at(u128::MAX)) {
            let RecordKey::Message(_, id) = key else { continue };
            if to.is_some() {
                ids.insert(*id)
            } else {
                ids.remove(id)
            };
        }
        ids.len()
    }

    /// What runs of a job become, and what they are by what is committed.
    fn changed_runs(&self, job: &JobId) -> BTreeMap<&RunId, Option<&Arc<Run>>> {
        let (before, behind) = RunId::bounds(job.as_str());
        let all = RecordKey::Run(before)..=RecordKey::Run(behind);
        let mut found = BTreeMap::new();
        for (key, to) in self.changes_in(all) {
            if let RecordKey::Run(run) = key {
                found.insert(run, as_run(to.as_ref()));
            }
        }
        found
    }

    /// Up to where the moments of a job were dealt with. Whoever forgets the newest run writes its moment into the mark.
    pub(crate) fn stands(&self, job: &Job) -> Timestamp {
        if job.again.is_some() {
            return job.mark;
        }
        let changed = self.changed_runs(&job.job_id).into_values().flatten();
        let made = changed.filter(|run| run.trigger.is_of_schedule()).map(|run| run.scheduled_at);
        made.fold(self.base.stands(job), Timestamp::max)
    }

    /// How many active runs go by each revision.
    pub(super) fn uses(&self, job: &JobId) -> BTreeMap<u64, Uses> {
        let known = self.base.of_job(job).into_iter().flat_map(|of_job| &of_job.uses);
        let mut uses: BTreeMap<u64, Uses> = known.copied().collect();
        for (id, after) in self.changed_runs(job) {
            let before = self.base.runs.get(id);
            for (run, is) in [(before, false), (after, true)] {
                if let Some(run) = run.filter(|run| !run.state.is_final()) {
                    uses.entry(run.revision).or_default().count(run, is);
                }
            }
        }
        uses.retain(|_, uses| uses.active > 0);
        uses
    }

    /// Whether a definition is one that some run goes by, or may come to go by: what waits for its time takes the latest.
    pub(crate) fn needed_revisions(&self, job: &JobId) -> impl Fn(u64) -> bool + use<> {
        let uses = self.uses(job);
        let first_waiting =
            uses.iter().find(|(_, uses)| uses.waiting > 0).map(|(revision, _)| *revision);
        move |revision| {
            uses.contains_key(&revision) || first_waiting.is_some_and(|first| first <= revision)
        }
    }

    pub(crate) fn has_active_runs(&self, job: &JobId) -> bool {
        !self.uses(job).is_empty()
    }

    /// Some of the active runs of a job, the oldest moments first.
    pub(crate) fn some_active(
        &self,
        job: &JobId,
        most: usize,
        is_meant: impl Fn(&Run) -> bool,
    ) -> Vec<Run> {
        let changed = self.changed_runs(job);
        let is_meant = |run: &&Run| !run.state.is_final() && is_meant(run);
        let stands = self.base.active_runs_of(job).filter(|run| !changed.contains_key(&run.run_id));
        let mut found: Vec<Run> = stands.filter(is_meant).take(most).cloned().collect();
        let more = changed.into_values().flatten().map(AsRef::as_ref).filter(is_meant);
        found.extend(more.take(most).cloned());
        found.sort_by(|one, other| one.run_id.cmp(&other.run_id));
        found.truncate(most);
        found
    }

    /// How many ended runs there are of an outcome, and some of them, the first to end first.
    pub(crate) fn ended_runs(
        &self,
        job: &JobId,
        outcome: Outcome,
        most: usize,
    ) -> (usize, Vec<(Timestamp, RunId)>) {
        let changed = self.changed_runs(job);
        let known = self.base.of_job(job).map(|of_job| of_job.ended(outcome));
        let is_of = |run: &&Arc<Run>| Outcome::of(run) == Some(outcome);
        let gone = changed
            .keys()
            .filter(|id| self.base.runs.get(*id).is_some_and(|run| is_of(&run)))
            .count();
        let new: BTreeSet<(Timestamp, RunId)> =
            changed.values().flatten().copied().filter(is_of).map(|run| ended(run)).collect();
        let count = known.map_or(0, BTreeSet::len) - gone + new.len();
        let stands = known.into_iter().flatten().filter(|(_, id)| !changed.contains_key(id));
        let mut first: Vec<(Timestamp, RunId)> = stands.take(most).cloned().collect();
        first.extend(new.into_iter().take(most));
        first.sort();
        first.truncate(most);
        (count, first)
    }
}

fn as_run(record: Option<&Record>) -> Option<&Arc<Run>> {
    match record? {
        Record::Run(run) => Some(run),
        Record::Desired(_)
        | Record::Actual(_)
        | Record::Task(_)
        | Record::Domain(_)
        | Record::Job(_)
        | Record::Definition(_)
        | Record::Message(_) => None,
    }
}
