//! Brings what is there to what is desired: looks at everything, plans, asks the board.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use kapell_core::board::converge::{self, Pass, Place, Slice, next_due};
use kapell_core::seams::{Moment, Timestamp};
use kapell_store::model::SHARDS;
use tokio::sync::oneshot;

use super::handle::{Board, Declined};
use super::lanes::Answer;
use super::meters::Meters;

/// Between two passes unless a cell was lost: what stays due must not keep us busy.
const PAUSE: Duration = Duration::from_millis(250);
/// How many records are looked at in one go: those who want to change them wait for it.
const SLICE: usize = 8192;
/// How many requests of a pass may wait for their answers: the lanes are not to be filled by it.
const MOST_OPEN: usize = 4096;

/// Passes at once, then whenever it is time, until it is dropped.
pub(super) async fn run(board: Board) {
    loop {
        board.alarm().clear();
        let begun = board.clock().now();
        if board.may_act() {
            pass(&board).await;
        }
        wait(&board, begun).await;
    }
}

async fn wait(board: &Board, last: Moment) {
    let every = board.settings().converge_every;
    loop {
        let wanted = board.alarm().look();
        if wanted.at_once {
            return;
        }
        let since = board.clock().now().since(last);
        let rest = every.saturating_sub(since);
        let due =
            wanted.due.map(|due| until(due, board.clock().wall()).max(PAUSE.saturating_sub(since)));
        let wait = due.unwrap_or(rest).min(rest);
        if wait.is_zero() {
            return;
        }
        tokio::select! {
            biased;
            () = board.alarm().rung() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

fn until(due: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(due.0.saturating_sub(now.0)).unwrap_or(0))
}

/// One pass. It ends when all that was planned is answered, so that nothing is planned twice.
///
/// A shard is looked at in slices, each under its lock for a moment only; what is planned is
/// checked again when it is decided.
async fn pass(board: &Board) {
    let begun = board.clock().now();
    let now = board.clock().wall();
    let mut fresh = BTreeSet::new();
    board.look_at_all(|records| fresh.extend(converge::fresh(records, now)));
    let pass = Pass { fresh: &fresh, now, settings: board.settings() };
    let mut asked = Open::default();
    for shard in 0..SHARDS {
        let mut from = Some(Place::Start);
        while let Some(place) = from.take() {
            let slice = look(board, &pass, shard, &place);
            from = slice.next;
            for request in slice.requests {
                if asked.add(board.ask_inside(request)).await.is_err() {
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    }
    let planned = asked.count;
    let planning = board.clock().now().since(begun);
    if asked.end().await.is_err() {
        return;
    }
    // As of the plan: what became due since then was not in it.
    let due = |shard| next_due(&[board.sheet(shard).records()], now, board.settings());
    if let Some(due) = (0..SHARDS).filter_map(due).min() {
        board.alarm().no_later_than(due);
    }
    let took = board.clock().now().since(begun);
    Meters::add(&board.meters().converged, 1);
    Meters::add_time(&board.meters().converge_micros, took);
    tracing::debug!(planned, ?planning, ?took, "converged");
}

/// Plans for a part of a shard, with its records as they are now and then the cells.
fn look(board: &Board, pass: &Pass<'_>, shard: u16, from: &Place) -> Slice {
    let sheet = board.sheet(shard);
    let records = sheet.records();
    let gone = board.presences().absent(records.cells(), board.clock().now());
    pass.slice(records, &gone, from, SLICE)
}

/// What was asked and is not answered yet.
#[derive(Debug, Default)]
struct Open {
    answers: VecDeque<oneshot::Receiver<Answer>>,
    count: usize,
}

/// The seat is lost: there is no use in going on.
struct Lost;

impl Open {
    /// Waits for the oldest answer if too many are open.
    async fn add(&mut self, answer: oneshot::Receiver<Answer>) -> Result<(), Lost> {
        self.count += 1;
        self.answers.push_back(answer);
        if self.answers.len() > MOST_OPEN { self.next().await } else { Ok(()) }
    }

    async fn next(&mut self) -> Result<(), Lost> {
        let Some(answer) = self.answers.pop_front() else { return Ok(()) };
        match answer.await {
            Ok(Ok(_) | Err(Declined::Refused(_) | Declined::Busy | Declined::Store(_))) => Ok(()),
            Ok(Err(Declined::NotLeading)) | Err(_) => Err(Lost),
        }
    }

    async fn end(mut self) -> Result<(), Lost> {
        while !self.answers.is_empty() {
            self.next().await?;
        }
        Ok(())
    }
}
