//! What waits to be placed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kapell_core::board::{LrpKey, TaskGuid};
use tokio::sync::Notify;

/// Something to place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Start {
    Lrp(LrpKey),
    Task(TaskGuid),
}

/// The queue of the auctioneer. It holds names only, each of them once.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    fresh: BTreeSet<Start>,
    /// Tried before. Trying again waits for something to change.
    carried: BTreeSet<Start>,
    /// A cell has room that it had not.
    room: bool,
}

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outlook {
    pub(super) fresh: bool,
    pub(super) carried: bool,
    pub(super) room: bool,
}

impl Starts {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, start: Start) {
        let mut waiting = self.waiting();
        // Asked for once more, it is no new work.
        if !waiting.carried.contains(&start) && waiting.fresh.insert(start) {
            self.changed.notify_one();
        }
    }

    /// There may be room for what was carried over.
    pub(crate) fn room(&self) {
        self.waiting().room = true;
        self.changed.notify_one();
    }

    pub(crate) fn carried_count(&self) -> usize {
        self.waiting().carried.len()
    }

    pub(super) fn outlook(&self) -> Outlook {
        let waiting = self.waiting();
        Outlook {
            fresh: !waiting.fresh.is_empty(),
            carried: !waiting.carried.is_empty(),
            room: waiting.room,
        }
    }

    /// Everything that waits makes one batch.
    pub(super) fn take(&self) -> BTreeSet<Start> {
        let mut waiting = self.waiting();
        waiting.room = false;
        let mut batch = std::mem::take(&mut waiting.carried);
        batch.append(&mut waiting.fresh);
        batch
    }

    pub(super) fn carry(&self, starts: impl IntoIterator<Item = Start>) {
        let mut waiting = self.waiting();
        for start in starts {
            // Asked for again meanwhile, it is new work.
            if !waiting.fresh.contains(&start) {
                waiting.carried.insert(start);
            }
        }
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}
