//! `mem:`: a store that lives and dies with its process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seams::{Clock, Moment};
use kapell_core::seat::{Epoch, Seat};

use crate::book::{Book, Change};
use crate::check;
use crate::error::Error;
use crate::model::{
    Commit, Entry, Expiry, Fence, Generation, KEY_BYTES, Key, Limits, Op, Page, RECORD_BYTES,
    Raise, Shard, Write,
};
use crate::store::{Shards, Store, Ttl};
use crate::watch::{Bell, Watch};

/// A store in memory. Time is the clock's that it was made with.
#[derive(Debug)]
pub struct Mem {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    book: Book,
    bells: HashMap<Key, Bell>,
}

impl Mem {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time is taken under the lock: two calls see it in the order in which they are made.
    fn write(&self, decide: impl FnOnce(&Book, Moment) -> (Write, Option<Change>)) -> Write {
        let mut state = self.state();
        let (write, change) = decide(&state.book, self.clock.now());
        self.apply(&mut state, change);
        write
    }

    fn apply(&self, state: &mut State, changes: impl IntoIterator<Item = Change>) {
        let now = self.clock.now();
        for change in changes {
            if let Change::Entry { key, .. } = &change
                && let Some(bell) = state.bells.get(key)
            {
                bell.ring();
            }
            state.book.apply(change, now);
        }
    }
}

#[async_trait]
impl Ttl for Mem {
    fn expiry(&self) -> Expiry {
        Expiry { shortest: Duration::from_millis(1), lag: Duration::ZERO }
    }

    async fn prepare(&self, _ttl: Duration) -> Result<(), Error> {
        Ok(())
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, value)?;
        Ok(self.write(|book, now| book.insert_if_absent(key, seen, value, ttl, now)))
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, new)?;
        Ok(self.write(|book, now| book.compare_and_set(key, old, Some((new, ttl)), now)))
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        Ok(self.write(|book, now| book.compare_and_set(key, old, None, now)))
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        Ok(self.state().book.read(key, self.clock.now()))
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        Ok(self.state().book.list(self.clock.now()))
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        let mut state = self.state();
        let change = state.book.lift(key, floor, self.clock.now());
        self.apply(&mut state, change);
        Ok(())
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        let mut state = self.state();
        state.bells.retain(|_, bell| bell.is_heard());
        Ok(state.bells.entry(key.clone()).or_default().watch())
    }
}

#[async_trait]
impl Shards for Mem {
    fn limits(&self) -> Limits {
        Limits {
            commit_ops: 1024,
            commit_bytes: 8 << 20,
            value_bytes: RECORD_BYTES,
            key_bytes: KEY_BYTES,
        }
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        let mut state = self.state();
        let (raise, changes) = state.book.raise(seat, epoch);
        self.apply(&mut state, changes);
        Ok(raise)
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        Ok(self.state().book.fence(shard))
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let net = check::commit(self.limits(), ops)?;
        let mut state = self.state();
        let (commit, changes) = state.book.commit(shard, at, net);
        self.apply(&mut state, changes);
        Ok(commit)
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        Ok(self.state().book.scan(shard, after))
    }
}

impl Store for Mem {
    fn name(&self) -> &'static str {
        "mem:"
    }
}
