//! A board on a store in memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kapell_core::board::request::Report;
use kapell_core::board::{
    ActualLrp, CellPresence, DesiredLrp, Domain, InstanceGuid, LrpKey, NetInfo, Reply, Request,
    Resources, Settings, Task, TaskDefinition, shard_of,
};
use kapell_core::seams::{Clock, Ids, Moment, Timestamp};
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use kapell_store::mem::Mem;
use kapell_store::model::{Raise, SHARDS, Shard};
use kapell_store::{Shards as _, Store};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

pub(crate) use super::fakes::{Calls, Cells, Manner, Told};
use crate::board::{Board, BoardService, BoardSlot, Callbacks, Declined, Parts};
use crate::conductor::{Failure, Service as _, Stage};
use crate::elections::{Standing, Tenure};
use crate::link::CellLink;
use crate::testing::{Faulty, TokioClock};

pub(crate) const SEAT: Seat = Seat::FIRST;

pub(crate) fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Lets time go by for something that takes its time.
pub(crate) async fn pass(time: Duration) {
    let never = std::future::pending::<()>();
    assert!(tokio::time::timeout(time, never).await.is_err());
}

/// Something that goes on by itself, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Apart<T> {
    task: JoinSet<T>,
    handle: AbortHandle,
}

impl<T: Send + 'static> Apart<T> {
    fn begin(what: impl Future<Output = T> + Send + 'static) -> Self {
        let mut task = JoinSet::new();
        let handle = task.spawn(what);
        Self { task, handle }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    pub(crate) fn abort(&self) {
        self.handle.abort();
    }

    pub(crate) async fn end(mut self) -> T {
        self.task.join_next().await.unwrap().unwrap()
    }
}

/// Time that can jump, as it does for a machine that slept.
#[derive(Debug)]
pub(crate) struct Jumping {
    clock: TokioClock,
    ahead_ms: AtomicU64,
    wall_ahead_ms: AtomicI64,
}

impl Jumping {
    /// Somebody sets the clock on the wall.
    pub(crate) fn set_wall(&self, ahead_ms: i64) {
        self.wall_ahead_ms.store(ahead_ms, Ordering::SeqCst);
    }

    pub(crate) fn jump(&self, by: Duration) {
        self.ahead_ms.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for Jumping {
    fn now(&self) -> Moment {
        self.clock.now().after(Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst)))
    }

    fn wall(&self) -> Timestamp {
        let ahead = i64::try_from(self.ahead_ms.load(Ordering::SeqCst)).unwrap();
        Timestamp(self.clock.wall().0 + ahead + self.wall_ahead_ms.load(Ordering::SeqCst))
    }
}

#[derive(Debug, Default)]
struct Numbered(AtomicU64);

impl Ids for Numbered {
    fn draw(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// All that outlives a leader.
#[derive(Debug)]
pub(crate) struct Theatre {
    pub(crate) clock: Arc<Jumping>,
    /// A client that no fault touches.
    pub(crate) mem: Arc<Mem>,
    pub(crate) store: Arc<Faulty>,
    pub(crate) cells: Arc<Cells>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) slot: BoardSlot,
    pub(crate) settings: Settings,
    epoch: AtomicU64,
}

/// One leader.
#[derive(Debug)]
pub(crate) struct Show {
    pub(crate) board: Board,
    pub(crate) standing: Standing,
    pub(crate) stop: CancellationToken,
    pub(crate) running: Apart<Result<(), String>>,
}

impl Theatre {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(Jumping {
            clock: TokioClock::new(),
            ahead_ms: AtomicU64::default(),
            wall_ahead_ms: AtomicI64::default(),
        });
        let mem = Arc::new(Mem::new(Arc::clone(&clock) as Arc<dyn Clock>));
        Self {
            store: Arc::new(Faulty::new(Arc::clone(&mem) as Arc<dyn Store>)),
            clock,
            mem,
            cells: Arc::default(),
            calls: Arc::default(),
            slot: BoardSlot::default(),
            settings: Settings::default(),
            epoch: AtomicU64::default(),
        }
    }

    /// Takes the seat over and starts the board.
    pub(crate) async fn open(&self) -> Show {
        self.try_open().await.unwrap()
    }

