//! A scheduler beside a board on a store in memory, with work and constraints that do as they are told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::{JobId, Request};
use kapell_core::job::{JobDefinition, JobRequest, NewRun};
use kapell_core::run::{Run, RunId, RunState, Trigger};
use kapell_core::seams::{Clock, Timestamp};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::fakes::{Fake, Manner, Scripted};
use crate::board::tests::theatre::{Show, Theatre, pass};
use crate::conductor::{Service as _, Stage as OfService};
use crate::elections::{Standing, Tenure};
use crate::scheduler::{
    Backends, Opening, Parts, Scheduler, SchedulerService, SchedulerSlot, Settings, Supplies,
    Supply,
};
use kapell_core::seat::{Epoch, Owner, Record, Seat};

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn job(id: &str, more: &str) -> JobDefinition {
    let text = format!(r#"{{"job_id": "{id}", "command": {{"command": "true"}}{more}}}"#);
    serde_json::from_str(&text).unwrap()
}

/// All that outlives a leader.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) theatre: Theatre,
    pub(super) fake: Arc<Fake>,
    pub(super) checker: Arc<Scripted>,
    slot: SchedulerSlot,
    service: SchedulerService,
}

/// The same for every leader.
#[derive(Debug)]
struct Fixed {
    host: Arc<Fake>,
    cells: Arc<Fake>,
    checker: Arc<Scripted>,
}

#[async_trait]
impl Supplies for Fixed {
    async fn open(&self, opening: Opening) -> Result<Supply, String> {
        self.host.report_to(opening.newsroom.clone());
        self.cells.report_to(opening.newsroom);
        Ok(Supply {
            backends: Backends::new(Arc::clone(&self.host) as _, Arc::clone(&self.cells) as _),
            checker: Arc::clone(&self.checker) as _,
            webhooks: None,
            errands: JoinSet::new(),
        })
    }
}

/// One leader.
#[derive(Debug)]
pub(super) struct Lead {
    pub(super) show: Show,
    pub(super) scheduler: Scheduler,
    pub(super) stop: CancellationToken,
    task: JoinSet<Result<(), String>>,
}

impl Stage {
    pub(super) fn new() -> Self {
        let theatre = Theatre::new();
        let clock = Arc::clone(&theatre.clock) as Arc<dyn Clock>;
        let fake = Arc::new(Fake::new(Arc::clone(&clock)));
        let other = Arc::new(Fake::new(Arc::clone(&clock)));
        let (checker, slot) = (Arc::new(Scripted::default()), SchedulerSlot::default());
        let supplies =
            Fixed { host: Arc::clone(&fake), cells: other, checker: Arc::clone(&checker) };
        let service = SchedulerService::new(Parts {
            settings: Settings::default(),
            clock,
            board: theatre.slot.clone(),
            supplies: Arc::new(supplies),
            slot: slot.clone(),
        });
        Self { theatre, fake, checker, slot, service }
    }

    pub(super) fn wall(&self) -> Timestamp {
        self.theatre.clock.wall()
    }

    /// Takes the seat over and starts board and scheduler.
    pub(super) async fn open(&self) -> Lead {
        let show = self.theatre.open().await;
        let stop = CancellationToken::new();
        let clock = Arc::clone(&self.theatre.clock) as Arc<dyn Clock>;
        let record = Record {
            epoch: Epoch(1),
            owner: Owner(1),
            address: String::new(),
            since: clock.wall(),
        };
        let store = Arc::clone(&self.theatre.store) as Arc<dyn kapell_store::Store>;
        let tenure = Tenure::new(Seat::FIRST, record, store, clock, Standing::for_ever());
        let stage = OfService { tenure, fences: Vec::new(), stop: stop.clone() };
        let running = self.service.start(stage).await.unwrap();
        let mut task = JoinSet::new();
        task.spawn(running.0);
        Lead { show, scheduler: self.slot.get().unwrap(), stop, task }
    }
}

impl Lead {
    /// As `kill -9` does: nothing more happens in this process.
    pub(super) async fn die(mut self) {
        self.task.shutdown().await;
        self.show.running.abort();
        while !self.show.running.is_finished() {
            tokio::task::yield_now().await;
        }
    }

    pub(super) async fn close(mut self) {
        self.stop.cancel();
        assert_eq!(self.task.join_next().await.unwrap().unwrap(), Ok(()));
        self.show.close().await;
    }

    pub(super) async fn ask(&self, request: JobRequest) {
        self.show.board.ask(Request::Job(request)).await.unwrap();
    }

    pub(super) async fn apply(&self, definition: JobDefinition) {
        self.ask(JobRequest::Apply { definition: Box::new(definition) }).await;
    }

    /// Has a job run at that time, or now.
    pub(super) async fn trigger(&self, id: &str, drawn: u64, due_at: Timestamp) -> RunId {
        let job_id = JobId::new(id);
        let run_id = RunId::asked_for(&job_id, due_at, drawn);
        let run = NewRun {
            run_id: run_id.clone(),
            scheduled_at: due_at,
            due_at,
            trigger: Trigger::Manual { who: "ann".into() },
            parameters: BTreeMap::new(),
        };
        self.ask(JobRequest::Trigger { job_id, run }).await;
        run_id
    }

    pub(super) fn run(&self, run_id: &RunId) -> Run {
        let found = self.show.board.look(run_id.job(), |records| records.runs.get(run_id).cloned());
        Arc::unwrap_or_clone(found.unwrap())
    }

    pub(super) fn runs(&self, id: &str) -> Vec<Run> {
        let job_id = JobId::new(id);
        self.show.board.look(id, |records| records.runs_of(&job_id).cloned().collect())
    }

    /// Waits until a run is stored like this, and says how long that took.
    pub(super) async fn until(&self, run_id: &RunId, state: RunState, limit: Duration) -> Duration {
        let begin = tokio::time::Instant::now();
        while self.run(run_id).state != state {
            assert!(
                begin.elapsed() < limit,
                "not {} after {limit:?}: {:?}",
                state.name(),
                self.run(run_id)
            );
            pass(Duration::from_millis(10)).await;
        }
        begin.elapsed()
    }

    /// Waits until the scheduler has a run in this state.
    pub(super) async fn until_under_way(&self, run_id: &RunId, state: RunState) {
        for _ in 0..100_000 {
            let view = self.scheduler.state(run_id.clone()).await;
            if view.is_some_and(|view| view.state == state) {
                return;
            }
            pass(Duration::from_millis(10)).await;
        }
        panic!("it never became {}", state.name());
    }
}

/// A leader, a job that runs when it is triggered, and one run of it that is due at once.
pub(super) async fn triggered(manner: Manner, more: &str) -> (Stage, Lead, RunId) {
    let stage = Stage::new();
    stage.fake.state().manner = manner;
    let lead = stage.open().await;
    lead.apply(job("once", more)).await;
    let run_id = lead.trigger("once", 1, stage.wall()).await;
    (stage, lead, run_id)
}
