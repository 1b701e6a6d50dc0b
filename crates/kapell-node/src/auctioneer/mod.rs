//! The auctioneer: finds cells for what is to be started, batch after batch.
//!
//! The board's service runs it. Work that arrives during a round makes the next batch. What
//! could not be placed is tried again with new work, when a cell has room, or after a while.

mod handover;
mod round;
mod starts;
mod wanted;

#[cfg(test)]
mod tests;

use std::time::Duration;

use kapell_core::seams::Moment;

use crate::board::Board;
pub(crate) use round::Field;
use round::{Kept, Round};
pub(crate) use starts::{Start, Starts};

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The longest wait for what is starting to have started, of which no news comes.
const IN_FLIGHT_WAIT: Duration = Duration::from_secs(1);
/// How many units are looked at before others may run.
pub(crate) const SLICE: usize = 2000;
/// Between two rounds that only news of room calls for: a busy cluster frees room all the time.
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// Places work until it is dropped.
pub(crate) async fn run(board: Board) {
    let mut round = Round::default();
    let mut wait = FIRST_WAIT;
    let mut last: Option<Moment> = None;
    loop {
        let cause = next(&board, last, wait).await;
        let batch = board.starts().take();
        let mut carried = Vec::new();
        if board.may_act() && !batch.is_empty() {
            let outcome = round.run(&board, batch).await;
            wait = match cause {
                Cause::NewWork | Cause::Again if outcome.placed > 0 => FIRST_WAIT,
                Cause::NewWork => wait,
                Cause::Room => FIRST_WAIT,
                Cause::Again if outcome.in_flight => (wait * 2).min(IN_FLIGHT_WAIT),
                Cause::Again => (wait * 2).min(LONGEST_WAIT),
            };
            carried = outcome.carried;
        }
        board.starts().carry(carried);
        last = Some(board.clock().now());
    }
}

/// Asks every cell how it stands, as a round does.
pub(crate) async fn ask_cells(board: &Board) -> Field {
    Round::default().ask_cells(board, Kept::All).await
}

/// Why a batch is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    NewWork,
    Room,
    Again,
}

/// Waits until a batch is to be begun.
async fn next(board: &Board, last: Option<Moment>, wait: Duration) -> Cause {
    loop {
        let outlook = board.starts().outlook();
        if outlook.fresh {
            return Cause::NewWork;
        }
        if !outlook.carried {
            board.starts().changed().await;
            continue;
        }
        let since = last.map_or(Duration::MAX, |last| board.clock().now().since(last));
        let pause = if outlook.room { ROOM_PAUSE } else { wait };
        let rest = pause.saturating_sub(since);
        if rest.is_zero() {
            return if outlook.room { Cause::Room } else { Cause::Again };
        }
        board.starts().due_at(board.clock().now().after(rest));
        tokio::select! {
            biased;
            () = board.starts().changed() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}
