//! One round: ask the cells how they stand, place, hand over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kapell_api::v1::{LrpWork, TaskWork, Work, WorkAnswer};
use kapell_core::auction::{self, place};
use kapell_core::board::placement::{NO_ANSWER, NO_CELL};
use kapell_core::board::{
    ActualState, CellId, CellPresence, CellState, LrpKey, Request, TaskGuid, TaskState,
};
use kapell_core::seams::Moment;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::starts::Start;
use crate::board::{Board, Meters};
use crate::link::LinkError;

/// How long a cell may take to answer, and for how long one that did not is left out.
const LIMIT: Duration = Duration::from_secs(5);
/// How many cells are asked at once.
const AT_ONCE: usize = 64;

/// What lasts from round to round.
#[derive(Debug, Default)]
pub(super) struct Round {
    silent: BTreeMap<CellId, Moment>,
}

#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// How much a cell has taken.
    pub(super) placed: usize,
    pub(super) carried: Vec<Start>,
}

/// How the cells stand.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) cells: BTreeMap<CellId, CellPresence>,
    pub(crate) states: Vec<CellState>,
    /// Every cell that is there has said how it stands, and no more are expected: what fits
    /// nowhere here fits nowhere.
    whole: bool,
}

impl Round {
    pub(super) async fn run(&mut self, board: &Board, batch: BTreeSet<Start>) -> Outcome {
        Meters::add(&board.meters().rounds, 1);
        let field = self.ask_cells(board).await;
        // Looked up after the cells have answered: what changed meanwhile is not placed.
        let work: Vec<auction::Work> =
            batch.iter().filter_map(|start| describe(board, start)).collect();
        let mut outcome = Outcome::default();
        if field.states.is_empty() {
            let why = if field.cells.is_empty() { NO_CELL } else { NO_ANSWER };
            let failed = work.into_iter().map(|work| (work, why.to_owned())).collect();
            fail(board, field.whole, failed, &mut outcome);
            return outcome;
        }
        let placed = place(field.states, work);
        fail(board, field.whole, placed.failed, &mut outcome);
        let mut by_cell: BTreeMap<CellId, Vec<Start>> = BTreeMap::new();
        for (cell_id, work) in placed.assigned {
            by_cell.entry(cell_id).or_default().push(start_of(&work));
        }
        self.hand_over(board, &field.cells, by_cell, &mut outcome).await;
        outcome
    }

    pub(super) async fn ask_cells(&mut self, board: &Board) -> Field {
        let now = board.clock().now();
        self.silent.retain(|_, until| now < *until);
        let all = board.takers();
        let count = all.len();
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut asked = JoinSet::new();
        let mut cells = BTreeMap::new();
        for cell in all {
            cells.insert(cell.cell_id.clone(), cell.clone());
            if self.silent.contains_key(&cell.cell_id) {
                continue;
            }
            let (board, room) = (board.clone(), Arc::clone(&room));
            asked.spawn(async move {
                let _room = room.acquire().await;
                let state = limited(board.link().state(&cell, board.epoch())).await;
                (cell.cell_id, state)
            });
        }
        let mut states = Vec::with_capacity(count);
        while let Some(done) = asked.join_next().await {
            match done {
                Ok((_, Ok(state))) => states.push(state),
                Ok((cell_id, Err(error))) => self.failed(board, cell_id, &error),
                Err(error) => tracing::warn!(%error, "asking a cell failed"),
            }
        }
        states.sort_by(|a, b| a.cell_id.cmp(&b.cell_id));
        let whole = states.len() == count && !board.awaits_cells();
        Field { cells, states, whole }
    }

    fn failed(&mut self, board: &Board, cell_id: CellId, error: &LinkError) {
        tracing::warn!(%cell_id, %error, "a cell did not answer the auctioneer");
        match error {
            LinkError::NoAnswer(_) => {
                self.silent.insert(cell_id, board.clock().now().after(LIMIT));
            }
            LinkError::Refused(_) => {}
        }
    }

    /// One request a cell, all at once.
    async fn hand_over(
        &mut self,
        board: &Board,
        cells: &BTreeMap<CellId, CellPresence>,
        by_cell: BTreeMap<CellId, Vec<Start>>,
        outcome: &mut Outcome,
    ) {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut sent = JoinSet::new();
        for (cell_id, starts) in by_cell {
            let Some(cell) = cells.get(&cell_id).cloned() else { continue };
            let (board, room) = (board.clone(), Arc::clone(&room));
            sent.spawn(async move {
                let _room = room.acquire().await;
                let work = compose(&board, &starts);
                let answer = if work == Work::default() || !board.may_act() {
                    Ok(WorkAnswer::default())
                } else {
                    limited(board.link().work(&cell, board.epoch(), &work)).await
                };
                (cell.cell_id, starts, answer)
            });
        }
        while let Some(done) = sent.join_next().await {
            let Ok((cell_id, starts, answer)) = done else { continue };
            match answer {
                Ok(answer) => taken(board, &starts, answer, outcome),
                Err(LinkError::Refused(problem)) => {
                    Meters::add(&board.meters().refused_by_cells, starts.len());
                    tracing::warn!(%cell_id, %problem, "a cell refused all of its work");
                    outcome.carried.extend(starts);
                }
                // It may have taken it. Convergence asks again for what it has not.
                Err(error @ LinkError::NoAnswer(_)) => self.failed(board, cell_id, &error),
            }
        }
    }
}

