//! Jobs come, change and go.

use std::sync::Arc;

use super::{Step, no_job, shown};
use crate::board::{JobId, Record, RecordKey, Refusal, Reply};
use crate::job::definition::JobDefinition;
use crate::job::record::{Definition, Job, PassReason};
use crate::job::request::SchedulerNews;
use crate::job::validate;

impl Step<'_, '_> {
    pub(super) fn apply(&mut self, definition: &JobDefinition) -> Result<Reply, Refusal> {
        let problems = validate::job(definition);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        let job_id = &definition.job_id;
        let known = self.draft.job(job_id);
        let former = known.as_ref().and_then(|job| self.definition(job));
        let stands = known.filter(|job| !job.removed);
        if let Some(job) = &stands
            && former.as_deref() == Some(definition)
        {
            return Ok(shown(job.clone()));
        }
        let created = stands.is_none();
        let mut job = stands.unwrap_or_else(|| self.new_job(definition));
        if !created {
            self.take_up(&mut job, former.as_deref(), definition);
        }
        let last = self.draft.revisions(job_id).last().copied();
        job.revision = last.unwrap_or(0).max(job.revision) + 1;
        job.domain = definition.domain.clone();
        let of = Definition { revision: job.revision, definition: Arc::new(definition.clone()) };
        self.draft.put(Record::Definition(of));
        self.drop_definitions(&job);
        self.tell(SchedulerNews::Applied { job_id: job_id.clone() });
        let job = self.put(job);
        Ok(Reply::Job { job: Box::new(job), created })
    }

    /// It begins now: earlier moments are not missed. Runs of one that had its name are dealt with as its own.
    fn new_job(&self, definition: &JobDefinition) -> Job {
        let former = self.draft.job(&definition.job_id);
        Job {
            job_id: definition.job_id.clone(),
            domain: definition.domain.clone(),
            revision: former.as_ref().map_or(0, |job| job.revision),
            mark: former.as_ref().map_or(self.now, |job| job.mark.max(self.now)),
            again: None,
            paused: None,
            failures_in_a_row: 0,
            skip_next: 0,
            removed: false,
            cancels_runs: false,
            passed: Vec::new(),
            created_at: self.now,
            updated_at: self.now,
            version: former.map_or(0, |job| job.version),
        }
    }

    /// Another schedule begins now as well, and so does one that was suspended.
    fn take_up(&self, job: &mut Job, former: Option<&JobDefinition>, definition: &JobDefinition) {
        let same = |former: &JobDefinition| {
            former.schedule == definition.schedule && former.timezone == definition.timezone
        };
        if !former.is_some_and(same) {
            // What was planned by the former one stands elsewhere, and is refused.
            job.reach(self.now.max(self.draft.stands(job).next()));
        } else if let Some(former) = former.filter(|former| former.suspend && !definition.suspend) {
            self.pass_until_now(job, PassReason::Suspended { note: former.suspend_note.clone() });
        }
    }

    pub(super) fn remove(&mut self, job_id: &JobId, cancel_runs: bool) -> Result<Reply, Refusal> {
        let mut job = self.draft.job(job_id).ok_or_else(|| no_job(job_id))?;
        if !job.removed || (cancel_runs && !job.cancels_runs) {
            job.removed = true;
            job.cancels_runs |= cancel_runs;
            job = self.put(job);
            self.tell(SchedulerNews::Removed { job_id: job_id.clone() });
        }
        self.clear(&job);
        Ok(shown(job))
    }

    /// Drops definitions that no run needs.
    pub(super) fn drop_definitions(&mut self, job: &Job) {
        let is_needed = self.draft.needed_revisions(&job.job_id);
        for revision in self.draft.revisions(&job.job_id) {
            if revision != job.revision && !is_needed(revision) && self.room() > 0 {
                self.draft.delete(RecordKey::Definition(job.job_id.clone(), revision));
            }
        }
    }
}
