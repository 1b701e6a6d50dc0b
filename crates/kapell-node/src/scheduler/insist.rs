//! Requests to the board that must not be lost while this host leads.

use std::time::Duration;

use kapell_core::board::{Refusal, Reply, Request};
use kapell_core::job::JobRequest;

use crate::board::{Board, Declined};

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// As [`insist`], for what the board could not decide just now.
pub(super) async fn insist_later(board: &Board, request: JobRequest) -> Result<Reply, Refusal> {
    tokio::time::sleep(FIRST_WAIT).await;
    insist(board, request).await
}

/// Asks until the board has decided. What it refuses it will always refuse.
pub(super) async fn insist(board: &Board, request: JobRequest) -> Result<Reply, Refusal> {
    let mut wait = FIRST_WAIT;
    loop {
        match board.ask(Request::Job(request.clone())).await {
            Ok(reply) => return Ok(reply),
            Err(Declined::Refused(why)) => return Err(why),
            Err(
                Declined::Busy
                | Declined::ReadOnly(_)
                | Declined::Unsettled(_)
                | Declined::NotLeading,
            ) => {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }
}
