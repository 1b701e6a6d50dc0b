//! The scheduler as a service: beside the board, for as long as its leader leads.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::job::due::AHEAD;
use kapell_core::run::{START_TIMEOUT, StopKind};
use kapell_core::seams::Clock;
use tokio::sync::{mpsc, watch};

use super::actor::{Actor, Ears, Makings};
use super::inbox::{Scheduler, SchedulerSlot, WAITING};
use super::lanes::Limits;
use super::stats::Snapshot;
use super::supplies::{Opening, Supplies, Supply};
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
    /// Between a launch and the work that runs, where the job does not say.
    pub start_timeout: Duration,
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
            start_timeout: START_TIMEOUT,
            stats_flush: Duration::from_secs(30),
            limits: Limits::default(),
        }
    }
}

/// What a scheduler is made of.
#[derive(Debug)]
pub struct Parts {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub board: BoardSlot,
    pub supplies: Arc<dyn Supplies>,
    /// Where the scheduler is shown while it is there.
    pub slot: SchedulerSlot,
}

/// Runs the scheduler. It comes after the board.
#[derive(Debug)]
pub struct SchedulerService {
    parts: Parts,
}

impl SchedulerService {
    pub const fn new(parts: Parts) -> Self {
        Self { parts }
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
        let parts = &self.parts;
        let Some(board) = parts.board.get() else {
            return Err(Failure::Passing("there is no board to schedule by".to_owned()));
        };
        let (inbox, messages) = mpsc::channel(WAITING);
        let (shown, stats) = watch::channel(Arc::new(Snapshot::default()));
        let mut scheduler = Scheduler { inbox, stats, board: board.clone(), webhooks: None };
        let (newsroom, news) = mpsc::unbounded_channel();
        let supply = parts.supplies.open(Opening {
            board: board.clone(),
            store: Arc::clone(stage.tenure.store()),
            scheduler: scheduler.clone(),
            newsroom,
            tenure: stage.tenure.clone(),
        });
        let Supply { backends, checker, webhooks, errands } = supply.await?;
        scheduler.webhooks = webhooks;
        let Some(told) = board.scheduler_news() else {
            return Err(Failure::Passing("another scheduler goes by this board".to_owned()));
        };
        let left_behind = backends.clone();
        let mut actor = Actor::new(Makings {
            board,
            clock: Arc::clone(&parts.clock),
            backends,
            checker,
            settings: parts.settings,
            since: stage.tenure.record().since,
            shown,
        });
        actor.adopt();
        let ears = Ears { inbox: messages, board: told, backends: news, stop: stage.stop.clone() };
        parts.slot.show(Some(scheduler));
        let close = Close(parts.slot.clone());
        Ok(Running::new(async move {
            actor.run(ears).await;
            drop((close, errands));
            // Where others can lead, they cannot find what runs here.
            if stage.tenure.acts_for().is_some() {
                let is_lost = stage.tenure.loss().is_some();
                left_behind
                    .leave(if is_lost { StopKind::AtOnce } else { StopKind::Graceful })
                    .await;
            }
            if stage.stop.is_cancelled() {
                Ok(())
            } else {
                Err("the scheduler ended by itself".to_owned())
            }
        }))
    }
}
