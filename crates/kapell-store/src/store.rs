//! What every driver offers.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};

use crate::error::Error;
use crate::model::{
    Commit, Entry, Expiry, Fence, Generation, Key, Limits, Op, Page, Raise, Shard, Write,
};
use crate::watch::Watch;

/// Entries that go away by themselves, each change one atomic step: what elections stand on.
///
/// A condition that does not hold is an answer, [`Write::Lost`]. An error means that the
/// outcome is unknown; nothing here is tried again behind the caller's back.
#[async_trait]
pub trait Ttl: fmt::Debug + Send + Sync {
    /// How this store counts time.
    fn expiry(&self) -> Expiry;

    /// Whether each client judges by what it has seen itself. Then what stands there runs out, for a client that has not
    /// looked since it was written, a whole time to live after its first look; and what one tells to be gone is gone for all.
    fn observes(&self) -> bool {
        false
    }

    /// Makes the next insert with this time to live cost one round trip.
    async fn prepare(&self, ttl: Duration) -> Result<(), Error>;

    /// Inserts `value` if nothing stands at `key` and its generation still is `seen`; the
    /// generation is then the next one. Without `ttl` it stands until it is deleted.
    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error>;

    /// Replaces the value and the time to live if exactly `old` stands there.
    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error>;

    /// Removes the entry if exactly `old` stands there. Its generation stays.
    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error>;

    /// What stands at `key`, at least as new as the last change that anyone saw succeed.
    async fn read(&self, key: &Key) -> Result<Entry, Error>;

    /// Every key that was ever inserted, in order, with what [`read`](Self::read) would say.
    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error>;

    /// Lifts the generation of `key` to at least `floor`; what stands there stays.
    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error>;

    /// Tells of changes from now on. Read after you have the watch, not before.
    async fn watch(&self, key: &Key) -> Result<Watch, Error>;
}

/// Durable records in shards, each shard guarded by a fence.
#[async_trait]
pub trait Shards: fmt::Debug + Send + Sync {
    /// What one commit may hold.
    fn limits(&self) -> Limits;

    /// Raises the fences of all shards of a seat to `epoch`, none of which may stand higher.
    ///
    /// May be sent again: a fence that stands at `epoch` already stays as it is.
    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error>;

    /// Where the fence of a shard stands; zero before the first [`raise`](Self::raise).
    async fn fence(&self, shard: Shard) -> Result<Fence, Error>;

    /// Applies all `ops` and moves the fence from `at` to its successor, or does nothing.
    ///
    /// Someone else being faster is an answer, [`Commit::Fenced`]; an error means that the
    /// outcome is unknown: send the same commit again. A driver answers [`Commit::Fenced`]
    /// with the successor of `at` if that is where the fence stands: the caller, the only
    /// one with this epoch, knows then that its own earlier attempt has landed.
    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error>;

    /// Reads one page of a shard in key order, beginning behind `after`, at least as new as
    /// the last commit that anyone saw succeed. The next one begins behind [`Page::next`].
    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error>;
}

/// One store.
pub trait Store: Ttl + Shards {
    /// What to call it in messages: its URL without secrets.
    fn name(&self) -> &str;
}
