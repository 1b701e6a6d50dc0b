use std::sync::{Arc, Mutex, PoisonError};

use kapell_core::seams::{Clock, Moment, Timestamp};
use tokio::time::Instant;

/// Time as the runtime counts it: where that is paused, this is too.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: Instant,
}

impl TokioClock {
    /// Begins to count now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment::from_origin(self.origin.elapsed())
    }

    fn wall(&self) -> Timestamp {
        let millis = self.origin.elapsed().as_millis();
        Timestamp(1_700_000_000_000 + i64::try_from(millis).unwrap_or(i64::MAX >> 1))
    }
}

/// The clock of a process that can be stopped: while it is, nobody in it sees time go by, and
/// then all of it has gone by at once.
#[derive(Debug)]
pub struct Stoppable {
    clock: Arc<dyn Clock>,
    stopped: Mutex<Option<Moment>>,
}

impl Stoppable {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, stopped: Mutex::default() }
    }

    pub fn stop(&self) {
        let now = self.clock.now();
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
    }

    pub fn go_on(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Clock for Stoppable {
    fn now(&self) -> Moment {
        let stopped = *self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.unwrap_or_else(|| self.clock.now())
    }

    fn wall(&self) -> Timestamp {
        self.clock.wall()
    }
}
