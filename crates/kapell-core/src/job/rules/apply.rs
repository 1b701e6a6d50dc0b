//! Jobs come, change and go.

use std::sync::Arc;

use super::{Step, no_job, shown};
use crate::board::{JobId, Record, RecordKey, Refusal, Reply};
use crate::job::definition::JobDefinition;
use crate::job::record::{Again, Definition, Job, PassReason};
use crate::job::request::SchedulerNews;
use crate::job::{due, validate};
use crate::run::RunId;
use crate::schedule::{Moments as _, Schedule};
use crate::seams::Timestamp;

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
        let last = self.draft.revisions(job_id).last().copied();
        let revision = last.unwrap_or(0).max(job.revision) + 1;
        if created {
            job.revision = revision;
        } else {
            job.revise(revision, self.now);
        }
        job.domain = definition.domain.clone();
        self.tell(SchedulerNews::Applied { job_id: job_id.clone() });
        let of = Definition { revision, definition: Arc::new(definition.clone()) };
        self.draft.put(Record::Definition(of));
        if created {
            // One that had its name may have been planned a few seconds ahead.
            let stands = self.draft.stands(&job);
            self.make_up_ahead(&mut job, definition, stands);
        } else {
            self.take_up(&mut job, former.as_deref(), definition);
        }
        self.drop_definitions(&job.job_id, job.revision);
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
            revised: Vec::new(),
            mark: former.as_ref().map_or(self.now, |job| job.mark.max(self.now)),
            again: None,
            paused: None,
            failures_in_a_row: 0,
            skip_next: 0,
            skips: Vec::new(),
            taken: Vec::new(),
            figures: std::collections::BTreeMap::new(),
            removed: false,
            cancels_runs: false,
            passed: Vec::new(),
            created_at: self.now,
            updated_at: self.now,
            version: former.map_or(0, |job| job.version),
        }
    }

    /// Another schedule begins now as well, and so does one that was suspended. Other calendars hold from now on.
    fn take_up(
        &mut self,
        job: &mut Job,
        former: Option<&JobDefinition>,
        definition: &JobDefinition,
    ) {
        let stands = self.draft.stands(job);
        let same_lines = |former: &JobDefinition| {
            former.schedule == definition.schedule && former.timezone == definition.timezone
        };
        let same_lines = former.is_some_and(same_lines);
        if !same_lines || former.is_some_and(|former| former.exclude != definition.exclude) {
            // What was planned by the former one stands elsewhere, and is refused.
            job.reach(stands.next());
            give_back(job, definition);
            self.make_up_ahead(job, definition, stands);
        }
        if !same_lines {
            job.reach(self.now);
        } else if let Some(former) = former.filter(|former| former.suspend && !definition.suspend) {
            self.pass_until_now(job, PassReason::Suspended { note: former.suspend_note.clone() });
        }
    }

    /// The former schedule was planned a few seconds ahead: moments of the new one until there get their runs now. Runs
    /// that were made for moments that it does not have will find that out when they are due.
    fn make_up_ahead(&mut self, job: &mut Job, definition: &JobDefinition, stands: Timestamp) {
        let is_ahead = stands > self.now && !due::is_far_ahead(stands, self.now);
        if !is_ahead || definition.suspend || job.paused.is_some() {
            return;
        }
        let Ok(schedule) = Schedule::of(definition) else { return };
        // It goes through these seconds again, past the moments that have runs.
        let resume = job.mark.max(stands);
        job.again = Some(Again { until: stands, resume });
        let has_run = |at| self.draft.run(&RunId::scheduled(&definition.job_id, at)).is_some();
        let times = (self.now, stands.since(self.now));
        let planned = due::plan_around(job, self.now, definition, &schedule, times, has_run);
        job.mark = self.now;
        // What does not fit into this commit is made by the scheduler, which plans the job next.
        if planned.runs.len() > self.room() {
            return;
        }
        for new in &planned.runs {
            self.make(job, new);
        }
        let to = if planned.next.is_some_and(|next| next <= stands) { planned.to } else { stands };
        job.count_passed(self.now, &planned.runs, planned.passed);
        job.reach(to);
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
    pub(super) fn drop_definitions(&mut self, job_id: &JobId, current: u64) {
        if !self.draft.has_revisions_besides(job_id, current) {
            return;
        }
        let mut old = self.draft.revisions(job_id);
        old.remove(&current);
        let is_needed = self.draft.needed_revisions(job_id);
        for revision in old {
            if !is_needed(revision) && self.room() > 0 {
                self.draft.delete(RecordKey::Definition(job_id.clone(), revision));
            }
        }
    }
}

/// An action that has passed over a run whose moment is none any more passes over another one instead.
fn give_back(job: &mut Job, definition: &JobDefinition) {
    let Ok(schedule) = Schedule::of(definition) else { return };
    let is_one = |at: &Timestamp| {
        let next = schedule.next_after(Timestamp(at.0.saturating_sub(1)));
        next.is_some_and(|next| next.at == *at && next.excluded.is_none())
    };
    let before = job.skips.len();
    job.skips.retain(is_one);
    let gone = u32::try_from(before - job.skips.len()).unwrap_or(u32::MAX);
    job.skip_next = job.skip_next.saturating_add(gone);
}
