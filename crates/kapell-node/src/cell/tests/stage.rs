//! A cell between a driver and a board that are not real.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kapell_api::v1::{LrpWork, TaskWork, Work, WorkAnswer};
use kapell_core::board::request::Report;
use kapell_core::board::{
    Action, ActualState, DesiredLrp, InstanceGuid, LrpKey, Resources, Run, Task, TaskDefinition,
    TaskGuid,
};
use kapell_core::rep::container::State;
use kapell_core::seams::{Clock, Ids, Timestamp};
use kapell_core::seat::Epoch;
use tokio::task::JoinSet;

use super::board::FakeBoard;
use super::driver::FakeContainers;
use super::outside::Outside;
use crate::cell::{Cell, CellSettings, Parts};
use crate::testing::{TokioClock, eventually};

pub(super) const EPOCH: Epoch = Epoch(3);

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) cell: Cell,
    pub(super) board: Arc<FakeBoard>,
    pub(super) containers: Arc<FakeContainers>,
    pub(super) outside: Arc<Outside>,
    pub(super) settings: CellSettings,
    pub(super) agent: JoinSet<()>,
    clock: Arc<dyn Clock>,
    pub(super) dir: tempfile::TempDir,
    generation: u32,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Ids for Counter {
    fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

pub(super) fn settings() -> CellSettings {
    CellSettings { users: None, ..CellSettings::default() }
}

fn parts(
    (dir, generation): (&Path, u32),
    settings: &CellSettings,
    clock: &Arc<dyn Clock>,
    board: &Arc<FakeBoard>,
    (containers, outside): (&Arc<FakeContainers>, &Arc<Outside>),
) -> Parts {
    Parts {
        id: "cell".into(),
        home: "here".to_owned(),
        dir: Some(dir.to_owned()),
        settings: settings.clone(),
        clock: Arc::clone(clock),
        ids: Arc::new(Counter(AtomicU64::new(u64::from(generation) << 32))),
        containers: Arc::clone(containers) as _,
        transfers: Arc::clone(outside) as _,
        probes: Arc::clone(outside) as _,
        board: Arc::clone(board) as _,
        capacity: Resources { memory_mb: 1000, disk_mb: 1000, containers: 300 },
        zone: "z1".to_owned(),
        url: "http://cell".to_owned(),
        advertise_host: "10.0.0.1".to_owned(),
        placement_tags: Vec::new(),
        optional_placement_tags: Vec::new(),
    }
}

impl Stage {
    pub(super) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(super) async fn with(settings: CellSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let board = Arc::new(FakeBoard::default());
        *board.epoch.lock().unwrap() = EPOCH;
        let containers = Arc::new(FakeContainers::new(dir.path().join("containers")));
        let outside = Arc::new(Outside::default());
        let given = (&containers, &outside);
        let parts = parts((dir.path(), 0), &settings, &clock, &board, given);
        let (cell, running) = Cell::start(parts).await.unwrap();
        let mut agent = JoinSet::new();
        agent.spawn(running.run());
        let stage =
            Self { cell, board, containers, outside, settings, agent, clock, dir, generation: 0 };
        stage.until("it is welcome", |stage| stage.cell.shared.rep().welcome).await;
        stage
    }

    /// The agent is killed and started again.
    pub(super) async fn restart(&mut self) {
        self.agent.shutdown().await;
        self.generation += 1;
        let parts = parts(
            (self.dir.path(), self.generation),
            &self.settings,
            &self.clock,
            &self.board,
            (&self.containers, &self.outside),
        );
        let (cell, running) = Cell::start(parts).await.unwrap();
        self.cell = cell;
        self.agent.spawn(running.run());
    }

    pub(super) fn work(&self, lrps: Vec<LrpWork>, tasks: Vec<TaskWork>) -> WorkAnswer {
        self.cell.work(EPOCH, Work { lrps, tasks }).unwrap()
    }

    /// The board wants an instance here.
    pub(super) fn place(&self, key: &LrpKey) {
        self.board.unclaimed(key);
        let answer = self.work(vec![lrp(key)], Vec::new());
        assert_eq!(answer, WorkAnswer::default());
    }

    /// The board wants an instance here that is as `change` makes it.
    pub(super) async fn place_with(
        &self,
        key: &LrpKey,
        change: impl FnOnce(&mut DesiredLrp),
    ) -> InstanceGuid {
        self.board.unclaimed(key);
        let mut work = lrp(key);
        change(&mut work.desired);
        assert_eq!(self.work(vec![work], Vec::new()), WorkAnswer::default());
        let held = self.cell.state(EPOCH).unwrap().lrps;
        let guid = held.into_iter().find(|held| held.key == *key).unwrap().instance_guid;
        let known = |stage: &Self| stage.board.state_of(key) != Some(ActualState::Unclaimed);
        self.until("it is claimed", known).await;
        guid
    }

    pub(super) fn state(&self, guid: &InstanceGuid) -> Option<State> {
        self.cell.shared.rep().executor.get(guid).map(|entry| entry.life.state())
    }

    /// The reason of the last crash that the board was told of.
    pub(super) fn crash(&self) -> Option<String> {
        let calls = self.board.calls();
        calls.iter().flatten().rev().find_map(|report| {
            if let Report::Crashed { reason, .. } = report { Some(reason.clone()) } else { None }
        })
    }

    /// The board wants a task here.
    pub(super) fn place_task(&self, guid: &TaskGuid) {
        self.place_task_with(guid, run("job"));
    }

    pub(super) fn place_task_with(&self, guid: &TaskGuid, action: Action) {
        let mut task = pending(guid);
        if task.definition.action != action {
            task.definition.action = action;
            task.definition.result_file = String::new();
        }
        let work = TaskWork {
            definition: task.definition.clone(),
            instance_guid: task.instance_guid.clone(),
        };
        self.board.records().tasks.insert(guid.clone(), task);
        assert_eq!(self.work(Vec::new(), vec![work]), WorkAnswer::default());
    }

    pub(super) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        self.within(Duration::from_secs(20), what, is_so).await;
    }

    pub(super) async fn within(&self, limit: Duration, what: &str, is_so: impl Fn(&Self) -> bool) {
        let what = format!("{what}; told {:?}; {:?}", self.board.told(), self.board);
        eventually(&what, limit, || async { is_so(self) }).await;
    }

    /// Starts an instance and waits until the board knows.
    pub(super) async fn running(&self, key: &LrpKey) -> InstanceGuid {
        self.until("it is welcome", |stage| stage.cell.shared.rep().welcome).await;
        self.place(key);
        let runs = ActualState::Running;
        self.until("it runs", |stage| stage.board.state_of(key) == Some(runs)).await;
        self.board.records().instances[key].instance_guid.clone().unwrap()
    }

    pub(super) fn held(&self) -> usize {
        let state = self.cell.state(EPOCH).unwrap();
        state.lrps.len() + state.tasks.len()
    }

    /// Nothing is there, not even something that has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.cell.shared.rep().executor.is_empty()
    }
}

