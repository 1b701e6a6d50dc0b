//! Brings what is there to what is desired: looks at everything, plans, asks the board.

use std::time::Duration;

use kapell_core::board::Records;
use kapell_core::board::converge::{converge, next_due};
use kapell_core::seams::{Moment, Timestamp};
use kapell_store::model::SHARDS;

use super::handle::{Board, Declined};
use super::meters::Meters;

/// Between two passes unless a cell was lost: what stays due must not keep us busy.
const PAUSE: Duration = Duration::from_millis(250);

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
            () = board.alarm().rung() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

fn until(due: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(due.0.saturating_sub(now.0)).unwrap_or(0))
}

/// One pass. It ends when all that was planned is answered, so that nothing is planned twice.
async fn pass(board: &Board) {
    let begun = board.clock().now();
    let now = board.clock().wall();
    let plan = {
        let mut snapshot: Vec<Records> = Vec::with_capacity(usize::from(SHARDS));
        board.look_at_all(|records| snapshot.push(records.clone()));
        let shards: Vec<&Records> = snapshot.iter().collect();
        let present = board.presences().counted(board.named_cells(), begun);
        converge(&shards, &present, now, board.settings())
    };
    let answers: Vec<_> = plan.into_iter().map(|request| board.ask_inside(request)).collect();
    let planned = answers.len();
    for answer in answers {
        match answer.await {
            Ok(Ok(_) | Err(Declined::Refused(_) | Declined::Busy | Declined::Store(_))) => {}
            Ok(Err(Declined::NotLeading)) | Err(_) => return,
        }
    }
    let due = {
        let sheets: Vec<_> = (0..SHARDS).map(|shard| board.sheet(shard)).collect();
        let shards: Vec<&Records> = sheets.iter().map(|sheet| sheet.records()).collect();
        // As of the plan: what became due since then was not in it.
        next_due(&shards, now, board.settings())
    };
    if let Some(due) = due {
        board.alarm().no_later_than(due);
    }
    let took = board.clock().now().since(begun);
    Meters::add(&board.meters().converged, 1);
    Meters::add_time(&board.meters().converge_micros, took);
    tracing::debug!(planned, ?took, "converged");
}