/// What a cell refuses is carried over; all else it has.
fn taken(board: &Board, starts: &[Start], answer: WorkAnswer, outcome: &mut Outcome) {
    let lrps = answer.refused_lrps.into_iter().map(|(key, why)| (Start::Lrp(key), why));
    let tasks = answer.refused_tasks.into_iter().map(|(guid, why)| (Start::Task(guid), why));
    let refused: BTreeMap<Start, String> = lrps.chain(tasks).collect();
    let before = outcome.carried.len();
    for start in starts {
        if let Some(why) = refused.get(start) {
            tracing::debug!(?start, why, "the chosen cell refused");
            outcome.carried.push(start.clone());
        }
    }
    let refused = outcome.carried.len() - before;
    outcome.placed += starts.len() - refused;
    Meters::add(&board.meters().refused_by_cells, refused);
    Meters::add(&board.meters().placed, starts.len() - refused);
}

async fn limited<T>(call: impl Future<Output = Result<T, LinkError>>) -> Result<T, LinkError> {
    let answer = tokio::time::timeout(LIMIT, call).await;
    answer.unwrap_or_else(|_| Err(LinkError::NoAnswer(format!("no answer within {LIMIT:?}"))))
}

fn start_of(work: &auction::Work) -> Start {
    match work {
        auction::Work::Lrp { key, .. } => Start::Lrp(key.clone()),
        auction::Work::Task { task_guid, .. } => Start::Task(task_guid.clone()),
    }
}

/// What is to be placed, as the board has it now; none if it is not to be placed any more.
fn describe(board: &Board, start: &Start) -> Option<auction::Work> {
    match start {
        Start::Lrp(key) => {
            let lrp = wanted_lrp(board, key)?.desired;
            Some(auction::Work::Lrp {
                key: key.clone(),
                memory_mb: lrp.memory_mb,
                disk_mb: lrp.disk_mb,
                rootfs: lrp.rootfs,
                placement_tags: lrp.placement_tags,
            })
        }
        Start::Task(guid) => {
            let task = wanted_task(board, guid)?.definition;
            Some(auction::Work::Task {
                task_guid: guid.clone(),
                memory_mb: task.memory_mb,
                disk_mb: task.disk_mb,
                rootfs: task.rootfs,
                placement_tags: task.placement_tags,
            })
        }
    }
}

fn wanted_lrp(board: &Board, key: &LrpKey) -> Option<LrpWork> {
    board.look(key.process_guid.as_str(), |records| {
        let lrp = records.instances.get(key)?;
        let desired = records.desired.get(&key.process_guid)?;
        let wanted = lrp.state == ActualState::Unclaimed && desired.wants_this(lrp);
        wanted.then(|| LrpWork { index: key.index, desired: desired.clone() })
    })
}

fn wanted_task(board: &Board, guid: &TaskGuid) -> Option<TaskWork> {
    board.look(guid.as_str(), |records| {
        let task = records.tasks.get(guid)?;
        let (definition, instance_guid) = (&task.definition, &task.instance_guid);
        (task.state == TaskState::Pending).then(|| TaskWork {
            definition: definition.clone(),
            instance_guid: instance_guid.clone(),
        })
    })
}

fn compose(board: &Board, starts: &[Start]) -> Work {
    let mut work = Work::default();
    for start in starts {
        match start {
            Start::Lrp(key) => work.lrps.extend(wanted_lrp(board, key)),
            Start::Task(guid) => work.tasks.extend(wanted_task(board, guid)),
        }
    }
    work
}

/// What fits nowhere. An LRP waits for room; a task fails, once nothing better can come.
fn fail(board: &Board, whole: bool, failed: Vec<(auction::Work, String)>, outcome: &mut Outcome) {
    Meters::add(&board.meters().not_placed, failed.len());
    for (work, reason) in failed {
        let start = start_of(&work);
        let last = match &start {
            Start::Lrp(_) => false,
            Start::Task(_) => whole,
        };
        if last || said(board, &start).as_ref() != Some(&reason) {
            board.ask_itself(match start.clone() {
                Start::Lrp(key) => Request::FailPlacement { key, reason },
                Start::Task(task_guid) => Request::FailTaskPlacement { task_guid, reason, last },
            });
        }
        if !last {
            outcome.carried.push(start);
        }
    }
}

/// What the board says already about why it is not placed.
fn said(board: &Board, start: &Start) -> Option<String> {
    match start {
        Start::Lrp(key) => board.look(key.process_guid.as_str(), |records| {
            records.instances.get(key)?.placement_error.clone()
        }),
        Start::Task(guid) => {
            board.look(guid.as_str(), |records| records.tasks.get(guid)?.placement_error.clone())
        }
    }
}
