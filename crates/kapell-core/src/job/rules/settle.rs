//! What is not kept goes.

use std::sync::Arc;

use super::Step;
use crate::board::job_index::Outcome;
use crate::board::{Effect, JobId, Record, RecordKey, Refusal, Reply, Request};
use crate::job::definition::History;
use crate::job::record::Job;
use crate::job::request::{JobRequest, SchedulerNews};
use crate::planted::Flaw;
use crate::run::{RunId, RunState, StopKind};

/// How many of the oldest runs are looked at for those that may be forgotten.
const LOOKED_AT: usize = 1024;

impl Step<'_, '_> {
    pub(super) fn settle(&mut self, job_id: &JobId) -> Reply {
        if let Some(job) = self.draft.job(job_id) {
            self.clear_up(job, false);
        }
        Reply::Done
    }

    pub(super) fn forget(&mut self, run_ids: &[RunId]) -> Result<Reply, Refusal> {
        let Some(first) = run_ids.first() else { return Ok(Reply::Done) };
        let job_id = first.job_id();
        if let Some(stray) = run_ids.iter().find(|run| run.job() != first.job()) {
            let problems = vec![format!("run `{stray}` is not one of job `{job_id}`")];
            return Err(Refusal::Invalid { problems });
        }
        let Some(mut job) = self.draft.job(&job_id) else {
            self.forget_jobless(run_ids);
            return Ok(Reply::Done);
        };
        let (over, _) = self.over(&job, LOOKED_AT);
        let mark = job.mark;
        for run in run_ids.iter().filter(|run| over.contains(*run)) {
            if self.room() > 0 {
                self.drop_run(&mut job, run);
            }
        }
        if job.mark != mark {
            self.put(job);
        }
        Ok(Reply::Done)
    }

    /// Of a job that could not be read.
    fn forget_jobless(&mut self, run_ids: &[RunId]) {
        for run in run_ids {
            let has_ended = self.draft.run(run).is_some_and(|run| run.state.is_final());
            if has_ended && self.room() > 0 {
                self.draft.delete(RecordKey::Run(run.clone()));
            }
        }
    }

    /// Writes a job if it has changed, and lets go of all that is not needed any more, as much as fits.
    pub(super) fn clear_up(&mut self, mut job: Job, mut changed: bool) {
        if job.removed {
            if changed {
                job = self.put(job);
            }
            self.clear(&job);
            return;
        }
        let mark = job.mark;
        let (over, more) = self.over(&job, self.room());
        for run in &over {
            self.drop_run(&mut job, run);
        }
        changed |= job.mark != mark;
        self.drop_definitions(&job.job_id, job.revision);
        if changed {
            job = self.put(job);
        }
        if more {
            self.go_on(&job.job_id);
        }
    }

    /// Ended runs that the history of a job does not keep, and whether there are more than were asked for.
    fn over(&self, job: &Job, most: usize) -> (Vec<RunId>, bool) {
        let history =
            self.definition(job).map_or_else(History::default, |definition| definition.history);
        let old = history.max_age.map(|age| self.now.before(age.get()));
        let mut found = Vec::new();
        for outcome in Outcome::ALL {
            let kept = match outcome {
                Outcome::Succeeded => history.succeeded,
                Outcome::Failed => history.failed,
                Outcome::Skipped => history.skipped,
            };
            let (count, first) = self.draft.ended_runs(&job.job_id, outcome, most + 1);
            let excess = count.saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX));
            let goes = first
                .into_iter()
                .enumerate()
                .take_while(|(at, (ended, _))| *at < excess || old.is_some_and(|old| *ended < old));
            found.extend(goes.map(|(_, (_, run))| run));
        }
        let more = found.len() > most;
        found.truncate(most);
        (found, more)
    }

    /// Forgets a run; if its moment is where the job stands, the job says so from now on.
    fn drop_run(&mut self, job: &mut Job, run_id: &RunId) {
        let Some(run) = self.draft.run(run_id) else { return };
        let forgets = self.planted.has(Flaw::MomentForgotten);
        let is_newest = run.trigger.is_of_schedule() && run.scheduled_at >= self.draft.stands(job);
        // One that was taken back stands by its mark alone.
        if is_newest && job.again.is_none() && !forgets {
            job.mark = job.mark.max(run.scheduled_at);
        }
        self.draft.delete(RecordKey::Run(run_id.clone()));
    }

    /// Of a removed job: what waits is cancelled; when nothing is under way any more, all of it goes.
    pub(super) fn clear(&mut self, job: &Job) {
        let all = job.cancels_runs;
        let most = self.room();
        let wanted = self.draft.some_active(&job.job_id, most, |run| {
            run.cancel.is_none() && (all || run.state == RunState::PreRun)
        });
        let more = wanted.len() == most;
        for mut run in wanted {
            "its job was deleted".clone_into(&mut run.reason);
            let (kind, why) = (StopKind::Graceful, run.reason.clone());
            run.cancel = Some(kind);
            run.version += 1;
            self.tell(SchedulerNews::CancelWanted { run_id: run.run_id.clone(), kind, why });
            self.draft.put(Record::Run(Arc::new(run)));
        }
        if more {
            self.go_on(&job.job_id);
        } else if !self.draft.has_active_runs(&job.job_id) {
            self.dissolve(job);
        }
    }

    fn dissolve(&mut self, job: &Job) {
        let job_id = &job.job_id;
        for outcome in Outcome::ALL {
            for (_, run) in self.draft.ended_runs(job_id, outcome, self.room()).1 {
                self.draft.delete(RecordKey::Run(run));
            }
        }
        for revision in self.draft.revisions(job_id) {
            if self.room() > 0 {
                self.draft.delete(RecordKey::Definition(job_id.clone(), revision));
            }
        }
        let left = |outcome| self.draft.ended_runs(job_id, outcome, 0).0;
        if Outcome::ALL.into_iter().map(left).sum::<usize>() == 0
            && self.draft.revisions(job_id).is_empty()
        {
            self.draft.delete(RecordKey::Job(job_id.clone()));
            self.tell(SchedulerNews::Gone { job_id: job_id.clone() });
        } else {
            self.go_on(job_id);
        }
    }

    /// The rest is another request.
    fn go_on(&mut self, job_id: &JobId) {
        let rest = JobRequest::Settle { job_id: job_id.clone() };
        self.effects.push(Effect::Next(Request::Job(rest)));
    }
}
