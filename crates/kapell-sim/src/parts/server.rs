use std::sync::Arc;

use futures_util::FutureExt as _;
use kapell_core::seams::Clock;
use kapell_store::mem::Mem;
use kapell_store::model::{Commit, Key, Raise, Write};
use kapell_store::{Bell, Error, Shards as _, Ttl as _};

use super::link::{Call, Reply};

/// The store that all hosts share.
#[derive(Debug)]
pub(crate) struct Server {
    mem: Mem,
}

/// What a call did.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) reply: Reply,
    /// It was done, as opposed to refused.
    pub(crate) took: bool,
    /// What is to be told to those who watch.
    pub(crate) changed: Option<Key>,
    /// The other end of a watch that was asked for.
    pub(crate) bell: Option<(Key, Bell)>,
}

impl Applied {
    const fn of(reply: Reply, took: bool) -> Self {
        Self { reply, took, changed: None, bell: None }
    }
}

/// A store in memory answers at once.
fn now<T>(answer: impl Future<Output = Result<T, Error>>) -> T {
    let answer = answer.now_or_never().expect("a store in memory does not wait");
    answer.expect("what hosts write is within the limits")
}

impl Server {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { mem: Mem::new(clock) }
    }

    /// Does what a letter asks for.
    pub(crate) fn apply(&self, call: &Call) -> Applied {
        match call {
            Call::Prepare => Applied::of(Reply::Nothing, true),
            Call::Insert { key, seen, value, ttl } => {
                wrote_entry(key, now(self.mem.insert_if_absent(key, *seen, value, *ttl)))
            }
            Call::Swap { key, old, new, ttl } => {
                wrote_entry(key, now(self.mem.compare_and_swap(key, old, new, *ttl)))
            }
            Call::Delete { key, old } => {
                wrote_entry(key, now(self.mem.compare_and_delete(key, old)))
            }
            Call::Read(key) => Applied::of(Reply::Entry(now(self.mem.read(key))), true),
            Call::Watch(key) => {
                let bell = Bell::new();
                let reply = Reply::Watch(bell.watch());
                Applied { reply, took: true, changed: None, bell: Some((key.clone(), bell)) }
            }
            Call::Raise(seat, epoch) => {
                let raise = now(self.mem.raise(*seat, *epoch));
                let took = matches!(raise, Raise::Done(_));
                Applied::of(Reply::Raise(raise), took)
            }
            Call::Fence(shard) => Applied::of(Reply::Fence(now(self.mem.fence(*shard))), true),
            Call::Commit { shard, at, ops } => {
                let commit = now(self.mem.commit(*shard, *at, ops));
                Applied::of(Reply::Commit(commit), commit == Commit::Done)
            }
            Call::Scan(shard, after) => {
                Applied::of(Reply::Page(now(self.mem.scan(*shard, after.as_ref()))), true)
            }
        }
    }
}

fn wrote_entry(key: &Key, wrote: Write) -> Applied {
    let changed = wrote.is_done().then(|| key.clone());
    Applied { reply: Reply::Write(wrote), took: wrote.is_done(), changed, bell: None }
}
