//! A board that shows what it is given and answers what it is told.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kapell_api::v1::{CellRecords, CellView, RecordsWanted, Welcome};
use kapell_core::board::explain::Due;
use kapell_core::board::plan::{self, Cells, Plan, Wishes};
use kapell_core::board::{
    ActualLrp, ActualState, CellId, CellPresence, CellState, DesiredLrp, NetInfo, PortMapping,
    Record, Records, Reply, Request, Resources, Settings, Task, TaskState,
};
use kapell_core::job::{Definition, Job, JobDefinition};
use kapell_core::run::{Run, RunId, RunState};
use kapell_core::seams::{Clock as _, Timestamp};
use kapell_core::seat::Epoch;
use kapell_node::board::{Declined, EventId, Next, ReadOnly, Sights};
use kapell_node::link::LinkError;
use kapell_node::system::SystemClock;
use tokio::sync::Notify;

use super::super::desk::{Desk, Watcher};

#[derive(Debug, Default)]
pub(super) struct FakeDesk {
    pub(super) records: Mutex<Records>,
    pub(super) cells: Mutex<Vec<CellView>>,
    pub(super) gone: Mutex<Vec<CellView>>,
    /// The cell that does not answer.
    pub(super) silent: Mutex<Option<CellId>>,
    /// What was asked of it.
    pub(super) asked: Mutex<Vec<Request>>,
    /// Set while answers wait.
    held: Mutex<Option<Arc<Notify>>>,
    /// What it answers, in order; then that all is done.
    pub(super) answers: Mutex<VecDeque<Result<Reply, Declined>>>,
    pub(super) events: Mutex<Vec<Next>>,
    pub(super) evacuated: Mutex<Vec<CellId>>,
    pub(super) read_only: Mutex<Option<ReadOnly>>,
    /// How far its time is from the clock on the wall.
    pub(super) ahead_ms: AtomicI64,
    /// How its cells stand when it plans.
    pub(super) states: Mutex<Vec<CellState>>,
    pub(super) sights: Arc<Sights>,
}

impl FakeDesk {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn desire(&self, json: &str) {
        let lrp: DesiredLrp = serde_json::from_str(json).unwrap();
        self.records.lock().unwrap().put(Record::Desired(Box::new(lrp)));
    }

    pub(super) fn instance(&self, lrp: ActualLrp) {
        self.records.lock().unwrap().put(Record::Actual(Box::new(lrp)));
    }

    pub(super) fn task(&self, task: Task) {
        self.records.lock().unwrap().put(Record::Task(Box::new(task)));
    }

    pub(super) fn answers(&self, answer: Result<Reply, Declined>) {
        self.answers.lock().unwrap().push_back(answer);
    }

    /// Answers nothing until it is [let go](Self::let_go).
    pub(super) fn hold(&self) {
        *self.held.lock().unwrap() = Some(Arc::default());
    }

    pub(super) fn let_go(&self) {
        let held = self.held.lock().unwrap().take();
        held.unwrap().notify_waiters();
    }

    pub(super) fn take_asked(&self) -> Vec<Request> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// A cell that is reached at `url`.
    pub(super) fn cell_at(&self, id: &str, url: &str) {
        let presence = CellPresence {
            home: String::new(),
            cell_id: id.into(),
            url: url.to_owned(),
            zone: "z".to_owned(),
            capacity: Resources { memory_mb: 1000, disk_mb: 2000, containers: 10 },
            rootfs_schemes: Vec::new(),
            placement_tags: Vec::new(),
            optional_placement_tags: Vec::new(),
            evacuating: false,
            version: String::new(),
        };
        let state = "present".to_owned();
        let cell = CellView { presence, state, heard_ms_ago: Some(1), lrps: 0, tasks: 0 };
        self.cells.lock().unwrap().push(cell);
    }
}

pub(super) fn lrp(guid: &str, index: u32, state: ActualState, cell: Option<&str>) -> ActualLrp {
    let key = kapell_core::board::LrpKey { process_guid: guid.into(), index };
    let mut lrp = ActualLrp::unclaimed(&key, "d".into(), Timestamp(1000));
    lrp.state = state;
    lrp.cell_id = cell.map(Into::into);
    lrp.instance_guid = cell.map(|cell| format!("{guid}-{index}-{cell}").as_str().into());
    if state == ActualState::Running {
        let ports = vec![PortMapping { container_port: 80, host_port: 61000 }];
        lrp.net = Some(NetInfo { address: "10.0.0.7".to_owned(), ports });
        lrp.ready = Some(true);
    }
    lrp
}

