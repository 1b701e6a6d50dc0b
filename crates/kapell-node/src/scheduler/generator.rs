//! Makes runs of moments ahead of their time: wakes when something is due, plans by pure functions, asks the board.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_core::board::{JobId, Request};
use kapell_core::job::due::{self, Planned};
use kapell_core::job::{JobDefinition, JobRequest};
use kapell_core::run::RunId;
use kapell_core::schedule::Schedule;
use kapell_core::schedule::index::{self, Index};
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
/// So many jobs are worth a thread of their own when a leader begins.
const WORTH_A_THREAD: usize = 4_096;

/// What the index calls a job.
type Number = u32;

#[derive(Debug)]
struct Known {
    job_id: JobId,
    schedule: Schedule,
    revision: u64,
    /// Where it is in the index: it is looked at when that is within reach.
    listed: Option<Timestamp>,
    next: Option<Timestamp>,
    /// A request of it is on its way: it is looked at again when that is answered.
    asking: bool,
    /// Something about it has changed meanwhile.
    again: bool,
}

type Answer = (JobId, Result<(), Declined>);

#[derive(Debug)]
pub(super) struct Generator {
    ahead: Duration,
    numbers: FxHashMap<JobId, Number>,
    known: Vec<Option<Known>>,
    free: Vec<Number>,
    index: Index<Number>,
    /// To be looked at now.
    changed: VecDeque<JobId>,
    asked: FuturesUnordered<BoxFuture<'static, Answer>>,
}

/// A job as a new leader finds it.
struct Found {
    job_id: JobId,
    revision: u64,
    definition: Arc<JobDefinition>,
    stands: Timestamp,
}

