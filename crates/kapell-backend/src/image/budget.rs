use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::settings::Limits;

/// What is left to one image; its layers share it.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: AtomicU64,
    entries: AtomicU64,
    limits: (u64, u64),
    given_up: AtomicBool,
}

/// There is nothing left, or nobody waits any more.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(super) enum Spent {
    #[error("more than {0} bytes")]
    Bytes(u64),
    #[error("more than {0} entries")]
    Entries(u64),
    #[error("nobody waits for it any more")]
    GivenUp,
}

impl From<Spent> for io::Error {
    fn from(spent: Spent) -> Self {
        Self::other(spent)
    }
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            bytes: AtomicU64::new(limits.unpacked_bytes),
            entries: AtomicU64::new(limits.entries),
            limits: (limits.unpacked_bytes, limits.entries),
            given_up: AtomicBool::new(false),
        }
    }

    pub(super) fn take_bytes(&self, count: u64) -> Result<(), Spent> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(Spent::GivenUp);
        }
        take(&self.bytes, count).ok_or(Spent::Bytes(self.limits.0))
    }

    pub(super) fn take_entries(&self, count: u64) -> Result<(), Spent> {
        take(&self.entries, count).ok_or(Spent::Entries(self.limits.1))
    }

    /// What works in threads of its own ends soon.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

fn take(left: &AtomicU64, count: u64) -> Option<()> {
    let less = |left: u64| left.checked_sub(count);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok().map(drop)
}