pub(super) fn task(guid: &str, state: TaskState) -> Task {
    let definition =
        format!(r#"{{"task_guid":"{guid}","domain":"d","action":{{"run":{{"path":"true"}}}}}}"#);
    let definition = serde_json::from_str(&definition).unwrap();
    Task { state, ..Task::pending(definition, "i".into(), Timestamp(1)) }
}

struct Fixed(VecDeque<Next>);

#[async_trait]
impl Watcher for Fixed {
    async fn next(&mut self) -> Option<Next> {
        match self.0.pop_front() {
            Some(next) => Some(next),
            None => std::future::pending().await,
        }
    }
}

fn id(next: &Next) -> EventId {
    match next {
        Next::Event(id, _) | Next::Gap(id) => *id,
    }
}

#[async_trait]
impl Desk for FakeDesk {
    fn settings(&self) -> Settings {
        Settings::default()
    }

    fn epoch(&self) -> Epoch {
        Epoch(7)
    }

    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.wall().0 + self.ahead_ms.load(Ordering::SeqCst))
    }

    fn read_only(&self) -> Option<ReadOnly> {
        self.read_only.lock().unwrap().clone()
    }

    fn last_event(&self) -> EventId {
        let events = self.events.lock().unwrap();
        events.last().map_or(EventId { epoch: Epoch(7), number: 0 }, id)
    }

    fn events(&self, after: Option<EventId>) -> Box<dyn Watcher> {
        let events = self.events.lock().unwrap();
        let after = after.unwrap_or(EventId { epoch: Epoch(u64::MAX), number: 0 });
        Box::new(Fixed(events.iter().filter(|next| id(next) > after).cloned().collect()))
    }

    fn look(&self, _partition: &str, at: &mut dyn FnMut(&Records)) {
        at(&self.records.lock().unwrap());
    }

    fn look_at_all(&self, at: &mut dyn FnMut(&Records)) {
        at(&self.records.lock().unwrap());
    }

    fn sights(&self) -> Arc<Sights> {
        Arc::clone(&self.sights)
    }

    fn cell(&self, cell_id: &CellId) -> Option<CellPresence> {
        let cells = self.cells.lock().unwrap();
        cells.iter().map(|cell| cell.presence.clone()).find(|cell| cell.cell_id == *cell_id)
    }

    fn cells(&self) -> Vec<CellView> {
        self.cells.lock().unwrap().clone()
    }

    fn gone(&self, cell_id: &CellId) -> Option<CellView> {
        let gone = self.gone.lock().unwrap();
        gone.iter().find(|cell| cell.presence.cell_id == *cell_id).cloned()
    }

    fn silent_since(&self, cell_id: &CellId) -> Option<Duration> {
        (self.silent.lock().unwrap().as_ref() == Some(cell_id)).then_some(Duration::from_secs(3))
    }

    fn due(&self) -> Due {
        Due { round: Some(Timestamp(2000)), pass: Timestamp(3000) }
    }

    fn present(&self, presence: CellPresence) -> Result<Welcome, kapell_api::v1::Problem> {
        self.cell_at(presence.cell_id.as_str(), &presence.url);
        Ok(Welcome { epoch: Epoch(7), ttl_ms: 15_000 })
    }

    fn leave(&self, cell_id: &CellId) {
        let mut cells = self.cells.lock().unwrap();
        let left = cells.extract_if(.., |cell| cell.presence.cell_id == *cell_id);
        let gone = left.map(|cell| CellView { state: "gone".to_owned(), ..cell });
        self.gone.lock().unwrap().extend(gone);
    }

    fn records(&self, _cell_id: &CellId, _wanted: &RecordsWanted) -> CellRecords {
        CellRecords { epoch: Epoch(7), ..CellRecords::default() }
    }

    async fn ask(&self, request: Request) -> Result<Reply, Declined> {
        let held = self.held.lock().unwrap().clone();
        let held = held.as_ref().map(|held| held.notified());
        self.asked.lock().unwrap().push(request);
        if let Some(held) = held {
            held.await;
        }
        self.answers.lock().unwrap().pop_front().unwrap_or(Ok(Reply::Done))
    }

    async fn evacuate(&self, cell_id: &CellId) -> Result<(), LinkError> {
        self.evacuated.lock().unwrap().push(cell_id.clone());
        Ok(())
    }

    async fn plan(&self, wishes: &Wishes) -> Plan {
        let (now, settings) = (Timestamp(1000), Settings::default());
        let records = self.records.lock().unwrap();
        let asked = wishes.in_order();
        let outlines = asked.iter().map(|it| plan::outline(&records, it, now, &settings)).collect();
        let known = wishes.lrps.iter().map(|it| &it.process_guid).collect();
        let waiting = plan::waiting(&records, &known, &BTreeSet::new());
        let states = self.states.lock().unwrap().clone();
        plan::drawn(outlines, waiting, Cells { states, silent: Vec::new() })
    }
}

/// A job by its definition, in its first revision, made at the second 1.
pub(super) fn job(definition: &JobDefinition) -> Job {
    Job {
        job_id: definition.job_id.clone(),
        domain: definition.domain.clone(),
        revision: 1,
        revised: Vec::new(),
        mark: Timestamp(1000),
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
        created_at: Timestamp(1000),
        updated_at: Timestamp(1000),
        version: 1,
    }
}

pub(super) fn run(id: &str, state: RunState, at_ms: i64) -> Run {
    let at = Timestamp(at_ms);
    let mut run = Run::unreadable(RunId::parse(id).unwrap());
    run.domain = "d".into();
    run.revision = 1;
    run.state = state;
    (run.scheduled_at, run.due_at, run.created_at) = (at, at, at);
    run.completed_at = state.is_final().then(|| Timestamp(at_ms + 5_000));
    run.reason = String::new();
    run
}

impl FakeDesk {
    /// Has a job, as a request would say it.
    pub(super) fn job(&self, json: &str) -> Arc<JobDefinition> {
        let definition = Arc::new(kapell_core::manifest::read_job(json.as_bytes()).unwrap());
        let mut records = self.records.lock().unwrap();
        records.put(Record::Job(Box::new(job(&definition))));
        let shared = Arc::clone(&definition);
        records.put(Record::Definition(Definition { revision: 1, definition: shared }));
        definition
    }

    pub(super) fn change_job(&self, id: &str, change: impl FnOnce(&mut Job)) {
        let mut records = self.records.lock().unwrap();
        let mut job = records.jobs.get(id).unwrap().clone();
        change(&mut job);
        records.put(Record::Job(Box::new(job)));
    }

    pub(super) fn run(&self, run: Run) {
        self.records.lock().unwrap().put(Record::Run(Arc::new(run)));
    }
}
