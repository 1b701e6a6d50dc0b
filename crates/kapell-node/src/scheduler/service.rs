//! The scheduler as a service: beside the board, for as long as its leader leads.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::TaskGuid;
use kapell_core::job::due::AHEAD;
use kapell_core::job::{JobDefinition, Payload};
use kapell_core::seams::Clock;
use tokio::sync::{Mutex, mpsc, watch};

use super::actor::{Actor, Ears, Makings};
use super::backend::{Backend, News};
use super::checker::Checker;
use super::inbox::{Scheduler, SchedulerSlot, WAITING};
use super::lanes::Limits;
use super::stats::Snapshot;
use crate::board::BoardSlot;
use crate::conductor::{Failure, Running, Service, Stage};

/// How long everything takes that can be set.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How far ahead of its time a run is made.
    pub ahead: Duration,
    /// How often runs are listened to.
    pub heartbeat: Duration,
    /// After so many missed beats a run is orphaned.
    pub most_missed: u32,
    /// How often everything is looked at once more.
    pub safety_pass: Duration,
    /// How often figures are made.
    pub stats_flush: Duration,
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ahead: AHEAD,
            heartbeat: Duration::from_secs(10),
            most_missed: 3,
            safety_pass: Duration::from_secs(60),
            stats_flush: Duration::from_secs(30),
            limits: Limits::default(),
        }
    }
}

/// Where the work of each kind of job is done.
#[derive(Debug, Clone)]
pub struct Backends([Arc<dyn Backend>; 3]);

impl Backends {
    pub fn new(
        command: Arc<dyn Backend>,
        task: Arc<dyn Backend>,
        workflow: Arc<dyn Backend>,
    ) -> Self {
        Self([command, task, workflow])
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, number: usize) -> &Arc<dyn Backend> {
        &self.0[number]
    }

    /// Which one does the work of a job.
    pub(super) fn number_for(definition: &JobDefinition) -> Option<usize> {
        match definition.payload()? {
            Payload::Command(_) => Some(0),
            Payload::Task(_) => Some(1),
            Payload::Workflow(_) => Some(2),
        }
    }

    pub(super) fn task_changed(&self, guid: &TaskGuid) {
        for backend in &self.0 {
            backend.task_changed(guid);
        }
    }
}

/// What a scheduler is made of.
#[derive(Debug)]
pub struct Parts {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub board: BoardSlot,
    pub backends: Backends,
    /// News of all backends. They outlive leaders, and so does this.
    pub news: mpsc::UnboundedReceiver<News>,
    pub checker: Arc<dyn Checker>,
    /// Where the scheduler is shown while it is there.
    pub slot: SchedulerSlot,
}

/// Runs the scheduler. It comes after the board.
#[derive(Debug)]
pub struct SchedulerService {
    settings: Settings,
    clock: Arc<dyn Clock>,
    board: BoardSlot,
    backends: Backends,
    news: Arc<Mutex<mpsc::UnboundedReceiver<News>>>,
    checker: Arc<dyn Checker>,
    slot: SchedulerSlot,
}

impl SchedulerService {
    pub fn new(parts: Parts) -> Self {
        let Parts { settings, clock, board, backends, news, checker, slot } = parts;
        Self { settings, clock, board, backends, news: Arc::new(Mutex::new(news)), checker, slot }
    }
}

/// Nobody sees a scheduler that has ended, however it ended.
struct Close(SchedulerSlot);

impl Drop for Close {
    fn drop(&mut self) {
        self.0.show(None);
    }
}

#[async_trait]
impl Service for SchedulerService {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    async fn start(&self, stage: Stage) -> Result<Running, Failure> {
        let Some(board) = self.board.get() else {
            return Err(Failure::Passing("there is no board to schedule by".to_owned()));
        };
        let Some(told) = board.scheduler_news() else {
            return Err(Failure::Passing("another scheduler goes by this board".to_owned()));
        };
        let backends = Arc::clone(&self.news).lock_owned().await;
        let (inbox, messages) = mpsc::channel(WAITING);
        let (shown, stats) = watch::channel(Arc::new(Snapshot::default()));
        let mut actor = Actor::new(Makings {
            board,
            clock: Arc::clone(&self.clock),
            backends: self.backends.clone(),
            checker: Arc::clone(&self.checker),
            settings: self.settings,
            shown,
        });
        actor.adopt();
        let ears = Ears { inbox: messages, board: told, backends, stop: stage.stop.clone() };
        self.slot.show(Some(Scheduler { inbox, stats }));
        let close = Close(self.slot.clone());
        Ok(Running::new(async move {
            actor.run(ears).await;
            drop(close);
            if stage.stop.is_cancelled() {
                Ok(())
            } else {
                Err("the scheduler ended by itself".to_owned())
            }
        }))
    }
}
