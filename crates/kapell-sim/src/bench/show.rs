//! A leader in this process: a board with cells that take whatever they are given, and what else is to run beside it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use kapell_api::v1::{Cancel, Stop, Work, WorkAnswer};
use kapell_core::board::{CellPresence, CellState, Held, LrpKey, Settings};
use kapell_core::seams::Clock as _;
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use kapell_node::board::{Board, BoardService, BoardSlot, CallbackOutcome, Callbacks, Parts};
use kapell_node::conductor::{Service, Stage};
use kapell_node::elections::{Standing, Tenure};
use kapell_node::link::{CellLink, LinkError};
use kapell_node::system::{SystemClock, SystemIds};
use kapell_store::file::{FileStore, Holder};
use kapell_store::model::Raise;
use kapell_store::{How, Location, Store};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How the stores of benchmarks are opened.
pub fn how() -> How {
    How { create: true, timeout: Duration::from_secs(5), clock: Arc::new(SystemClock) }
}

/// The store at a URL.
pub async fn open(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    let location: Location = url.parse()?;
    let holder = Holder { pid: 0, address: None, command: String::new(), since_ms: 0 };
    Ok(location.open(&holder, &how()).await?)
}

/// The embedded store in a directory.
pub fn embedded(dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    let holder = Holder { pid: 0, address: None, command: String::new(), since_ms: 0 };
    Ok(Arc::new(FileStore::open(dir, &holder, &how())?))
}

/// Cells that remember how full they are, and nothing else.
#[derive(Debug, Default)]
pub struct Cells {
    taken: AtomicU32,
    held: Mutex<BTreeMap<String, Vec<Held<LrpKey>>>>,
}

impl Cells {
    /// How much work was handed over so far.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl CellLink for Cells {
    async fn state(&self, cell: &CellPresence, _epoch: Epoch) -> Result<CellState, LinkError> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let lrps = held.get(cell.cell_id.as_str()).cloned().unwrap_or_default();
        let mut available = cell.capacity;
        for lrp in &lrps {
            available.memory_mb = available.memory_mb.saturating_sub(lrp.memory_mb);
            available.disk_mb = available.disk_mb.saturating_sub(lrp.disk_mb);
            available.containers = available.containers.saturating_sub(1);
        }
        Ok(CellState {
            available,
            lrps,
            ..CellState::empty(cell.cell_id.clone(), cell.zone.clone(), cell.capacity)
        })
    }

    async fn work(
        &self,
        _cell: &CellPresence,
        _epoch: Epoch,
        work: &Work,
    ) -> Result<WorkAnswer, LinkError> {
        self.taken.fetch_add(u32::try_from(work.lrps.len()).unwrap_or(0), Ordering::Relaxed);
        Ok(WorkAnswer::default())
    }

    async fn stop(&self, _: &CellPresence, _: Epoch, _: &Stop) -> Result<(), LinkError> {
        Ok(())
    }

    async fn cancel(&self, _: &CellPresence, _: Epoch, _: &Cancel) -> Result<(), LinkError> {
        Ok(())
    }

    async fn evacuate(&self, _: &CellPresence, _: Epoch) -> Result<(), LinkError> {
        Ok(())
    }
}

impl Cells {
    /// What a cell says that it holds.
    pub fn hold(&self, cell: &str, lrp: Held<LrpKey>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.entry(cell.to_owned()).or_default().push(lrp);
    }
}

#[derive(Debug)]
struct NoCallbacks;

#[async_trait]
impl Callbacks for NoCallbacks {
    async fn call(&self, _url: &str, _body: &[u8]) -> CallbackOutcome {
        CallbackOutcome::Answered(200)
    }
}

/// A leader with its board.
#[derive(Debug)]
pub struct Show {
    pub board: Board,
    pub cells: Arc<Cells>,
    pub slot: BoardSlot,
    tenure: Tenure,
    stop: CancellationToken,
    running: JoinSet<Result<(), String>>,
}

impl Show {
    /// Takes the seat over and loads the board.
    pub async fn open(
        store: Arc<dyn Store>,
        epoch: Epoch,
        cells: Arc<Cells>,
    ) -> anyhow::Result<Self> {
        let Raise::Done(fences) = store.raise(Seat::FIRST, epoch).await? else {
            anyhow::bail!("somebody has a higher epoch")
        };
        let clock = Arc::new(SystemClock);
        let since = clock.wall();
        let record = Record { epoch, owner: Owner(epoch.0), address: String::new(), since };
        let standing = Standing::for_ever();
        let tenure =
            Tenure::new(Seat::FIRST, record, store, Arc::<SystemClock>::clone(&clock), standing);
        let slot = BoardSlot::default();
        let service = BoardService::new(Parts {
            settings: Settings::default(),
            clock,
            ids: Arc::new(SystemIds),
            cells: Arc::<Cells>::clone(&cells),
            callbacks: Arc::new(NoCallbacks),
            slot: slot.clone(),
        });
        let stop = CancellationToken::new();
        let stage = Stage { tenure: tenure.clone(), fences, stop: stop.clone() };
        let service =
            service.start(stage).await.map_err(|failure| anyhow::anyhow!("{failure:?}"))?;
        let mut running = JoinSet::new();
        running.spawn(service.0);
        let board = slot.get().context("it is shown")?;
        Ok(Self { board, cells, slot, tenure, stop, running })
    }

    /// Starts another service under the same seat, which goes by the board.
    pub async fn add(&mut self, service: &dyn Service) -> anyhow::Result<()> {
        let (tenure, stop) = (self.tenure.clone(), self.stop.clone());
        let started = service.start(Stage { tenure, fences: Vec::new(), stop }).await;
        self.running.spawn(started.map_err(|failure| anyhow::anyhow!("{failure:?}"))?.0);
        Ok(())
    }

    /// The value of one of the board's figures, all labels together.
    pub fn figure(&self, name: &str) -> f64 {
        let figures = self.board.figures();
        figures.iter().filter(|figure| figure.name == name).map(|figure| figure.value).sum()
    }

    pub async fn close(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.running.join_next().await {
            ended?.map_err(anyhow::Error::msg)?;
        }
        Ok(())
    }
}
