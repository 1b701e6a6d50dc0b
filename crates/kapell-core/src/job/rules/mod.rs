//! What each request about jobs and runs changes.

mod advance;
mod apply;
mod post;
mod settle;
mod update;

use std::sync::Arc;

use super::definition::JobDefinition;
use super::figure::Figure;
use super::record::{ActionId, Job, MOST_FIGURES, PassReason, Passed, Pause, PauseCause};
use super::request::{JobRequest, SchedulerNews};
use crate::board::request::MOST_RECORDS;
use crate::board::{Draft, Effect, JobId, Record, Refusal, Reply};
use crate::planted::{Flaw, Planted};
use crate::run::{Run, RunId, RunState, StopKind, Trigger};
use crate::seams::Timestamp;

/// Decides one request; its changes are in the draft. A refusal leaves the draft as it was.
pub(crate) fn decide(
    draft: &mut Draft<'_>,
    request: &JobRequest,
    now: Timestamp,
    planted: Planted,
) -> Result<(Reply, Vec<Effect>), Refusal> {
    let mut step = Step { draft, now, planted, effects: Vec::new() };
    let reply = step.take(request)?;
    Ok((reply, step.effects))
}

/// One request in the making.
struct Step<'d, 'a> {
    draft: &'d mut Draft<'a>,
    now: Timestamp,
    planted: Planted,
    effects: Vec<Effect>,
}

impl Step<'_, '_> {
    fn take(&mut self, request: &JobRequest) -> Result<Reply, Refusal> {
        match request {
            JobRequest::Apply { definition } => self.apply(definition),
            JobRequest::Remove { job_id, cancel_runs } => self.remove(job_id, *cancel_runs),
            JobRequest::Pause { job_id, cause, note } => self.pause(job_id, cause, note),
            JobRequest::Resume { job_id } => self.resume(job_id),
            JobRequest::Advance { job_id, from, to, runs, passed } => {
                self.advance(job_id, (*from, *to), runs, passed)
            }
            JobRequest::TakeBack { job_id, from, to } => self.take_back(job_id, *from, *to),
            JobRequest::Trigger { job_id, run } => self.trigger(job_id, run),
            JobRequest::Update { run_id, update } => self.update(run_id, update),
            JobRequest::Cancel { run_id, kind, why } => self.cancel(run_id, *kind, why),
            JobRequest::SkipNext { job_id, action, count } => {
                self.skip_next(job_id, *action, *count)
            }
            JobRequest::Figure { job_id, action, metric, figure } => {
                self.figure(job_id, *action, metric, *figure)
            }
            JobRequest::Post { message } => self.post(message),
            JobRequest::Posted { job_id, id } => Ok(self.posted(job_id, *id)),
            JobRequest::Forget { run_ids } => self.forget(run_ids),
            JobRequest::Settle { job_id } => Ok(self.settle(job_id)),
        }
    }

    fn pause(&mut self, job_id: &JobId, cause: &PauseCause, note: &str) -> Result<Reply, Refusal> {
        let mut job = self.lasting(job_id)?;
        let paused =
            Pause { at: self.now, cause: cause.clone(), note: crate::board::text::reason(note) };
        let is_so = |stands: &Pause| stands.cause == paused.cause && stands.note == paused.note;
        if job.paused.as_ref().is_some_and(is_so) {
            return Ok(shown(job));
        }
        let at = job.paused.as_ref().map_or(self.now, |stands| stands.at);
        job.paused = Some(Pause { at, ..paused });
        self.tell(SchedulerNews::Paused { job_id: job_id.clone(), cause: cause.clone() });
        Ok(shown(self.put(job)))
    }

    fn resume(&mut self, job_id: &JobId) -> Result<Reply, Refusal> {
        let mut job = self.lasting(job_id)?;
        let Some(pause) = job.paused.take() else { return Ok(shown(job)) };
        job.failures_in_a_row = 0;
        self.pass_until_now(&mut job, PassReason::Paused { note: pause.note });
        self.tell(SchedulerNews::Resumed { job_id: job_id.clone() });
        Ok(shown(self.put(job)))
    }

