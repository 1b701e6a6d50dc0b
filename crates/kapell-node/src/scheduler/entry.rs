//! What the scheduler keeps of one run.

use std::sync::Arc;

use kapell_core::run::{Orchestrator, Plan, Run, StopKind, Timer};
use kapell_core::seams::{Moment, Timestamp};
use tokio::task::AbortHandle;

use crate::constraint::Pulse;

/// One run under way. While it waits for its time this is all that it costs, so it is kept small.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Entry {
    pub(super) it: Orchestrator,
    /// When its one timer goes off, if it has one.
    ring_at: Timestamp,
    pub(super) working: Option<Box<Working>>,
    /// Of its newest errand: an answer to an older one does not count.
    pub(super) ticket: u32,
    /// Calls to clusters for the attempts before this one.
    pub(super) calls: u32,
    timer: Option<Timer>,
    /// Its time has come and it has its place: it goes by what it knows of its job now.
    pub(super) decided: bool,
    /// Its launch is under way, and is waited for before anything is stopped.
    pub(super) launching: bool,
    /// Its backend may have something of it.
    pub(super) launched: bool,
    pub(super) asks: Asks,
    /// To be stopped once its launch has been answered.
    pub(super) stop_then: Option<StopKind>,
    /// The board shows it further than its record is.
    pub(super) shown: bool,
    /// Its record with the intent to launch, until it is launched.
    pub(super) intent: Option<Arc<Run>>,
}

/// How a run asks for its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    AsOverlapSays,
    /// It makes up for a moment.
    InTurn,
}

/// The task that works for a run.
#[derive(Debug)]
pub(super) struct Working {
    /// None of a launch, which is not given up.
    pub(super) abort: Option<AbortHandle>,
    /// Of the errand that it is for.
    pub(super) ticket: u32,
    pub(super) pulse: Pulse,
    /// The tick that was seen last, and when.
    pub(super) seen: u64,
    pub(super) last: Moment,
}

impl Entry {
    pub(super) const fn new(it: Orchestrator) -> Self {
        Self {
            it,
            ring_at: Timestamp(0),
            working: None,
            ticket: 0,
            calls: 0,
            timer: None,
            decided: false,
            launching: false,
            launched: false,
            asks: Asks::AsOverlapSays,
            stop_then: None,
            shown: false,
            intent: None,
        }
    }

    /// Its one timer, which is in the queue, and when it goes off.
    pub(super) fn ring(&self) -> Option<(Timestamp, Timer)> {
        self.timer.map(|timer| (self.ring_at, timer))
    }

    /// Sets another timer, or none. The one before.
    pub(super) fn set_ring(
        &mut self,
        ring: Option<(Timestamp, Timer)>,
    ) -> Option<(Timestamp, Timer)> {
        let before = self.ring();
        self.timer = ring.map(|(_, timer)| timer);
        self.ring_at = ring.map_or(Timestamp(0), |(at, _)| at);
        before
    }

    /// Another revision of its job: it counts only while the run waits for its time.
    pub(super) fn update(&mut self, plan: Plan) -> bool {
        !self.decided && self.it.update(plan)
    }

    /// No answer to what is under way counts any more. A launch is let go on: whether it came to something is only
    /// certain once it has been answered.
    pub(super) fn abandon(&mut self) {
        self.ticket = self.ticket.wrapping_add(1);
        let given_up = self.working.take_if(|_| !self.launching);
        if let Some(abort) = given_up.and_then(|working| working.abort) {
            abort.abort();
        }
    }
}