impl Generator {
    pub(super) fn new(ahead: Duration) -> Self {
        let (numbers, known, free, index, changed) = Default::default();
        Self { ahead, numbers, known, free, index, changed, asked: FuturesUnordered::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Takes up all jobs of the board, which a new leader does once: their schedules are read and indexed by as many
    /// threads as there are processors.
    pub(super) fn load(&mut self, board: &Board, now: Timestamp) {
        let mut found: Vec<Found> = Vec::new();
        board.look_at_all(|records| {
            let jobs = || records.jobs.keys().filter_map(|job_id| records.job(job_id));
            // One that stands ahead of the clock has more to do than to wait for its next moment.
            let ahead = jobs().filter(|(job, _)| job.again.is_some() || records.stands(job) > now);
            self.changed.extend(ahead.map(|(job, _)| job.job_id.clone()));
            found.extend(jobs().map(|(job, definition)| Found {
                job_id: job.job_id.clone(),
                revision: job.revision,
                definition: Arc::clone(definition),
                stands: records.stands(job),
            }));
        });
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let each = found.len().div_ceil(threads).max(WORTH_A_THREAD);
        let firsts = (0..).step_by(each);
        let parts: Vec<_> = std::thread::scope(|scope| {
            let begin = |(some, first)| scope.spawn(move || read_all(some, first));
            let threads: Vec<_> = found.chunks(each).zip(firsts).map(begin).collect();
            let joined = threads.into_iter().map(ScopedJoinHandle::join);
            joined.map(|part| part.unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let mut indexed = Vec::with_capacity(parts.len());
        for (known, part) in parts {
            self.known.extend(known);
            indexed.push(part);
        }
        for (known, number) in self.known.iter().zip(0..) {
            self.numbers.extend(known.as_ref().map(|known| (known.job_id.clone(), number)));
        }
        for (at, number) in indexed.iter().flatten() {
            if let Some(known) = self.known.get_mut(*number as usize).and_then(Option::as_mut) {
                (known.listed, known.next) = (Some(*at), Some(*at));
            }
        }
        self.index = Index::of_parts(indexed);
    }

    /// Something about a job has changed.
    pub(super) fn look_at(&mut self, job_id: JobId) {
        self.changed.push_back(job_id);
    }

    /// The clock was set: where each job stands may not be right any more.
    pub(super) fn look_at_all(&mut self) {
        let mut jobs: Vec<JobId> = self.numbers.keys().cloned().collect();
        jobs.sort_unstable();
        self.changed.extend(jobs);
    }

    fn get(&self, job_id: &JobId) -> Option<&Known> {
        self.known.get(*self.numbers.get(job_id)? as usize)?.as_ref()
    }

    fn get_mut(&mut self, job_id: &JobId) -> Option<&mut Known> {
        self.known.get_mut(*self.numbers.get(job_id)? as usize)?.as_mut()
    }

    /// The next moment of a job that no run was made for yet.
    pub(super) fn next_of(&self, job_id: &JobId) -> Option<Timestamp> {
        self.get(job_id).and_then(|known| known.next)
    }

    pub(super) fn forget(&mut self, job_id: &JobId) {
        let Some(number) = self.numbers.remove(job_id) else { return };
        let known = self.known.get_mut(number as usize).and_then(Option::take);
        if let Some(listed) = known.and_then(|known| known.listed) {
            self.index.remove(listed, number);
        }
        self.free.push(number);
    }

    /// When it wants to be woken.
    pub(super) fn due(&self) -> Option<Timestamp> {
        if self.asked.len() >= MOST_ASKED {
            // The next answer wakes it.
            return None;
        }
        if !self.changed.is_empty() {
            return Some(Timestamp(i64::MIN));
        }
        self.index.first().map(|(at, _)| at.before(self.ahead))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }

    /// Plans what is due.
    pub(super) fn turn(&mut self, board: &Board, now: Timestamp) {
        let reach = now.after(self.ahead);
        for _ in 0..SLICE {
            if self.asked.len() >= MOST_ASKED {
                return;
            }
            let job_id = match self.changed.pop_front() {
                Some(job_id) => job_id,
                None => {
                    let Some((_, number)) = self.index.take_due(reach) else { return };
                    let known = self.known.get_mut(number as usize).and_then(Option::as_mut);
                    let Some(known) = known else { continue };
                    known.listed = None;
                    known.job_id.clone()
                }
            };
            self.plan(board, &job_id, now);
        }
    }

    fn plan(&mut self, board: &Board, job_id: &JobId, now: Timestamp) {
        if let Some(known) = self.get_mut(job_id).filter(|known| known.asking) {
            known.again = true;
            return;
        }
        let looked = board.look(job_id.as_str(), |records| {
            let (job, definition) = records.job(job_id)?;
            let ahead = self.ahead;
            let known = self.read_anew(job_id, job.revision, definition)?;
            let stands = records.stands(job);
            let has_run = |at| records.runs.contains_key(&RunId::scheduled(job_id, at));
            let planned = (!due::is_to_go_back(job, stands, now)).then(|| {
                let (schedule, times) = (&known.schedule, (now, ahead));
                due::plan_around(job, stands, definition, schedule, times, has_run)
            });
            Some((stands, planned))
        });
        let Some((stands, planned)) = looked else { return self.forget(job_id) };
        let Some(Planned { runs, passed, to, next }) = planned else {
            tracing::warn!(%job_id, stands = stands.0, "a job stands far ahead of the clock: it goes back through what it passed over");
            let request = JobRequest::TakeBack { job_id: job_id.clone(), from: stands, to: now };
            return self.ask(board, job_id, request, true);
        };
        let makes_some = !runs.is_empty() || !passed.is_empty();
        let asks = makes_some || stands < to;
        let reach = now.after(self.ahead);
        // Within reach and yet nothing to plan: it is looked at again, but not all the time.
        let at = next.map(|next| if next <= reach { reach.after(AGAIN) } else { next });
        self.list(job_id, at, next);
        if asks {
            let more = !makes_some || next.is_some_and(|next| next <= reach);
            let request =
                JobRequest::Advance { job_id: job_id.clone(), from: stands, to, runs, passed };
            self.ask(board, job_id, request, more);
        }
    }

    /// What a job is due by: read again only when it has changed. None if it cannot be read.
    fn read_anew(
        &mut self,
        job_id: &JobId,
        revision: u64,
        definition: &JobDefinition,
    ) -> Option<&Known> {
        if self.get(job_id).is_none_or(|known| known.revision != revision) {
            self.forget(job_id);
            self.enter(read(job_id, revision, definition)?);
        }
        self.get(job_id)
    }

    fn enter(&mut self, known: Known) {
        let number = self.free.pop().or_else(|| {
            self.known.push(None);
            Number::try_from(self.known.len() - 1).ok()
        });
        let Some(number) = number else { return };
        self.numbers.insert(known.job_id.clone(), number);
        self.known[number as usize] = Some(known);
    }

    /// Has a job looked at when `at` is within reach.
    fn list(&mut self, job_id: &JobId, at: Option<Timestamp>, next: Option<Timestamp>) {
        let Some(number) = self.numbers.get(job_id).copied() else { return };
        let Some(known) = self.known.get_mut(number as usize).and_then(Option::as_mut) else {
            return;
        };
        known.next = next;
        let before = std::mem::replace(&mut known.listed, at);
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.index.remove(before, number);
        }
        if let Some(at) = at {
            self.index.insert(at, number);
        }
    }

    fn ask(&mut self, board: &Board, job_id: &JobId, request: JobRequest, again: bool) {
        if let Some(known) = self.get_mut(job_id) {
            (known.asking, known.again) = (true, again);
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
        let again = self.get_mut(&job_id).is_some_and(|known| {
            known.asking = false;
            std::mem::take(&mut known.again)
        });
        match answer {
            Ok(()) if again => self.changed.push_back(job_id),
            Ok(()) => {}
            Err(why) => {
                tracing::debug!(%job_id, %why, "runs were not made: planned again");
                let next = self.next_of(&job_id);
                self.list(&job_id, Some(now().after(self.ahead + AGAIN)), next);
            }
        }
        Some(())
    }
}

/// Reads the schedules of some jobs, numbered from `first`, and finds their next moments.
fn read_all(found: &[Found], first: Number) -> (Vec<Option<Known>>, Vec<(Timestamp, Number)>) {
    let known = found.iter().map(|it| read(&it.job_id, it.revision, &it.definition));
    let known: Vec<Option<Known>> = known.collect();
    let numbered = known.iter().zip(found).zip(first..);
    let part = index::part(numbered.filter_map(|((known, found), number)| {
        known.as_ref().map(|known| (number, &known.schedule, found.stands))
    }));
    (known, part)
}

fn read(job_id: &JobId, revision: u64, definition: &JobDefinition) -> Option<Known> {
    let schedule = match Schedule::of(definition) {
        Ok(schedule) => schedule,
        Err(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            tracing::error!(%job_id, ?faults, "a schedule that was stored cannot be read: nothing is scheduled; apply the job again");
            return None;
        }
    };
    let (listed, next) = (None, None);
    let job_id = job_id.clone();
    Some(Known { job_id, schedule, revision, listed, next, asking: false, again: false })
}
