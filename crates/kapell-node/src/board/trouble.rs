//! What is wrong with the store, while it takes no writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kapell_core::seams::Timestamp;

/// The store takes no writes: what is there can be read, and nothing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOnly {
    pub why: String,
    pub since: Timestamp,
}

/// The shards whose commits fail, and why. Each leaves with the commit that it keeps sending.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<BTreeMap<u16, ReadOnly>>);

impl Trouble {
    fn shards(&self) -> MutexGuard<'_, BTreeMap<u16, ReadOnly>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commits of a shard fail. Said once, however many shards there are.
    pub(super) fn begin(&self, shard: u16, why: &str, now: Timestamp) {
        let mut shards = self.shards();
        let since = shards.values().map(|it| it.since).min().unwrap_or(now);
        if shards.is_empty() {
            tracing::warn!(
                error = why,
                "read-only: the store does not take writes; nothing changes until it does"
            );
        }
        shards.insert(shard, ReadOnly { why: why.to_owned(), since });
    }

    /// A commit of the shard has landed.
    pub(super) fn end(&self, shard: u16, now: Timestamp) {
        let mut shards = self.shards();
        if let Some(ReadOnly { since, .. }) = shards.remove(&shard)
            && shards.is_empty()
        {
            let after_ms = now.0.saturating_sub(since.0);
            tracing::info!(after_ms, "read-only no more: the store takes writes again");
        }
    }

    /// Why nothing is written, if so.
    pub(super) fn now(&self) -> Option<ReadOnly> {
        self.shards().values().next().cloned()
    }
}
