//! Runs that nobody can lead.

use std::sync::Arc;

use arcstr::ArcStr;
use kapell_core::job::JobRequest;
use kapell_core::run::{Entry, Noted, Run, RunState, RunUpdate, UpdateKind};

use super::actor::Actor;
use super::insist::insist;

const WHY: &str = "what its job does could not be read any more: apply the job again";

impl Actor {
    /// Ends a run of which nobody knows what it does. Its work, if there is any, is found as work that no run needs.
    pub(super) fn end_unled(&self, run: &Run) {
        let (at, state) = (self.wall(), RunState::Orphaned);
        let noted = Noted::State { to: state, why: WHY.into() };
        let update = Arc::new(RunUpdate {
            kind: UpdateKind::Ended,
            attempt: run.attempt,
            place: ArcStr::new(),
            log_host: ArcStr::new(),
            at,
            state,
            previous_state: run.state,
            revision: run.revision,
            started_at: run.started_at,
            retry_at: None,
            completed_at: Some(at),
            exit_code: None,
            reason: WHY.to_owned(),
            skipped: false,
            timeline: [Entry { at, attempt: run.attempt, noted }].into(),
            metrics: None,
        });
        let (board, run_id) = (self.board.clone(), run.run_id.clone());
        self.asked.push(Box::pin(async move {
            // One that is refused is gone.
            drop(insist(&board, JobRequest::Update { run_id, update }).await);
        }));
    }
}
