//! When convergence is to look again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kapell_core::seams::{Moment, Timestamp};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(super) struct Alarm {
    wanted: Mutex<Wanted>,
    /// When the next pass begins at the latest; none while one is under way.
    next: Mutex<Option<Moment>>,
    rung: Notify,
    lost: Notify,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) at_once: bool,
    pub(super) due: Option<Timestamp>,
}

impl Alarm {
    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn at_once(&self) {
        self.wanted().at_once = true;
        self.rung.notify_one();
    }

    /// A cell is lost: what it held cannot wait for the end of a pass either.
    pub(super) fn cell_lost(&self) {
        self.lost.notify_one();
        self.at_once();
    }

    pub(super) fn no_later_than(&self, due: Timestamp) {
        let mut wanted = self.wanted();
        if wanted.due.is_none_or(|at| due < at) {
            wanted.due = Some(due);
            self.rung.notify_one();
        }
    }

    pub(super) fn look(&self) -> Wanted {
        *self.wanted()
    }

    /// Waits until a cell is lost, since it was last asked.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Whatever is wanted from now on counts anew.
    pub(super) fn clear(&self) {
        *self.wanted() = Wanted::default();
        self.set_next(None);
    }

    /// Tells when the next pass begins at the latest.
    pub(super) fn set_next(&self, next: Option<Moment>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
    }

    pub(super) fn next(&self) -> Option<Moment> {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something else is wanted.
    pub(super) async fn rung(&self) {
        self.rung.notified().await;
    }
}
