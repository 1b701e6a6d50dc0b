//! One round: ask the cells how they stand, place, hand over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kapell_core::auction::{self, Auction, Cause, Limits, Placed};
use kapell_core::board::placement::{NO_ANSWER, NO_CELL, refused_by};
use kapell_core::board::{CellId, CellPresence, CellState, LrpKey, Request};
use kapell_core::seams::Moment;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::SLICE;
use super::handover::hand_over;
use super::starts::Start;
use super::wanted::{describe, said};
use crate::board::{Board, Meters};
use crate::link::LinkError;

/// How long a cell may take to answer, and for how long one that did not is left out.
const LIMIT: Duration = Duration::from_secs(5);
/// How many cells are asked at once: a few hundred silent ones hold up the others for seconds, not minutes.
const AT_ONCE: usize = 256;

/// What lasts from round to round.
#[derive(Debug, Default)]
pub(super) struct Round {
    silent: BTreeMap<CellId, Moment>,
}

#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// How much cells have taken.
    pub(super) placed: usize,
    /// Something waits for others to have started.
    pub(super) in_flight: bool,
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

/// What of all that cells hold is told: with all cells it is a lot.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kept<'a> {
    All,
    /// Instances of the same processes.
    SiblingsOf(&'a BTreeSet<Start>),
}

impl Kept<'_> {
    pub(super) fn of(self, state: &mut CellState) {
        match self {
            Self::All => {}
            Self::SiblingsOf(batch) => {
                state.lrps.retain(|held| has_siblings(batch, &held.key));
                state.tasks = Vec::new();
            }
        }
    }
}

impl Round {
    pub(super) async fn run(&mut self, board: &Board, batch: BTreeSet<Start>) -> Outcome {
        Meters::add(&board.meters().rounds, 1);
        let field = self.ask_cells(board, Kept::SiblingsOf(&batch)).await;
        // Looked up after the cells have answered: what changed meanwhile is not placed.
        let work = describe(board, &batch).await;
        let mut outcome = Outcome::default();
        if field.states.is_empty() {
            let why = if field.cells.is_empty() { NO_CELL } else { NO_ANSWER };
            for work in &work {
                fail(board, field.whole, work, why, &mut outcome);
            }
            return outcome;
        }
        let placed = plan(board, field.states, work).await;
        for (at, (work, reason, why)) in (1..).zip(placed.failed()) {
            let limited = why.cause == Cause::InFlightLimit;
            outcome.in_flight |= limited;
            fail(board, field.whole && !limited, work, reason, &mut outcome);
            if at % SLICE == 0 {
                tokio::task::yield_now().await;
            }
        }
        let mut by_cell: BTreeMap<CellId, Vec<Start>> = BTreeMap::new();
        for (cell_id, work) in placed.assigned() {
            by_cell.entry(cell_id.clone()).or_default().push(start_of(work));
        }
        self.hand_over(board, &field.cells, by_cell, &mut outcome).await;
        outcome
    }

    /// How the cells stand.
    pub(super) async fn ask_cells(&mut self, board: &Board, kept: Kept<'_>) -> Field {
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
                Ok((_, Ok(mut state))) => {
                    board.starts().answered(&state.cell_id);
                    kept.of(&mut state);
                    states.push(state);
                }
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
                let now = board.clock().now();
                self.silent.insert(cell_id.clone(), now.after(LIMIT));
                board.starts().fell_silent(cell_id, now);
            }
            LinkError::Refused(_) => {}
        }
    }

    /// All cells at once.
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
                let share = hand_over(&board, &cell, starts).await;
                (cell.cell_id, share)
            });
        }
        while let Some(done) = sent.join_next().await {
            let Ok((cell_id, share)) = done else { continue };
            outcome.placed += share.placed;
            outcome.carried.extend(share.carried);
            for (start, why) in share.refused {
                note(board, start, &refused_by(&cell_id, &why), false);
            }
            if let Some(error) = share.silent {
                self.failed(board, cell_id, &error);
            }
        }
    }
}

/// Places a batch, and lets others run in between.
async fn plan(board: &Board, states: Vec<CellState>, work: Vec<auction::Work>) -> Placed {
    let in_flight_starts = board.settings().in_flight_starts;
    let mut auction = Auction::new(states, work, Limits { in_flight_starts });
    while auction.step(SLICE) {
        tokio::task::yield_now().await;
    }
    auction.finish()
}

/// Whether the batch has an instance of the same process.
fn has_siblings(batch: &BTreeSet<Start>, key: &LrpKey) -> bool {
    let first = Start::Lrp(LrpKey { process_guid: key.process_guid.clone(), index: 0 });
    batch.range(first..).next().is_some_and(|start| match start {
        Start::Lrp(next) => next.process_guid == key.process_guid,
        Start::Task(_) => false,
    })
}

pub(super) async fn limited<T>(
    call: impl Future<Output = Result<T, LinkError>>,
) -> Result<T, LinkError> {
    let answer = tokio::time::timeout(LIMIT, call).await;
    answer.unwrap_or_else(|_| Err(LinkError::NoAnswer(format!("no answer within {LIMIT:?}"))))
}

fn start_of(work: &auction::Work) -> Start {
    match work {
        auction::Work::Lrp { key, .. } => Start::Lrp(key.clone()),
        auction::Work::Task { task_guid, .. } => Start::Task(task_guid.clone()),
    }
}

/// What fits nowhere. An LRP waits for room; a task fails, once nothing better can come.
fn fail(board: &Board, whole: bool, work: &auction::Work, reason: &str, outcome: &mut Outcome) {
    Meters::add(&board.meters().not_placed, 1);
    let start = start_of(work);
    let last = match &start {
        Start::Lrp(_) => false,
        Start::Task(_) => whole,
    };
    note(board, start.clone(), reason, last);
    if !last {
        outcome.carried.push(start);
    }
}

/// Has the board say why something is not placed, unless it does so already. If this is the `last` word, it fails.
fn note(board: &Board, start: Start, reason: &str, last: bool) {
    if last || said(board, &start).is_none_or(|said| is_news(&said, reason)) {
        let reason = reason.to_owned();
        board.ask_itself(match start {
            Start::Lrp(key) => Request::FailPlacement { key, reason },
            Start::Task(task_guid) => Request::FailTaskPlacement { task_guid, reason, last },
        });
    }
}

/// Whether a reason says another one. The figures in its brackets change with every unit that is placed
/// anywhere, and are not worth a commit for each that waits.
fn is_news(said: &str, reason: &str) -> bool {
    let head = |text: &str| text.split(" (").next().unwrap_or_default().to_owned();
    head(said) != head(reason)
}
