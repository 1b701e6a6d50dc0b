//! The clock by which a board decides.

use std::sync::{Arc, Mutex, PoisonError};

use kapell_core::board::time::{Reading, slewed};
use kapell_core::seams::{Clock, Moment, Timestamp};

/// Time that follows the wall clock, but does not jump with it.
#[derive(Debug)]
pub(super) struct Steady {
    clock: Arc<dyn Clock>,
    last: Mutex<Reading>,
}

impl Steady {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let last = Mutex::new(Reading::first(clock.now(), clock.wall()));
        Self { clock, last }
    }
}

impl Clock for Steady {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn wall(&self) -> Timestamp {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = slewed(*last, self.clock.now(), self.clock.wall());
        last.time()
    }
}
