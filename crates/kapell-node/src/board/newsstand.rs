//! What the scheduler is told.

use std::sync::{Mutex, PoisonError};

use kapell_core::job::SchedulerNews;
use tokio::sync::mpsc;

/// The queue of the scheduler. Like that of the auctioneer it is bounded by what the board holds: names only.
#[derive(Debug)]
pub(super) struct Newsstand {
    into: mpsc::UnboundedSender<SchedulerNews>,
    /// Until the scheduler has taken it.
    out: Mutex<Option<mpsc::UnboundedReceiver<SchedulerNews>>>,
}

impl Default for Newsstand {
    fn default() -> Self {
        let (into, out) = mpsc::unbounded_channel();
        Self { into, out: Mutex::new(Some(out)) }
    }
}

impl Newsstand {
    pub(super) fn put(&self, news: SchedulerNews) {
        // The scheduler has ended: whoever leads next looks at the board.
        drop(self.into.send(news));
    }

    pub(super) fn take(&self) -> Option<mpsc::UnboundedReceiver<SchedulerNews>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
