use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};
use kapell_store::mem::Mem;
use kapell_store::model::{
    Commit, Entry, Expiry, Fence, Generation, Held, Key, Limits, Op, Page, Raise, Shard, Write,
};
use kapell_store::{Error, Shards, Store, Ttl, Watch, keys};

use super::script::{self, a_while};

/// A store in memory whose fences rise as the script says.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) mem: Mem,
    pub(super) raise: script::Raise,
    pub(super) failed: AtomicBool,
}

impl Board {
    async fn raise_as_told(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        a_while().await;
        match self.raise {
            script::Raise::Late if !self.failed.swap(true, Ordering::SeqCst) => {
                Err(Error::Failed {
                    store: "mem:".to_owned(),
                    call: "raise",
                    source: "late".into(),
                })
            }
            script::Raise::Done | script::Raise::Late | script::Raise::Unfinished => {
                self.mem.raise(seat, epoch).await
            }
            script::Raise::Fenced => Ok(Raise::Fenced(epoch.next())),
            script::Raise::Broken => Err(Error::Absent { store: "mem:".to_owned() }),
            script::Raise::Never => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Ttl for Board {
    fn expiry(&self) -> Expiry {
        self.mem.expiry()
    }

    async fn prepare(&self, ttl: Duration) -> Result<(), Error> {
        self.mem.prepare(ttl).await
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        self.mem.insert_if_absent(key, seen, value, ttl).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        self.mem.compare_and_swap(key, old, new, ttl).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        self.mem.compare_and_delete(key, old).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        a_while().await;
        let mut entry = self.mem.read(key).await?;
        if self.raise == script::Raise::Unfinished && *key == keys::unfinished() {
            entry.held = Some(Held { value: Vec::new(), remaining: None });
        }
        Ok(entry)
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        self.mem.list().await
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        self.mem.lift(key, floor).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        self.mem.watch(key).await
    }
}

#[async_trait]
impl Shards for Board {
    fn limits(&self) -> Limits {
        self.mem.limits()
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        self.raise_as_told(seat, epoch).await
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        self.mem.fence(shard).await
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        self.mem.commit(shard, at, ops).await
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        self.mem.scan(shard, after).await
    }
}

impl Store for Board {
    fn name(&self) -> &str {
        self.mem.name()
    }
}
