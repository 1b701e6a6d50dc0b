//! How a cell that evacuates comes to its end.

use std::mem;
use std::sync::Arc;

use kapell_core::seams::Moment;

use super::Shared;
use super::actor::Actor;
use super::job::Done;
use super::rep::{Read, Rep};

/// How far an evacuation is, once no container is left.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Evacuation {
    /// Nothing on the board names this cell any more.
    swept: bool,
    /// The records were asked for since the last container went.
    asked: bool,
    leaving: bool,
    again_at: Option<Moment>,
    gone: bool,
}

impl Evacuation {
    /// The records were read when no container was left, and there was nothing to do about any.
    pub(super) const fn is_swept(&mut self) {
        self.swept = true;
    }

    pub(super) const fn is_leaving(&self) -> bool {
        self.leaving || self.gone
    }

    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    pub(super) fn has_left(&mut self, done: bool, now: Moment, shared: &Shared) {
        self.leaving = false;
        if done {
            self.end(shared);
        } else {
            self.again_at = Some(now.after(shared.settings.first_retry));
        }
    }

    fn end(&mut self, shared: &Shared) {
        self.gone = true;
        shared.evacuated.send_replace(true);
    }

    pub(super) fn due(&self, rep: &Rep) -> Option<Moment> {
        if self.gone {
            return None;
        }
        let by = rep.evacuate_by?;
        let limit = if rep.timed_out { by.after(rep.executor.settings.ending) } else { by };
        Some(self.again_at.map_or(limit, |again| again.min(limit)))
    }
}

impl Actor {
    pub(super) fn evacuate(&mut self, rep: &mut Rep, now: Moment) {
        let Some(by) = rep.evacuate_by else { return };
        if self.evacuation.is_leaving() {
            return;
        }
        if now >= by && !rep.timed_out {
            tracing::warn!("the evacuation took too long: what is left is given up");
            rep.timed_out = true;
            rep.look_at_all();
        }
        if now >= by.after(self.shared.settings.ending) {
            tracing::warn!("the board was not told that this cell is gone");
            self.evacuation.end(&self.shared);
            return;
        }
        let settled = rep.executor.is_empty() && self.is_quiet();
        if !settled {
            // Whatever was read of the board before, it was before this was over.
            (self.evacuation.swept, self.evacuation.asked) = (false, false);
        }
        let is_early = self.evacuation.again_at.is_some_and(|again| now < again);
        if !settled || self.polling || is_early {
            return;
        }
        if !self.evacuation.swept {
            if !mem::replace(&mut self.evacuation.asked, true) {
                rep.ask(Read::Now);
            }
            return;
        }
        self.evacuation.leaving = true;
        self.evacuation.again_at = None;
        let (board, id) = (Arc::clone(&self.shared.board), self.shared.id.clone());
        self.jobs.spawn(async move { Done::Left(board.leave(&id).await) });
    }
}
