use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use kapell_core::seams::Clock;
use kapell_core::seat::Record;
use kapell_store::mem::Mem;
use kapell_store::model::{Commit, Fence, Key, Raise, Shard, Write};
use kapell_store::{Bell, Error, Shards as _, Ttl as _, keys};

use super::Flaw;
use super::checks::{Checks, Violation};
use super::link::{Call, Reply};
use super::writer::counter_of;

/// The store that all hosts share, and what truly happened in it.
#[derive(Debug)]
pub(super) struct Server {
    mem: Mem,
    flaw: Flaw,
}

/// What a call did.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) reply: Reply,
    /// It was done, as opposed to refused.
    pub(super) took: bool,
    /// What is to be told to those who watch.
    pub(super) changed: Option<Key>,
    /// The other end of a watch that was asked for.
    pub(super) bell: Option<(Key, Bell)>,
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
    pub(super) fn new(clock: Arc<dyn Clock>, flaw: Flaw) -> Self {
        Self { mem: Mem::new(clock), flaw }
    }

    fn ttl(&self, ttl: Option<Duration>) -> Option<Duration> {
        if self.flaw == Flaw::HastyStore { ttl.map(|ttl| ttl * 7 / 10) } else { ttl }
    }

    fn is_let_in(&self, at: Fence, fence: Fence) -> bool {
        match self.flaw {
            Flaw::Fenceless => true,
            Flaw::Epochless => at.epoch < fence.epoch,
            Flaw::None | Flaw::HastyStore | Flaw::SlowClock | Flaw::Endless => false,
        }
    }

    /// Does what a letter asks for, and holds it against what may happen.
    pub(super) fn apply(&self, call: &Call, checks: &mut Checks) -> Result<Applied, Violation> {
        Ok(match call {
            Call::Prepare => Applied::of(Reply::Nothing, true),
            Call::Insert { key, seen, value, ttl } => {
                let wrote = now(self.mem.insert_if_absent(key, *seen, value, self.ttl(*ttl)));
                if wrote.is_done()
                    && let (Some(seat), Some(record)) = (keys::seat_of(key), Record::decode(value))
                {
                    checks.epochs.inserted(seat, record.epoch)?;
                }
                wrote_entry(key, wrote)
            }
            Call::Swap { key, old, new, ttl } => {
                wrote_entry(key, now(self.mem.compare_and_swap(key, old, new, self.ttl(*ttl))))
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
                if took {
                    checks.fences.raised(*seat, *epoch);
                }
                Applied::of(Reply::Raise(raise), took)
            }
            Call::Fence(shard) => Applied::of(Reply::Fence(now(self.mem.fence(*shard))), true),
            Call::Commit { shard, at, ops } => {
                let mut commit = now(self.mem.commit(*shard, *at, ops));
                if let Commit::Fenced(fence) = commit
                    && self.is_let_in(*at, fence)
                {
                    commit = now(self.mem.commit(*shard, fence, ops));
                }
                let took = commit == Commit::Done;
                if took {
                    checks.fences.landed(*shard, *at)?;
                    checks.counters.landed(*shard, *at)?;
                }
                Applied::of(Reply::Commit(commit), took)
            }
            Call::Scan(shard, after) => {
                Applied::of(Reply::Page(now(self.mem.scan(*shard, after.as_ref()))), true)
            }
        })
    }

    /// What the counter of a shard says.
    pub(super) fn counter(&self, shard: Shard) -> u64 {
        counter_of(&now(self.mem.scan(shard, None)))
    }
}

fn wrote_entry(key: &Key, wrote: Write) -> Applied {
    let changed = wrote.is_done().then(|| key.clone());
    Applied { reply: Reply::Write(wrote), took: wrote.is_done(), changed, bell: None }
}
