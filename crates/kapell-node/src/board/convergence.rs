//! Brings what is there to what is desired: looks at everything, plans, asks the board.

use std::time::Duration;

use kapell_core::board::converge::{self, Fresh, Pass, Place, Slice, next_due};
use kapell_core::seams::{Moment, Timestamp};
use kapell_store::model::SHARDS;

use super::handle::Board;
use super::meters::Meters;
use super::open::Open;

/// Between two passes unless a cell was lost: what stays due must not keep us busy.
const PAUSE: Duration = Duration::from_millis(250);
/// How many records are looked at in one go: those who want to change them wait for it.
const SLICE: usize = 8192;
/// For how long it is believed which domains are fresh: a pass may have to wait.
const OLD: Duration = Duration::from_millis(250);

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
        board.alarm().set_next(Some(board.clock().now().after(wait)));
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

/// One pass. It ends when all that was planned is answered, so that nothing is planned twice; for
/// what a lost cell held it is interrupted.
///
/// A shard is looked at in slices, each under its lock for a moment only; what is planned is
/// checked again when it is decided.
async fn pass(board: &Board) {
    let begun = board.clock().now();
    let now = board.clock().wall();
    let mut fresh = Fresh::default();
    let mut asked = Open::default();
    let mut looked = None;
    for shard in 0..SHARDS {
        let mut from = Some(Place::Start);
        while let Some(place) = from.take() {
            let at = board.clock().now();
            if looked.is_none_or(|looked| at.since(looked) >= OLD) {
                fresh = all_fresh(board);
                looked = Some(at);
            }
            let pass = Pass { fresh: &fresh, now, settings: board.settings() };
            let slice = look(board, &pass, shard, &place);
            from = slice.next;
            for request in slice.requests {
                if asked.add(board, request).await.is_err() {
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    }
    let planned = asked.count();
    let planning = board.clock().now().since(begun);
    if asked.end(board).await.is_err() {
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

fn all_fresh(board: &Board) -> Fresh {
    let now = board.clock().wall();
    let mut fresh = Fresh::default();
    board.look_at_all(|records| fresh.extend(converge::fresh(records, now)));
    fresh
}

/// Plans for a part of a shard, with its records as they are now and then the cells.
fn look(board: &Board, pass: &Pass<'_>, shard: u16, from: &Place) -> Slice {
    let sheet = board.sheet(shard);
    let records = sheet.records();
    let gone = board.presences().absent(records.cells(), board.clock().now());
    pass.slice(records, &gone, from, SLICE)
}
