//! How much is worked on at once.

use std::sync::{Arc, OnceLock};

use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Limits;
use super::answer::Problem;

/// Requests wait for their turn here, unless too many wait already. Cells need none: presence and convergence go on,
/// whatever others ask. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    /// All that wait or are worked on.
    requests: Arc<Semaphore>,
    /// Of those, the ones that are worked on.
    at_once: Arc<Semaphore>,
}

/// What a request has while it is worked on.
#[derive(Debug)]
struct Turn {
    _place: OwnedSemaphorePermit,
    _turn: Option<OwnedSemaphorePermit>,
}

/// The turn of one request, which it gets when all of it is there: who sends slowly keeps nobody from theirs. Clones are
/// of the same request; it ends with the last of them.
#[derive(Debug, Clone)]
pub(super) struct InTurn {
    /// None for those who need not wait.
    turns: Option<Turns>,
    taken: Arc<OnceLock<Turn>>,
}

impl Turns {
    pub(super) fn new(limits: &Limits) -> Self {
        let requests = Arc::new(Semaphore::new(limits.requests));
        Self { requests, at_once: Arc::new(Semaphore::new(limits.at_once)) }
    }

    pub(super) fn begin(&self, needs_none: bool) -> InTurn {
        let turns = (!needs_none).then(|| self.clone());
        InTurn { turns, taken: Arc::default() }
    }
}

impl InTurn {
    /// Waits for the turn.
    pub(super) async fn come(&self) -> Result<(), Box<Problem>> {
        let Some(turns) = &self.turns else { return Ok(()) };
        let place = Arc::clone(&turns.requests).try_acquire_owned().map_err(|_| {
            let text = "this host has too much to do: ask again; nothing was done";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", text).passing()
        })?;
        let turn = Arc::clone(&turns.at_once).acquire_owned().await.ok();
        let _first = self.taken.set(Turn { _place: place, _turn: turn });
        Ok(())
    }
}
