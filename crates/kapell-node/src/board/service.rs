//! The board as a service: loads, listens, and runs until its stage ends.

use std::collections::BTreeSet;
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use kapell_core::board::{ActualState, CellId, Effect, Request, Settings, Task, TaskState};
use kapell_core::job::JobRequest;
use kapell_core::planted::Flaw;
use kapell_core::seams::{Clock, Ids, Moment};
use kapell_store::model::Shard;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::alarm::Alarm;
use super::callback::{self, Callbacks};
use super::handle::{Board, Shared};
use super::hub::Hub;
use super::keeper::Keeper;
use super::lanes::{Lanes, lanes};
use super::load::{Loaded, load};
use super::meters::Meters;
use super::newsstand::Newsstand;
use super::orders::{self, Order};
use super::presence::Presences;
use super::sheet::Sheet;
use super::slot::{BoardSlot, Shown};
use super::steady::Steady;
use super::trouble::Trouble;
use super::{convergence, watcher};
use crate::auctioneer::{self, Start, Starts};
use crate::conductor::{Failure, Running, Service, Stage};
use crate::elections::Tenure;
use crate::link::CellLink;

/// What a board is made of.
#[derive(Debug, Clone)]
pub struct Parts {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub cells: Arc<dyn CellLink>,
    pub callbacks: Arc<dyn Callbacks>,
    /// Where the board is shown while it is there.
    pub slot: BoardSlot,
}

/// Runs the board and its auctioneer, whose queue holds what the board's commits call for.
#[derive(Debug)]
pub struct BoardService {
    parts: Parts,
}

/// What is taken in by the tasks of a board.
struct Inlets {
    lanes: Vec<Lanes>,
    orders: mpsc::Receiver<Order>,
    callbacks: mpsc::Receiver<Box<Task>>,
}

/// The end of a part of the board: by itself only keepers may end, when they are told to.
type Ended = Result<(), String>;

impl BoardService {
    pub const fn new(parts: Parts) -> Self {
        Self { parts }
    }

    fn build(&self, tenure: &Tenure, clock: &Arc<Steady>, sheets: Vec<Sheet>) -> (Board, Inlets) {
        let parts = &self.parts;
        let named: BTreeSet<CellId> =
            sheets.iter().flat_map(|sheet| sheet.records().cells().cloned()).collect();
        let (doors, lanes) = sheets.iter().map(|_| lanes()).unzip();
        let (order, orders) = mpsc::channel(orders::WAITING);
        let (call, callbacks) = mpsc::channel(callback::WAITING);
        let ttl = parts.settings.presence_ttl;
        let hasty = parts.settings.planted.has(Flaw::NoPresenceGrace);
        let began = if hasty { Moment::ZERO } else { clock.now() };
        let board = Board::new(Shared {
            tenure: tenure.clone(),
            settings: parts.settings.clone(),
            clock: Arc::clone(clock) as Arc<dyn Clock>,
            wall: Arc::clone(&parts.clock),
            ids: Arc::clone(&parts.ids),
            cells: Arc::clone(&parts.cells),
            sheets: sheets.into_iter().map(RwLock::new).collect(),
            doors,
            presences: Presences::new(ttl, began, named),
            hub: Arc::new(Hub::new(tenure.epoch())),
            alarm: Alarm::default(),
            starts: Starts::default(),
            orders: order,
            callbacks: call,
            meters: Meters::default(),
            trouble: Trouble::default(),
            scheduler: Newsstand::default(),
            circles: super::circles::Pending::default(),
            sights: Arc::default(),
        });
        (board, Inlets { lanes, orders, callbacks })
    }

    fn spawn(&self, stage: &Stage, board: &Board, inlets: Inlets) -> JoinSet<Ended> {
        let mut tasks = JoinSet::new();
        let shards = Shard::all(stage.tenure.seat());
        for ((shard, fence), lanes) in shards.zip(&stage.fences).zip(inlets.lanes) {
            let keeper = Keeper::new(board.clone(), shard, *fence, lanes, stage.stop.clone());
            tasks.spawn(keeper.run());
        }
        let stop = &stage.stop;
        until(stop, &mut tasks, watcher::run(board.clone()));
        until(stop, &mut tasks, orders::run(board.clone(), inlets.orders));
        let calls = Arc::clone(&self.parts.callbacks);
        until(stop, &mut tasks, callback::run(board.clone(), calls, inlets.callbacks));
        until(stop, &mut tasks, auctioneer::run(board.clone()));
        until(stop, &mut tasks, convergence::run(board.clone()));
        tasks
    }
}

/// Runs it until the word to stop.
fn until(
    stop: &CancellationToken,
    tasks: &mut JoinSet<Ended>,
    task: impl Future<Output = ()> + Send + 'static,
) {
    let stop = stop.clone();
    tasks.spawn(async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            () = task => Err("a part of the board ended by itself".to_owned()),
        }
    });
}

/// What the leader before us may have asked for in vain is asked for again: whatever was
/// placed after all claims what it has, and the second try finds nothing to do. Calls that
/// waited for their turn there wait here now.
fn start_again(board: &Board) {
    board.look_at_all(|records| {
        for lrp in records.instances_as(ActualState::Unclaimed) {
            board.starts().add(Start::Lrp(lrp.key()));
        }
        for guid in records.tasks_as(TaskState::Pending) {
            board.starts().add(Start::Task(guid.clone()));
        }
        for guid in records.tasks_as(TaskState::Completed) {
            let wants = |task: &&Task| !task.definition.completion_callback_url.is_empty();
            if let Some(task) = records.tasks.get(guid).filter(wants) {
                board.perform(Effect::CallBack { task: Box::new(task.clone()) });
            }
        }
        for job in records.jobs.values().filter(|job| job.removed) {
            board.ask_itself(Request::Job(JobRequest::Settle { job_id: job.job_id.clone() }));
        }
    });
}

#[async_trait]
impl Service for BoardService {
    fn name(&self) -> &'static str {
        "board"
    }

    async fn start(&self, stage: Stage) -> Result<Running, Failure> {
        let clock = Arc::new(Steady::new(Arc::clone(&self.parts.clock)));
        let Loaded { sheets, fences } = load(&stage.tenure, &stage.fences, clock.wall()).await?;
        let stage = Stage { fences, ..stage };
        let (board, inlets) = self.build(&stage.tenure, &clock, sheets);
        start_again(&board);
        let tasks = self.spawn(&stage, &board, inlets);
        let shown = self.parts.slot.show(board.clone());
        let close = Close { board, shown: Some(shown) };
        Ok(Running::new(run(stage.stop, tasks, close)))
    }
}

/// Nobody sees a board that has ended, however it ended.
struct Close {
    board: Board,
    shown: Option<Shown>,
}

impl Drop for Close {
    fn drop(&mut self) {
        self.shown.take();
        self.board.hub().close();
    }
}

async fn run(stop: CancellationToken, mut tasks: JoinSet<Ended>, mut close: Close) -> Ended {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled(), if close.shown.is_some() => drop(close.shown.take()),
            ended = tasks.join_next() => match ended {
                None => return Ok(()),
                Some(Ok(Ok(()))) if stop.is_cancelled() => {}
                Some(Ok(Ok(()))) => return Err("a shard of the board ended by itself".to_owned()),
                Some(Ok(Err(why))) => return Err(why),
                Some(Err(error)) => return Err(panicked(&error)),
            },
        }
    }
}

fn panicked(error: &JoinError) -> String {
    format!("a part of the board failed: {error}")
}
