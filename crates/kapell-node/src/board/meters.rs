//! What a board counts of itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Meters {
    pub(crate) commits: AtomicU64,
    pub(crate) commit_micros: AtomicU64,
    pub(crate) commit_ops: AtomicU64,
    pub(crate) resent: AtomicU64,
    pub(crate) decided: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) busy: AtomicU64,
    pub(crate) converged: AtomicU64,
    pub(crate) converge_micros: AtomicU64,
    pub(crate) orders_done: AtomicU64,
    pub(crate) orders_failed: AtomicU64,
    pub(crate) callbacks_done: AtomicU64,
    pub(crate) callbacks_failed: AtomicU64,
    pub(crate) callbacks_untold: AtomicU64,
    pub(crate) rounds: AtomicU64,
    pub(crate) placed: AtomicU64,
    pub(crate) not_placed: AtomicU64,
    pub(crate) refused_by_cells: AtomicU64,
}

impl Meters {
    pub(crate) fn add(meter: &AtomicU64, count: usize) {
        meter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn add_time(meter: &AtomicU64, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        meter.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn get(meter: &AtomicU64) -> u64 {
        meter.load(Ordering::Relaxed)
    }
}
