use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::{ProcessGuid, RecordKey};
use kapell_core::seams::Clock;
use kapell_core::seat::Seat;
use kapell_store::keys;
use kapell_store::model::{Commit, Key, Op, Shard};

use crate::parts::link::{Call, Reply};
use crate::parts::server::Server;

/// The store, what is wrong with it, and where each record lies.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) server: Server,
    pub(super) slow_until: Duration,
    /// It answers with errors.
    pub(super) errors_until: Duration,
    /// It does what it is asked, and often does not say so.
    pub(super) silent_until: Duration,
    places: BTreeMap<Key, Shard>,
}

impl Store {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (slow_until, errors_until, silent_until) = Default::default();
        let places = BTreeMap::new();
        Self { server: Server::new(clock), slow_until, errors_until, silent_until, places }
    }

    pub(super) fn heal(&mut self) {
        (self.slow_until, self.errors_until, self.silent_until) = Default::default();
    }

    /// Notes where a record lies, or that it is gone.
    pub(super) fn remember(&mut self, shard: Shard, op: &Op) {
        match op {
            Op::Put(key, _) => drop(self.places.insert(key.clone(), shard)),
            Op::Delete(key) => drop(self.places.remove(key)),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// Where desired LRPs are among all records.
    pub(super) fn desired(&self) -> Vec<usize> {
        let kind = RecordKey::Desired(ProcessGuid::new("")).encode();
        let keys = self.places.keys().enumerate();
        keys.filter(|(_, key)| key.as_bytes().starts_with(&kind)).map(|(at, _)| at).collect()
    }

    /// Nobody holds the seat any more, whatever its holder believes; says what those who wait watch.
    pub(super) fn lose_seat(&mut self) -> Option<Key> {
        let key = keys::leader(Seat::FIRST);
        let Reply::Entry(entry) = self.server.apply(&Call::Read(key.clone())).reply else {
            return None;
        };
        let old = entry.held?.value;
        self.server.apply(&Call::Delete { key, old }).changed
    }

    /// Writes garbage over the `at`-th record, and says which it was.
    pub(super) fn corrupt(&self, at: usize, garbage: Vec<u8>) -> Option<Key> {
        let (key, shard) = self.places.iter().nth(at)?;
        let (key, shard) = (key.clone(), *shard);
        let Reply::Fence(at) = self.server.apply(&Call::Fence(shard)).reply else { return None };
        let ops = vec![Op::Put(key.clone(), garbage)];
        let applied = self.server.apply(&Call::Commit { shard, at, ops });
        matches!(applied.reply, Reply::Commit(Commit::Done)).then_some(key)
    }
}
