use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};
use kapell_store::model::{
    Commit, Entry, Expiry, Fence, Generation, KEY_BYTES, Key, Limits, Op, Page, RECORD_BYTES,
    Raise, Shard, Write,
};
use kapell_store::{Error, Shards, Store, Ttl, Watch};
use tokio::sync::oneshot;

/// What a host asks of the store.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Prepare,
    Insert { key: Key, seen: Generation, value: Vec<u8>, ttl: Option<Duration> },
    Swap { key: Key, old: Vec<u8>, new: Vec<u8>, ttl: Option<Duration> },
    Delete { key: Key, old: Vec<u8> },
    Read(Key),
    Watch(Key),
    Raise(Seat, Epoch),
    Fence(Shard),
    Commit { shard: Shard, at: Fence, ops: Vec<Op> },
    Scan(Shard, Option<Key>),
}

impl Call {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Insert { .. } => "insert",
            Self::Swap { .. } => "swap",
            Self::Delete { .. } => "delete",
            Self::Read(_) => "read",
            Self::Watch(_) => "watch",
            Self::Raise(..) => "raise",
            Self::Fence(_) => "fence",
            Self::Commit { .. } => "commit",
            Self::Scan(..) => "scan",
        }
    }
}

/// What the store answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Nothing,
    Write(Write),
    Entry(Entry),
    Watch(Watch),
    Raise(Raise),
    Fence(Fence),
    Commit(Commit),
    Page(Page),
}

pub(crate) type ReplyTo = oneshot::Sender<Result<Reply, Error>>;

/// A call on its way.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) call: Call,
    pub(crate) reply: ReplyTo,
}

/// Where a process puts what it sends to the store.
pub(crate) trait Outbox: fmt::Debug + Send + Sync {
    fn send(&self, letter: Letter);
}

/// A host's side of its connection to the store. As a driver must, it gives up on every call
/// after a while.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) limit: Duration,
}

const NAME: &str = "sim:";

/// An error that tells nothing about what has happened.
pub(crate) fn failed(call: &'static str, why: &'static str) -> Error {
    Error::Failed { store: NAME.to_owned(), call, source: why.into() }
}

impl Link {
    async fn ask<T>(&self, call: Call, pick: fn(Reply) -> Option<T>) -> Result<T, Error> {
        let name = call.name();
        let (reply, answer) = oneshot::channel();
        self.outbox.send(Letter { call, reply });
        let Ok(answer) = tokio::time::timeout(self.limit, answer).await else {
            return Err(Error::Timeout { store: NAME.to_owned(), call: name, limit: self.limit });
        };
        let reply = answer.unwrap_or_else(|_| Err(failed(name, "the connection is gone")))?;
        Ok(pick(reply).expect("every call is answered in kind"))
    }
}

macro_rules! answer {
    ($kind:ident) => {
        |reply| match reply {
            Reply::$kind(it) => Some(it),
            #[allow(clippy::wildcard_enum_match_arm, reason = "an answer is of one kind only")]
            _ => None,
        }
    };
}

#[async_trait]
impl Ttl for Link {
    fn expiry(&self) -> Expiry {
        Expiry { shortest: Duration::from_millis(1), lag: Duration::ZERO }
    }

    async fn prepare(&self, _ttl: Duration) -> Result<(), Error> {
        self.ask(Call::Prepare, |_| Some(())).await
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        let call = Call::Insert { key: key.clone(), seen, value: value.to_vec(), ttl };
        self.ask(call, answer!(Write)).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        let call = Call::Swap { key: key.clone(), old: old.to_vec(), new: new.to_vec(), ttl };
        self.ask(call, answer!(Write)).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        let call = Call::Delete { key: key.clone(), old: old.to_vec() };
        self.ask(call, answer!(Write)).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        self.ask(Call::Read(key.clone()), answer!(Entry)).await
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        Err(failed("list", "hosts list nothing"))
    }

    async fn lift(&self, _key: &Key, _floor: Generation) -> Result<(), Error> {
        Err(failed("lift", "hosts lift nothing"))
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        self.ask(Call::Watch(key.clone()), answer!(Watch)).await
    }
}

#[async_trait]
impl Shards for Link {
    fn limits(&self) -> Limits {
        Limits {
            commit_ops: 128,
            commit_bytes: 1 << 20,
            value_bytes: RECORD_BYTES,
            key_bytes: KEY_BYTES,
        }
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        self.ask(Call::Raise(seat, epoch), answer!(Raise)).await
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        self.ask(Call::Fence(shard), answer!(Fence)).await
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let call = Call::Commit { shard, at, ops: ops.to_vec() };
        self.ask(call, answer!(Commit)).await
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        self.ask(Call::Scan(shard, after.cloned()), answer!(Page)).await
    }
}

impl Store for Link {
    fn name(&self) -> &'static str {
        NAME
    }
}
