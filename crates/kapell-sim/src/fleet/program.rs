//! What runs in the processes of hosts and cells: the real code.

use std::sync::{Arc, Mutex, PoisonError};

use kapell_core::board::{CellId, Request, Resources};
use kapell_core::job::JobRequest;
use kapell_core::planted::Planted;
use kapell_core::seams::{Clock, Ids};
use kapell_core::seat::{Epoch, Seat};
use kapell_node::board::{self, BoardService, BoardSlot, decide_reports};
use kapell_node::cell::{self, Cell, HttpTransfers, LocalProbes};
use kapell_node::conductor::{self, Conductor, Problem, TokioTasks};
use kapell_node::elections::{self, Leased};
use kapell_node::scheduler::{self, SchedulerService, SchedulerSlot};

use super::desk::{Desk, Seen};
use super::fact::Fact;
use super::jobs::supplies::HostSupplies;
use super::jobs::yard::Yard;
use super::links::{Cells, Hosts, Receivers};
use super::machine::Driver;
use super::mail::{Answer, Answered, Ask, Failed};
use super::timing::{self, LEASE};
use crate::parts::chance::{Chance, Names};
use crate::parts::clock::Drifting;
use crate::parts::link::Link;
use crate::parts::observed::Observed;

/// What every process of a host is made with.
#[derive(Debug, Clone)]
pub(super) struct HostParts {
    pub(super) clock: Arc<Drifting>,
    pub(super) desk: Arc<Desk>,
    pub(super) slot: BoardSlot,
    /// The machine it runs on.
    pub(super) yard: Arc<Yard>,
    pub(super) planted: Planted,
}

/// A host's program: it launches again and again, as `kapell host` does.
pub(super) async fn host(parts: HostParts, mut chance: Chance) {
    while launch_once(&parts, &mut chance).await {}
    parts.desk.end();
}

/// Whether to launch once more.
async fn launch_once(parts: &HostParts, chance: &mut Chance) -> bool {
    let conductor = provide(parts, chance);
    conductor.launch(Some(LEASE * 6)).await.wait().await;
    match conductor.shutdown().await {
        Ok(()) => true,
        Err(problem) => match &*problem {
            // The killer of a lost seat is not disarmed: the program starts over.
            Problem::Lost(_) => false,
            Problem::NotAcquired(_) => true,
            Problem::Deposed(_)
            | Problem::Store(_)
            | Problem::Unfinished
            | Problem::Service { .. }
            | Problem::Unfit { .. } => {
                parts.desk.see(Seen::Note(format!("starts over: {problem}")));
                tokio::time::sleep(LEASE / 20).await;
                true
            }
        },
    }
}

fn provide(parts: &HostParts, chance: &mut Chance) -> Conductor {
    let desk = &parts.desk;
    let clock: Arc<dyn Clock> = Arc::<Drifting>::clone(&parts.clock);
    let leased = Leased::new(elections::Parts {
        store: Arc::new(Link { outbox: Arc::<Desk>::clone(desk), limit: LEASE / 4 }),
        clock: Arc::clone(&clock),
        ids: Arc::new(Names::new(chance.fork())),
        killer: Arc::<Desk>::clone(desk),
        lease: LEASE,
        address: "10.0.0.1:7070".to_owned(),
    });
    let board = BoardService::new(board::Parts {
        settings: timing::board(parts.planted),
        clock: Arc::clone(&clock),
        ids: Arc::new(Names::new(chance.fork())),
        cells: Arc::new(Cells(Arc::clone(desk))),
        callbacks: Arc::new(Receivers(Arc::clone(desk))),
        slot: parts.slot.clone(),
    });
    let scheduler = SchedulerService::new(scheduler::Parts {
        settings: timing::scheduler(),
        clock,
        board: parts.slot.clone(),
        supplies: Arc::new(HostSupplies {
            desk: Arc::clone(desk),
            yard: Arc::clone(&parts.yard),
            chance: Names::new(chance.fork()),
        }),
        slot: SchedulerSlot::default(),
    });
    Conductor::provide(conductor::Parts {
        elections: Arc::new(Observed { leased, onlooker: Arc::<Desk>::clone(desk) }),
        seats: Seat::all(1).collect(),
        pipeline: vec![Arc::new(board), Arc::new(scheduler)],
        tasks: Arc::new(TokioTasks::default()),
        trace: Arc::<Desk>::clone(desk),
        killer: Arc::<Desk>::clone(desk),
        stop_limit: LEASE / 2,
    })
}

