//! The jobs and runs of a shard.

use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use super::ids::{Domain, JobId};
use super::job_index::OfJob;
use super::records::Records;
use crate::job::{Definition, Job, JobDefinition};
use crate::run::{Run, RunId};
use crate::seams::Timestamp;

/// What is asked about them.
impl Records {
    /// What a job is by one of its revisions.
    pub fn definition(&self, job: &JobId, revision: u64) -> Option<&Arc<JobDefinition>> {
        self.definitions.get(&(job.clone(), revision))
    }

    /// A job and what it is by the revision that counts.
    pub fn job(&self, job: &JobId) -> Option<(&Job, &Arc<JobDefinition>)> {
        let job = self.jobs.get(job)?;
        Some((job, self.definition(&job.job_id, job.revision)?))
    }

    /// All runs of a job, the oldest moment first.
    pub fn runs_of(&self, job: &JobId) -> impl DoubleEndedIterator<Item = &Run> {
        let (before, behind) = RunId::bounds(job.as_str());
        let runs = self.runs.range::<RunId, _>((Bound::Excluded(before), Bound::Excluded(behind)));
        runs.map(|(_, run)| run.as_ref())
    }

    /// All runs that have not ended.
    pub fn active_runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.index.jobs.active.iter().filter_map(|run| self.runs.get(run)).map(AsRef::as_ref)
    }

    pub fn count_active_runs(&self) -> usize {
        self.index.jobs.active.len()
    }

    /// The runs of a job that have not ended, the oldest moment first.
    pub fn active_runs_of(&self, job: &JobId) -> impl DoubleEndedIterator<Item = &Run> {
        let (before, behind) = RunId::bounds(job.as_str());
        let range = (Bound::Excluded(before), Bound::Excluded(behind));
        let active = self.index.jobs.active.range::<RunId, _>(range);
        active.filter_map(|run| self.runs.get(run)).map(AsRef::as_ref)
    }

    pub fn jobs_in(&self, domain: &Domain) -> impl Iterator<Item = &Job> {
        let jobs = self.names_in(domain).filter_map(|job| self.jobs.get(job));
        jobs.filter(move |job| job.domain == *domain)
    }

    pub fn runs_in(&self, domain: &Domain) -> impl Iterator<Item = &Run> {
        let runs = self.names_in(domain).flat_map(|job| self.runs_of(job));
        runs.filter(move |run| run.domain == *domain)
    }

    fn names_in(&self, domain: &Domain) -> impl Iterator<Item = &JobId> {
        self.index.in_domain(domain).into_iter().flat_map(|within| within.jobs.keys())
    }

    /// Up to where the moments of a job were dealt with: its mark, or the newest run that its schedule has made.
    pub fn stands(&self, job: &Job) -> Timestamp {
        if job.again.is_some() {
            return job.mark;
        }
        let newest = self.of_job(&job.job_id).and_then(|of_job| of_job.newest);
        newest.map_or(job.mark, |newest| newest.max(job.mark))
    }

    pub(super) fn of_job(&self, job: &JobId) -> Option<&OfJob> {
        self.index.jobs.jobs.get(job)
    }
}

/// How they change.
impl Records {
    pub(super) fn put_job(&mut self, mut job: Job) -> Option<Job> {
        self.index.shared_domain(&mut job.domain);
        let id = job.job_id.clone();
        let before = self.jobs.0.insert(id.clone(), job);
        self.index.job(before.as_ref(), self.jobs.get(&id));
        before
    }

    pub(super) fn remove_job(&mut self, job: &JobId) -> Option<Job> {
        let before = self.jobs.0.remove(job);
        self.index.job(before.as_ref(), None);
        before
    }

    pub(super) fn put_definition(&mut self, new: Definition) -> Option<Definition> {
        let Definition { revision, definition } = new;
        let before = self.definitions.0.insert((definition.job_id.clone(), revision), definition);
        before.map(|definition| Definition { revision, definition })
    }

    pub(super) fn remove_definition(&mut self, job: &JobId, revision: u64) -> Option<Definition> {
        let before = self.definitions.0.remove(&(job.clone(), revision));
        before.map(|definition| Definition { revision, definition })
    }

    /// What was made from what is here shares its names with it; what others hold already is not made anew for that.
    pub(super) fn put_run(&mut self, mut run: Arc<Run>) -> Option<Arc<Run>> {
        let there = self.runs.0.entry(run.run_id.clone());
        if let Some(run) = Arc::get_mut(&mut run) {
            self.index.shared_domain(&mut run.domain);
            run.timeline.shrink_to_fit();
            run.run_id = there.key().clone();
        }
        let after = Arc::clone(&run);
        let before = match there {
            Entry::Occupied(mut there) => Some(there.insert(run)),
            Entry::Vacant(free) => {
                free.insert(run);
                None
            }
        };
        self.index.run(before.as_deref(), Some(&after));
        before
    }

    pub(super) fn remove_run(&mut self, run: &RunId) -> Option<Arc<Run>> {
        let before = self.runs.0.remove(run);
        self.index.run(before.as_deref(), None);
        if let Some(before) = before.as_ref().filter(|run| run.trigger.is_of_schedule()) {
            self.find_newest(before);
        }
        before
    }

    /// Most often what goes is the oldest, and there is nothing to look for.
    fn find_newest(&mut self, gone: &Run) {
        let job = gone.run_id.job_id();
        if self.of_job(&job).is_none_or(|of_job| of_job.newest != Some(gone.scheduled_at)) {
            return;
        }
        let scheduled = self.runs_of(&job).filter(|run| run.trigger.is_of_schedule());
        let newest = scheduled.map(|run| run.scheduled_at).max();
        if let Some(of_job) = self.index.jobs.jobs.get_mut(&job) {
            of_job.newest = newest;
        }
    }
}
