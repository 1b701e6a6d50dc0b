//! Makes runs of moments ahead of their time: wakes when something is due, plans by pure functions, asks the board.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_core::board::{JobId, Request};
use kapell_core::job::due::{self, Planned};
use kapell_core::job::{Job, JobDefinition, JobRequest};
use kapell_core::schedule::Schedule;
use kapell_core::seams::Timestamp;
use rustc_hash::FxHashMap;

use crate::board::{Board, Declined};
use crate::failpoint;

/// So many jobs are planned before others may run.
const SLICE: usize = 2_000;
/// So many requests are on their way at once.
const MOST_ASKED: usize = 2_048;
/// After a request that was not carried out, and for a job that is due but has nothing to plan yet.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Known {
    schedule: Arc<Schedule>,
    revision: u64,
    /// When it is looked at next.
    wake: Option<Timestamp>,
    next: Option<Timestamp>,
    /// A request of it is on its way: it is looked at again when that is answered.
    asking: bool,
}

type Answer = (JobId, Result<(), Declined>);

#[derive(Debug)]
pub(super) struct Generator {
    ahead: Duration,
    jobs: FxHashMap<JobId, Known>,
    index: BTreeSet<(Timestamp, JobId)>,
    /// To be looked at now.
    changed: VecDeque<JobId>,
    asked: FuturesUnordered<BoxFuture<'static, Answer>>,
}

impl Generator {
    pub(super) fn new(ahead: Duration) -> Self {
        let (jobs, index, changed) = Default::default();
        Self { ahead, jobs, index, changed, asked: FuturesUnordered::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Something about a job has changed.
    pub(super) fn look_at(&mut self, job_id: JobId) {
        self.changed.push_back(job_id);
    }

    /// The clock was set: where each job stands may not be right any more.
    pub(super) fn look_at_all(&mut self) {
        let mut jobs: Vec<JobId> = self.jobs.keys().cloned().collect();
        jobs.sort_unstable();
        self.changed.extend(jobs);
    }

    /// The next moment of a job that no run was made for yet.
    pub(super) fn next_of(&self, job_id: &JobId) -> Option<Timestamp> {
        self.jobs.get(job_id).and_then(|known| known.next)
    }

    pub(super) fn forget(&mut self, job_id: &JobId) {
        if let Some(Known { wake: Some(wake), .. }) = self.jobs.remove(job_id) {
            self.index.remove(&(wake, job_id.clone()));
        }
    }

    /// When it wants to be woken.
    pub(super) fn due(&self) -> Option<Timestamp> {
        if !self.changed.is_empty() && self.asked.len() < MOST_ASKED {
            return Some(Timestamp(i64::MIN));
        }
        self.index.first().map(|(wake, _)| *wake)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }

    /// Plans what is due.
    pub(super) fn turn(&mut self, board: &Board, now: Timestamp) {
        for _ in 0..SLICE {
            if self.asked.len() >= MOST_ASKED {
                return;
            }
            let next = match self.changed.pop_front() {
                Some(job_id) => job_id,
                None => match self.index.first() {
                    Some((wake, _)) if *wake <= now => {
                        let Some((_, job_id)) = self.index.pop_first() else { return };
                        job_id
                    }
                    Some(_) | None => return,
                },
            };
            self.plan(board, &next, now);
        }
    }

    fn plan(&mut self, board: &Board, job_id: &JobId, now: Timestamp) {
        if self.jobs.get(job_id).is_some_and(|known| known.asking) {
            return;
        }
        let found = board.look(job_id.as_str(), |records| {
            let (job, definition) = records.job(job_id)?;
            Some((job.clone(), Arc::clone(definition), records.stands(job)))
        });
        let Some((job, definition, stands)) = found else { return self.forget(job_id) };
        let Some(schedule) = self.schedule(&job, &definition) else { return };
        if due::is_to_go_back(&job, stands, now) {
            tracing::warn!(%job_id, stands = stands.0, "a job stands far ahead of the clock: it goes back through what it passed over");
            let request = JobRequest::TakeBack { job_id: job_id.clone(), from: stands, to: now };
            return self.ask(board, job_id, request);
        }
        let planned = due::plan(&job, stands, &definition, schedule.as_ref(), now, self.ahead);
        let Planned { runs, passed, to, next } = planned;
        let asks = !runs.is_empty() || !passed.is_empty() || stands < to;
        let wake = next.map(|next| next.before(self.ahead));
        // Within reach and yet nothing to plan: it is looked at again, but not all the time.
        let wake = wake.map(|wake| if wake <= now { now.after(AGAIN) } else { wake });
        self.wake(job_id, wake, next);
        if asks {
            let request =
                JobRequest::Advance { job_id: job_id.clone(), from: stands, to, runs, passed };
            self.ask(board, job_id, request);
        }
    }

    /// What a job is due by: read again only when it has changed.
    fn schedule(&mut self, job: &Job, definition: &JobDefinition) -> Option<Arc<Schedule>> {
        if let Some(known) =
            self.jobs.get(&job.job_id).filter(|known| known.revision == job.revision)
        {
            return Some(Arc::clone(&known.schedule));
        }
        self.forget(&job.job_id);
        let schedule = match Schedule::of(definition) {
            Ok(schedule) => Arc::new(schedule),
            Err(faults) => {
                let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                let job_id = &job.job_id;
                tracing::error!(%job_id, ?faults, "a schedule that was stored cannot be read: nothing is scheduled; apply the job again");
                return None;
            }
        };
        let known = Known {
            schedule: Arc::clone(&schedule),
            revision: job.revision,
            wake: None,
            next: None,
            asking: false,
        };
        self.jobs.insert(job.job_id.clone(), known);
        Some(schedule)
    }

    fn wake(&mut self, job_id: &JobId, wake: Option<Timestamp>, next: Option<Timestamp>) {
        let Some(known) = self.jobs.get_mut(job_id) else { return };
        if let Some(before) = std::mem::replace(&mut known.wake, wake) {
            self.index.remove(&(before, job_id.clone()));
        }
        known.next = next;
        self.index.extend(wake.map(|wake| (wake, job_id.clone())));
    }

    fn ask(&mut self, board: &Board, job_id: &JobId, request: JobRequest) {
        if let Some(known) = self.jobs.get_mut(job_id) {
            known.asking = true;
        }
        let (board, job_id) = (board.clone(), job_id.clone());
        self.asked.push(Box::pin(async move {
            failpoint::pass("advance");
            let answer = board.ask(Request::Job(request)).await;
            failpoint::pass("advanced");
            (job_id, answer.map(drop))
        }));
    }

    /// Waits for the answer to a request; none if nothing was asked.
    pub(super) async fn answered(&mut self, now: impl Fn() -> Timestamp) -> Option<()> {
        let (job_id, answer) = self.asked.next().await?;
        if let Some(known) = self.jobs.get_mut(&job_id) {
            known.asking = false;
        }
        match answer {
            Ok(()) => self.changed.push_back(job_id),
            Err(why) => {
                tracing::debug!(%job_id, %why, "runs were not made: planned again");
                let next = self.next_of(&job_id);
                self.wake(&job_id, Some(now().after(AGAIN)), next);
            }
        }
        Some(())
    }
}
