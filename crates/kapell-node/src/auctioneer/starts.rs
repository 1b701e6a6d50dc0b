//! What waits to be placed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kapell_core::board::{CellId, LrpKey, TaskGuid};
use kapell_core::seams::Moment;
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
    /// Cells that did not answer when they were last asked, and when that was.
    silent: Mutex<BTreeMap<CellId, Moment>>,
}

#[derive(Debug, Default)]
struct Waiting {
    fresh: BTreeSet<Start>,
    /// Tried before. Trying again waits for something to change.
    carried: BTreeSet<Start>,
    /// A cell has room that it had not.
    room: bool,
    /// When the next round begins at the latest, if that is known.
    due: Option<Moment>,
    /// A round is under way.
    busy: bool,
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

    /// When the next round begins at the latest, if anything waits for one.
    pub(crate) fn due(&self, now: Moment) -> Option<Moment> {
        let waiting = self.waiting();
        if waiting.busy || !waiting.fresh.is_empty() {
            return Some(now);
        }
        (!waiting.carried.is_empty()).then(|| waiting.due.unwrap_or(now))
    }

    pub(super) fn due_at(&self, due: Moment) {
        self.waiting().due = Some(due);
    }

    /// When a cell was asked and did not answer, unless it has answered since.
    pub(crate) fn silent_since(&self, cell_id: &CellId) -> Option<Moment> {
        self.silent().get(cell_id).copied()
    }

    pub(super) fn fell_silent(&self, cell_id: CellId, now: Moment) {
        self.silent().insert(cell_id, now);
    }

    /// It answers, or is another agent than the one that did not.
    pub(crate) fn answered(&self, cell_id: &CellId) {
        self.silent().remove(cell_id);
    }

    fn silent(&self) -> MutexGuard<'_, BTreeMap<CellId, Moment>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
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
        waiting.due = None;
        waiting.busy = true;
        let mut batch = std::mem::take(&mut waiting.carried);
        batch.append(&mut waiting.fresh);
        batch
    }

    pub(super) fn carry(&self, starts: impl IntoIterator<Item = Start>) {
        let mut waiting = self.waiting();
        waiting.busy = false;
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
