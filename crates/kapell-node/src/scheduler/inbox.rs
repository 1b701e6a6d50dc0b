//! What the scheduler can be told and asked.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use kapell_core::board::JobId;
use kapell_core::job::{Figure, JobDefinition};
use kapell_core::run::{Entry, Happened, Run, RunId, RunState, StopKind, Timer};
use kapell_core::seams::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use super::stats::Snapshot;
use crate::board::{Board, Declined};
use crate::webhook::Handler;

/// So many messages wait at most: whoever sends more waits.
pub(super) const WAITING: usize = 1_024;

/// A message to the scheduler. Those that ask something have a way back.
#[derive(Debug)]
pub(super) enum Message {
    /// Something happened to a run: a change of its state, its end, its failure.
    Happened {
        run_id: RunId,
        happened: Box<Happened>,
    },
    Heartbeat {
        run_id: RunId,
    },
    Cancel {
        run_id: RunId,
        kind: StopKind,
        why: String,
        answer: oneshot::Sender<Result<(), Declined>>,
    },
    /// Counts only while the run waits for its time; the latest wins.
    UpdateRun {
        run_id: RunId,
        revision: u64,
        definition: Arc<JobDefinition>,
        answer: oneshot::Sender<bool>,
    },
    State {
        run_id: RunId,
        answer: oneshot::Sender<Option<RunView>>,
    },
    Active {
        answer: oneshot::Sender<Vec<RunView>>,
    },
    JobState {
        job_id: JobId,
        answer: oneshot::Sender<Option<JobState>>,
    },
    JobHistory {
        job_id: JobId,
        most: usize,
        answer: oneshot::Sender<Vec<Run>>,
    },
}

/// How a run under way stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    pub run_id: RunId,
    pub state: RunState,
    pub previous_state: RunState,
    /// It has one of the places that its job and its group have: one that waits for its turn has none.
    pub holds_place: bool,
    pub attempt: u32,
    pub scheduled_at: Timestamp,
    pub due_at: Timestamp,
    /// When it came into its state.
    pub since: Timestamp,
    pub started_at: Option<Timestamp>,
    pub heartbeats: u32,
    /// What it is woken for next, and when.
    pub timer: Option<(Timer, Timestamp)>,
    /// What was noted of it and is not stored yet.
    pub noted: Vec<Entry>,
}

impl RunView {
    pub(super) fn of(entry: &super::entry::Entry) -> Self {
        let it = &entry.it;
        Self {
            run_id: it.run_id().clone(),
            state: it.state(),
            previous_state: it.previous_state(),
            holds_place: it.holds_place(),
            attempt: it.attempt(),
            scheduled_at: it.scheduled_at(),
            due_at: it.due_at(),
            since: it.since(),
            started_at: it.started_at(),
            heartbeats: it.heartbeats(),
            timer: entry.ring().map(|(at, timer)| (timer, at)),
            noted: it.noted().iter().collect(),
        }
    }
}

/// How a job stands, for those whose constraints look at others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    pub active: Vec<RunView>,
    /// Its next moment that no run was made for yet.
    pub next: Option<Timestamp>,
    /// The run that ended last.
    pub last: Option<Arc<Run>>,
}

/// A way to the scheduler. Cheap to clone; of use for as long as its leader leads. Whoever gets no answer asks a
/// scheduler that does not lead any more.
#[derive(Debug, Clone)]
pub struct Scheduler {
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) stats: watch::Receiver<Arc<Snapshot>>,
    pub(super) board: Board,
    pub(super) webhooks: Option<Handler>,
}

impl Scheduler {
    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.inbox.send(message(answer)).await.ok()?;
        answered.await.ok()
    }

    /// Tells a run what happened to it; what it cannot use it ignores.
    pub async fn tell(&self, run_id: RunId, happened: Happened) {
        drop(self.inbox.send(Message::Happened { run_id, happened: Box::new(happened) }).await);
    }

    pub async fn heartbeat(&self, run_id: RunId) {
        drop(self.inbox.send(Message::Heartbeat { run_id }).await);
    }

    /// Has a run end. Answered once that is noted, so that it outlives a change of leader.
    pub async fn cancel(
        &self,
        run_id: RunId,
        kind: StopKind,
        why: String,
    ) -> Option<Result<(), Declined>> {
        self.ask(|answer| Message::Cancel { run_id, kind, why, answer }).await
    }

    /// Hands a run another revision of its job; whether it still counts for it.
    pub async fn update_run(
        &self,
        run_id: RunId,
        revision: u64,
        definition: Arc<JobDefinition>,
    ) -> Option<bool> {
        self.ask(|answer| Message::UpdateRun { run_id, revision, definition, answer }).await
    }

    /// How a run under way stands; none of one that has ended.
    pub async fn state(&self, run_id: RunId) -> Option<RunView> {
        self.ask(|answer| Message::State { run_id, answer }).await.flatten()
    }

    /// All runs under way.
    pub async fn active(&self) -> Option<Vec<RunView>> {
        self.ask(|answer| Message::Active { answer }).await
    }

    pub async fn job_state(&self, job_id: JobId) -> Option<JobState> {
        self.ask(|answer| Message::JobState { job_id, answer }).await.flatten()
    }

    /// The runs of a job that have ended, the newest first.
    pub async fn job_history(&self, job_id: JobId, most: usize) -> Option<Vec<Run>> {
        self.ask(|answer| Message::JobHistory { job_id, most, answer }).await
    }

    /// The figures that actions of jobs have set or counted up, by job and name.
    pub fn metrics(&self) -> BTreeMap<(JobId, String), Figure> {
        let mut metrics = BTreeMap::new();
        self.board.look_at_all(|records| {
            for job in records.jobs.values() {
                let own =
                    |(name, it): (&String, &Figure)| ((job.job_id.clone(), name.clone()), *it);
                metrics.extend(job.figures.iter().map(own));
            }
        });
        metrics
    }

    /// Messages to places outside.
    pub const fn webhooks(&self) -> Option<&Handler> {
        self.webhooks.as_ref()
    }

    /// Figures, at most half a minute old.
    pub fn stats(&self) -> Arc<Snapshot> {
        Arc::clone(&self.stats.borrow())
    }
}

/// Where the scheduler of this host is to be found, while there is one. All clones are the same place.
#[derive(Debug, Clone, Default)]
pub struct SchedulerSlot(Arc<RwLock<Option<Scheduler>>>);

impl SchedulerSlot {
    pub fn get(&self) -> Option<Scheduler> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn show(&self, scheduler: Option<Scheduler>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = scheduler;
    }
}