/// What a host answers to those who ask it.
pub(super) async fn serve_host(host: usize, slot: BoardSlot, desk: &Desk, ask: Ask) -> Answered {
    let Some(board) = slot.get() else { return Err(Failed::NotLeading) };
    match ask {
        Ask::Present(presence) => {
            let cell = presence.cell_id.clone();
            let welcome = board.present(*presence).map_err(Failed::Refused)?;
            desk.see(Seen::Fact(Fact::Welcomed { host, cell }));
            Ok(Answer::Welcome(welcome))
        }
        Ask::Leave(cell) => {
            board.leave(&cell);
            desk.see(Seen::Fact(Fact::Left { host, cell }));
            Ok(Answer::Nothing)
        }
        Ask::Reports(cell, reports) => {
            let answers = decide_reports(|request| board.ask(request), &cell, reports).await;
            answers.map(Answer::Reports).map_err(Failed::Declined)
        }
        Ask::Records(cell, wanted) => Ok(Answer::Records(board.records(&cell, &wanted))),
        Ask::Request(mut request) => {
            if let Request::CreateTask { instance_guid, .. } = &mut *request {
                *instance_guid = board.draw_instance_guid();
            }
            // It is due when it is asked for, as whoever takes it sees the time.
            if let Request::Job(JobRequest::Trigger { run, .. }) = &mut *request {
                run.due_at = board.wall();
            }
            board.ask(*request).await.map(Answer::Reply).map_err(Failed::Declined)
        }
        Ask::Evacuate(cell) => Ok(board.evacuate(&cell).await.map(|()| Answer::Nothing)?),
        Ask::State(_)
        | Ask::Work(..)
        | Ask::Stop(..)
        | Ask::Cancel(..)
        | Ask::EvacuateNow(_)
        | Ask::Call(_)
        | Ask::Yard(_) => Err(Failed::Unreachable),
    }
}

/// Where the cell of an agent is to be found, once there is one.
pub(super) type CellSlot = Arc<Mutex<Option<Cell>>>;

/// What every agent of a machine is made with.
#[derive(Debug)]
pub(super) struct AgentParts {
    pub(super) at: usize,
    pub(super) id: CellId,
    pub(super) zone: String,
    pub(super) capacity: Resources,
    pub(super) clock: Arc<Drifting>,
    pub(super) desk: Arc<Desk>,
    pub(super) slot: CellSlot,
    pub(super) driver: Driver,
    pub(super) hosts: usize,
    pub(super) planted: Planted,
}

/// An agent's program, as `kapell cell` has it.
pub(super) async fn agent(parts: AgentParts, chance: Chance) {
    let desk = Arc::clone(&parts.desk);
    let started = Cell::start(cell::Parts {
        home: format!("home of {}", parts.id),
        id: parts.id,
        dir: None,
        settings: timing::cell(parts.planted),
        clock: parts.clock,
        ids: Arc::new(Names::new(chance)) as Arc<dyn Ids>,
        containers: Arc::new(parts.driver),
        transfers: Arc::new(HttpTransfers::new(None, timing::PATIENCE)),
        probes: Arc::new(LocalProbes),
        board: Arc::new(Hosts::new(&parts.desk, parts.hosts)),
        capacity: parts.capacity,
        zone: parts.zone,
        url: parts.at.to_string(),
        advertise_host: "10.0.0.2".to_owned(),
        placement_tags: Vec::new(),
        optional_placement_tags: Vec::new(),
    });
    if let Ok((cell, running)) = started.await {
        *parts.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(cell.clone());
        let run = running.run();
        let mut run = std::pin::pin!(run);
        tokio::select! {
            biased;
            () = &mut run => {}
            () = cell.evacuated() => {
                cell.shutdown(true);
                run.await;
            }
        }
    }
    desk.end();
}

/// What a cell answers to a leader.
pub(super) fn serve_cell(slot: &CellSlot, desk: &Desk, ask: Ask) -> Answered {
    let cell = slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(cell) = cell else { return Err(Failed::Unreachable) };
    let heeded = |epoch: Epoch, what| {
        let cell = cell.id().clone();
        desk.see(Seen::Fact(Fact::Heeded { cell, epoch, what }));
    };
    let (epoch, what, answer) = match ask {
        Ask::State(epoch) => {
            (epoch, "state", cell.state(epoch).map(|it| Answer::State(Box::new(it))))
        }
        Ask::Work(epoch, work) => (epoch, "work", cell.work(epoch, *work).map(Answer::Work)),
        Ask::Stop(epoch, stop) => {
            (epoch, "stop", cell.stop(epoch, &stop).map(|()| Answer::Nothing))
        }
        Ask::Cancel(epoch, cancel) => {
            (epoch, "cancel", cell.cancel(epoch, &cancel).map(|()| Answer::Nothing))
        }
        Ask::EvacuateNow(epoch) => {
            (epoch, "evacuate", cell.evacuate(epoch).map(|()| Answer::Nothing))
        }
        Ask::Present(_)
        | Ask::Leave(_)
        | Ask::Reports(..)
        | Ask::Records(..)
        | Ask::Request(_)
        | Ask::Evacuate(_)
        | Ask::Call(_)
        | Ask::Yard(_) => return Err(Failed::Unreachable),
    };
    if answer.is_ok() {
        heeded(epoch, what);
    }
    answer.map_err(Failed::Refused)
}