pub(super) fn key(process: &str, index: u32) -> LrpKey {
    LrpKey { process_guid: process.into(), index }
}

pub(super) fn desired(process: &str) -> DesiredLrp {
    DesiredLrp {
        memory_mb: 1,
        disk_mb: 1,
        ports: vec![8080],
        version: 1,
        ..DesiredLrp::new(process.into(), "d".into(), run("server"))
    }
}

pub(super) fn run(path: &str) -> Action {
    Action::Run(Run { path: path.to_owned(), ..Run::default() })
}

pub(super) fn lrp(key: &LrpKey) -> LrpWork {
    LrpWork { index: key.index, desired: desired(key.process_guid.as_str()) }
}

pub(super) fn pending(guid: &TaskGuid) -> Task {
    let definition = TaskDefinition {
        task_guid: guid.clone(),
        domain: "d".into(),
        rootfs: None,
        memory_mb: 1,
        disk_mb: 1,
        max_pids: 0,
        cpu_millis: 0,
        log_rate: 0,
        placement_tags: Vec::new(),
        env: Vec::new(),
        action: run("job"),
        result_file: "result".to_owned(),
        completion_callback_url: String::new(),
        annotation: String::new(),
    };
    let instance_guid = InstanceGuid::new(format!("i-{guid}"));
    Task::pending(definition, instance_guid, Timestamp(0))
}