    fn skip_next(
        &mut self,
        job_id: &JobId,
        action: ActionId,
        count: u32,
    ) -> Result<Reply, Refusal> {
        let mut job = self.lasting(job_id)?;
        if count == 0 || !job.counts(action) {
            return Ok(shown(job));
        }
        // Those come first that were made ahead of their time.
        let waits = |run: &Run| {
            let is_to_come = run.state == RunState::PreRun && run.due_at > self.now;
            is_to_come
                && run.trigger == Trigger::Schedule
                && run.cancel.is_none()
                && !job.skips(run)
        };
        let most = usize::try_from(count).unwrap_or(usize::MAX);
        let made = self.draft.some_active(job_id, most, waits);
        let made: Vec<Timestamp> = made.iter().map(|run| run.scheduled_at).take(most).collect();
        let left = most - made.len();
        job.skips.extend(made);
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        job.skip_next = job.skip_next.saturating_add(left);
        self.tell(SchedulerNews::Skips { job_id: job_id.clone() });
        Ok(shown(self.put(job)))
    }

    /// A job on its way out still counts: its runs go on.
    fn figure(
        &mut self,
        job_id: &JobId,
        action: ActionId,
        metric: &str,
        figure: Figure,
    ) -> Result<Reply, Refusal> {
        let mut job = self.draft.job(job_id).ok_or_else(|| no_job(job_id))?;
        let stands = job.figures.get(metric).copied();
        if stands.is_none() && job.figures.len() >= MOST_FIGURES {
            let text = format!("job `{job_id}` has {MOST_FIGURES} figures already: use fewer");
            return Err(Refusal::State { text });
        }
        if !job.counts(action) {
            return Ok(shown(job));
        }
        job.figures.insert(metric.to_owned(), figure.after(stands));
        Ok(shown(self.put(job)))
    }

    fn cancel(&mut self, run_id: &RunId, kind: StopKind, why: &str) -> Result<Reply, Refusal> {
        let mut wanted = self.draft.run(run_id).ok_or_else(|| no_run(run_id))?;
        if wanted.state.is_final() {
            let text = format!(
                "run `{run_id}` cannot be cancelled: it has ended as {}",
                wanted.state.name()
            );
            return Err(Refusal::State { text });
        }
        // It may be told to hurry, but not to take its time after all.
        if wanted.cancel.is_none_or(|stands| stands < kind) {
            let run = Arc::make_mut(&mut wanted);
            run.cancel = Some(kind);
            run.reason = crate::board::text::reason(why);
            run.version += 1;
            let why = run.reason.clone();
            if !self.planted.has(Flaw::CancelUnstored) {
                self.draft.put(Record::Run(Arc::clone(&wanted)));
            }
            self.tell(SchedulerNews::CancelWanted { run_id: run_id.clone(), kind, why });
        }
        Ok(Reply::Run { run: wanted, created: false })
    }

    /// What would be due between where a job stands and now came to nothing: it was not looked at one by one.
    fn pass_until_now(&self, job: &mut Job, why: PassReason) {
        let stands = self.draft.stands(job);
        if stands < self.now {
            job.reach(self.now);
            job.pass(stands, &[], [Passed::new(stands.next(), self.now, 0, why)]);
        }
    }

    /// A job that is there, and not on its way out.
    fn lasting(&self, job_id: &JobId) -> Result<Job, Refusal> {
        let job = self.draft.job(job_id).ok_or_else(|| no_job(job_id))?;
        if job.removed {
            let text = format!(
                "job `{job_id}` is deleted and goes when its last run has ended: apply it again"
            );
            return Err(Refusal::State { text });
        }
        Ok(job)
    }

    /// By the revision that counts.
    fn definition(&self, job: &Job) -> Option<Arc<JobDefinition>> {
        self.draft.definition(&job.job_id, job.revision)
    }

    fn put(&mut self, mut job: Job) -> Job {
        job.version += 1;
        job.updated_at = self.now;
        self.draft.put(Record::Job(Box::new(job.clone())));
        job
    }

    fn tell(&mut self, news: SchedulerNews) {
        self.effects.push(Effect::Scheduler(news));
    }

    /// How many records this request may still write besides the job itself.
    fn room(&self) -> usize {
        (MOST_RECORDS - 1).saturating_sub(self.draft.changes())
    }
}

fn shown(job: Job) -> Reply {
    Reply::Job { job: Box::new(job), created: false }
}

fn made(run: Arc<Run>) -> Reply {
    Reply::Run { run, created: true }
}

fn no_job(job_id: &JobId) -> Refusal {
    Refusal::NotFound { what: "job".to_owned(), name: job_id.to_string() }
}

fn no_run(run_id: &RunId) -> Refusal {
    Refusal::NotFound { what: "run".to_owned(), name: run_id.to_string() }
}
