//! What is wrong with the store, while it takes no writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The shards whose commits fail, and why. Each leaves with the commit that it keeps sending.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<BTreeMap<u16, String>>);

impl Trouble {
    fn shards(&self) -> MutexGuard<'_, BTreeMap<u16, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commits of a shard fail. Said once, however many shards there are.
    pub(super) fn begin(&self, shard: u16, why: &str) {
        let mut shards = self.shards();
        if shards.is_empty() {
            tracing::warn!(error = why, "the store does not take writes; trying again");
        }
        shards.insert(shard, why.to_owned());
    }

    /// A commit of the shard has landed.
    pub(super) fn end(&self, shard: u16) {
        let mut shards = self.shards();
        if shards.remove(&shard).is_some() && shards.is_empty() {
            tracing::info!("the store takes writes again");
        }
    }

    /// Why nothing is written, if so.
    pub(super) fn why(&self) -> Option<String> {
        self.shards().values().next().cloned()
    }
}
