//! Notices cells that are not heard of any more.

use std::time::Duration;

use super::handle::Board;

/// How often to look at least: a machine that slept is noticed by how late we are.
const TICK: Duration = Duration::from_secs(1);
/// Later than this we were not there to hear anybody.
const LATE: Duration = Duration::from_secs(2);

/// Watches until it is dropped.
pub(super) async fn run(board: Board) {
    let tick = TICK.min(board.settings().presence_ttl / 4);
    let mut awaiting = true;
    loop {
        let now = board.clock().now();
        let wait = board.presences().next_expiry().map_or(tick, |at| at.since(now).min(tick));
        // A moment that has a part of a millisecond left is waited for as well.
        let wait = wait.max(Duration::from_millis(1));
        tokio::time::sleep(wait).await;
        let woken = board.clock().now();
        let late = woken.since(now.after(wait));
        if late > LATE {
            tracing::warn!(?late, "this host was asleep: waiting for all cells once more");
            board.presences().forgive(woken);
        }
        if std::mem::replace(&mut awaiting, board.awaits_cells()) && !awaiting {
            // What waited for cells to come need not wait any longer.
            board.starts().room();
        }
        let lost = board.presences().expire(woken);
        if !lost.is_empty() {
            for cell_id in &lost {
                tracing::warn!(%cell_id, "a cell is not heard of any more");
            }
            board.lost(lost);
        }
    }
}
