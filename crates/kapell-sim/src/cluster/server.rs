use std::sync::Arc;
use std::time::Duration;

use kapell_core::seams::Clock;
use kapell_core::seat::Record;
use kapell_store::keys;
use kapell_store::model::{Commit, Fence, Shard};

use super::Flaw;
use super::checks::{Checks, Violation};
use super::writer::counter_of;
use crate::parts::link::{Call, Reply};
use crate::parts::server::{self, Applied};

/// The store with whatever is wrong with it, and what truly happened in it.
#[derive(Debug)]
pub(super) struct Server {
    store: server::Server,
    flaw: Flaw,
}

impl Server {
    pub(super) fn new(clock: Arc<dyn Clock>, flaw: Flaw) -> Self {
        Self { store: server::Server::new(clock), flaw }
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
        let mut call = call.clone();
        if let Call::Insert { ttl, .. } | Call::Swap { ttl, .. } = &mut call {
            *ttl = self.ttl(*ttl);
        }
        let mut applied = self.store.apply(&call);
        if let (Call::Commit { shard, at, ops }, Reply::Commit(Commit::Fenced(fence))) =
            (&call, &applied.reply)
            && self.is_let_in(*at, *fence)
        {
            let (shard, ops) = (*shard, ops.clone());
            applied = self.store.apply(&Call::Commit { shard, at: *fence, ops });
        }
        if applied.took {
            check(&call, checks)?;
        }
        Ok(applied)
    }

    /// What the counter of a shard says.
    pub(super) fn counter(&self, shard: Shard) -> u64 {
        match self.store.apply(&Call::Scan(shard, None)).reply {
            Reply::Page(page) => counter_of(&page),
            Reply::Nothing
            | Reply::Write(_)
            | Reply::Entry(_)
            | Reply::Watch(_)
            | Reply::Raise(_)
            | Reply::Fence(_)
            | Reply::Commit(_) => 0,
        }
    }
}

fn check(call: &Call, checks: &mut Checks) -> Result<(), Violation> {
    match call {
        Call::Insert { key, value, .. } => {
            if let (Some(seat), Some(record)) = (keys::seat_of(key), Record::decode(value)) {
                checks.epochs.inserted(seat, record.epoch)?;
            }
        }
        Call::Raise(seat, epoch) => checks.fences.raised(*seat, *epoch),
        Call::Commit { shard, at, .. } => {
            checks.fences.landed(*shard, *at)?;
            checks.counters.landed(*shard, *at)?;
        }
        Call::Prepare
        | Call::Swap { .. }
        | Call::Delete { .. }
        | Call::Read(_)
        | Call::Watch(_)
        | Call::Fence(_)
        | Call::Scan(..) => {}
    }
    Ok(())
}