    pub(crate) async fn try_open(&self) -> Result<Show, Failure> {
        let epoch = Epoch(self.epoch.fetch_add(1, Ordering::SeqCst) + 1);
        let Raise::Done(fences) = self.mem.raise(SEAT, epoch).await.unwrap() else {
            panic!("somebody has a higher epoch")
        };
        let since = self.clock.wall();
        let record = Record { epoch, owner: Owner(epoch.0), address: String::new(), since };
        let standing = Standing::for_ever();
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let tenure = Tenure::new(SEAT, record, store, Arc::clone(&clock), standing.clone());
        let stop = CancellationToken::new();
        let service = BoardService::new(Parts {
            settings: self.settings.clone(),
            clock,
            ids: Arc::new(Numbered::default()),
            cells: Arc::clone(&self.cells) as Arc<dyn CellLink>,
            callbacks: Arc::clone(&self.calls) as Arc<dyn Callbacks>,
            slot: self.slot.clone(),
        });
        let stage = Stage { tenure, fences, stop: stop.clone() };
        let running = service.start(stage).await?;
        let board = self.slot.get().unwrap();
        Ok(Show { board, standing, stop, running: Apart::begin(running.0) })
    }

    /// Opens when it is no longer a time in which cells are waited for.
    pub(crate) async fn open_and_settle(&self) -> Show {
        let show = self.open().await;
        pass(self.settings.presence_ttl + secs(1)).await;
        show
    }

    /// Where the fence of the shard stands that has this name.
    pub(crate) async fn seq(&self, partition: &str) -> u64 {
        let shard = Shard { seat: SEAT, number: shard_of(partition, SHARDS) };
        self.mem.fence(shard).await.unwrap().seq
    }
}

impl Show {
    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.running.end().await.unwrap();
    }

    /// Asks from a task of its own.
    pub(crate) fn ask(&self, request: Request) -> Apart<Result<Reply, Declined>> {
        let board = self.board.clone();
        Apart::begin(async move { board.ask(request).await })
    }

    pub(crate) async fn report(&self, cell: &str, report: Report) {
        let request = Request::Report { cell_id: cell.into(), report };
        self.board.ask(request).await.unwrap();
    }

    /// Has a cell run an instance.
    pub(crate) async fn run(&self, cell: &str, guid: &str, index: u32) {
        let key = LrpKey { process_guid: guid.into(), index };
        let instance_guid = InstanceGuid::new(format!("{guid}-{index}-on-{cell}"));
        let claim = Report::Claim {
            key: key.clone(),
            instance_guid: instance_guid.clone(),
            incarnation: None,
        };
        self.report(cell, claim).await;
        let net = NetInfo { address: "127.0.0.1".to_owned(), ports: Vec::new() };
        let domain = Domain::from("d");
        let runs =
            Report::Running { key, instance_guid, domain, incarnation: None, net, ready: true };
        self.report(cell, runs).await;
    }

    pub(crate) fn instance(&self, guid: &str, index: u32) -> Option<ActualLrp> {
        let key = LrpKey { process_guid: guid.into(), index };
        self.board.look(guid, |records| records.instances.get(&key).cloned())
    }

    pub(crate) fn task(&self, guid: &str) -> Option<Task> {
        self.board.look(guid, |records| records.tasks.get(&guid.into()).cloned())
    }
}

pub(crate) fn presence(cell: &str) -> CellPresence {
    CellPresence {
        home: String::new(),
        cell_id: cell.into(),
        url: format!("http://{cell}"),
        zone: "z".to_owned(),
        capacity: Resources { memory_mb: 1 << 20, disk_mb: 1 << 20, containers: 10_000 },
        rootfs_schemes: Vec::new(),
        placement_tags: Vec::new(),
        optional_placement_tags: Vec::new(),
        evacuating: false,
        version: String::new(),
    }
}

pub(crate) fn lrp(guid: &str, instances: u32) -> DesiredLrp {
    serde_json::from_value(serde_json::json!({
        "process_guid": guid, "domain": "d", "instances": instances, "memory_mb": 16,
        "action": {"run": {"path": "sleep", "args": ["1"]}},
    }))
    .unwrap()
}

pub(crate) fn desire(guid: &str, instances: u32) -> Request {
    Request::Desire(Box::new(lrp(guid, instances)))
}

pub(crate) fn definition(guid: &str) -> TaskDefinition {
    serde_json::from_value(serde_json::json!({
        "task_guid": guid, "domain": "d", "memory_mb": 16, "action": {"run": {"path": "true"}},
    }))
    .unwrap()
}

pub(crate) fn create(definition: TaskDefinition) -> Request {
    let instance_guid = InstanceGuid::new(format!("{}-instance", definition.task_guid));
    Request::CreateTask { definition: Box::new(definition), instance_guid }
}

pub(crate) fn set_domain(domain: &str) -> Request {
    Request::SetDomain { domain: domain.into(), ttl: None }
}

/// So many names that lie in one shard.
pub(crate) fn neighbours(count: usize) -> Vec<String> {
    let names = (0..).map(|n| format!("n{n}"));
    let found: BTreeSet<String> =
        names.filter(|name| shard_of(name, SHARDS) == 3).take(count).collect();
    found.into_iter().collect()
}
