use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapell_core::seams::Moment;
use tokio::sync::oneshot::channel;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::ears::Seen;
use super::failure::Failure;
use super::link::{Beat, Link};
use crate::model::Key;

/// Names a lease of etcd's. Zero is no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseId(pub(super) i64);

impl LeaseId {
    pub(super) const NONE: Self = Self(0);
}

/// What etcd counts time to live in, rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seconds(pub(super) i64);

impl Seconds {
    pub(super) fn of(ttl: Duration) -> Self {
        let whole = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
        Self(i64::try_from(whole).unwrap_or(i64::MAX).max(1))
    }

    fn half(self) -> Duration {
        Duration::from_secs(self.0.unsigned_abs()) / 2
    }
}

/// Whether a lease could be kept alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pulse {
    Beats,
    Gone,
}

/// A lease and, so that keeping it alive costs no more than a message, a stream for that.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) id: LeaseId,
    pub(super) beat: Option<Beat>,
    /// What the last renewal saw on it, if that can be relied on while it is kept alive by this stream.
    pub(super) seen: Option<Seen>,
}

impl Lease {
    pub(super) const fn new(id: LeaseId) -> Self {
        Self { id, beat: None, seen: None }
    }
}

/// A lease that carries nothing, and since when it counts.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) lease: Lease,
    pub(super) since: Moment,
}

impl Spare {
    pub(super) fn is_young(&self, ttl: Seconds, now: Moment) -> bool {
        now.since(self.since) < ttl.half()
    }
}

/// What this client knows of its leases.
///
/// A lease is put under an entry at most once and never under a second one. So a lease that
/// some transaction saw an entry leave carries nothing, whoever granted it, and may be revoked;
/// and a lease of which it is not known whether it carries something is left to run out.
pub(super) struct Leases {
    state: Mutex<State>,
    chores: Mutex<JoinSet<()>>,
    link: Arc<Link>,
    patience: Duration,
}

#[derive(Default)]
struct State {
    spares: BTreeMap<Seconds, Spare>,
    /// Where entries stand as far as this client knows. Only a hint: a transaction checks it.
    standing: HashMap<Key, (Seconds, Lease)>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Leases {
    pub(super) fn new(link: Arc<Link>, patience: Duration) -> Self {
        Self { state: Mutex::default(), chores: Mutex::default(), link, patience }
    }

    pub(super) fn take_any(&self, ttl: Seconds) -> Option<Spare> {
        locked(&self.state).spares.remove(&ttl)
    }

    /// A spare with enough time left that it does not run out on its way to the server.
    pub(super) fn take_young(&self, ttl: Seconds, now: Moment) -> Option<Spare> {
        let spare = self.take_any(ttl)?;
        if spare.is_young(ttl, now) {
            return Some(spare);
        }
        self.discard(spare.lease.id);
        None
    }

    pub(super) fn keep(&self, ttl: Seconds, spare: Spare) {
        let surplus = locked(&self.state).spares.insert(ttl, spare);
        if let Some(surplus) = surplus {
            self.discard(surplus.lease.id);
        }
    }

    pub(super) fn stands(&self, key: &Key, ttl: Seconds, lease: Lease) {
        locked(&self.state).standing.insert(key.clone(), (ttl, lease));
    }

    /// The lease of an entry, with its stream. What is dropped on the way can be made again.
    pub(super) fn borrow(&self, key: &Key, ttl: Seconds) -> Option<Lease> {
        let mut state = locked(&self.state);
        let (_, lease) = state.standing.get_mut(key).filter(|(of, _)| *of == ttl)?;
        Some(Lease { id: lease.id, beat: lease.beat.take(), seen: lease.seen.take() })
    }

    pub(super) fn give_back(&self, key: &Key, lease: Lease) {
        if let Some((_, standing)) = locked(&self.state).standing.get_mut(key)
            && standing.id == lease.id
        {
            *standing = lease;
        }
    }

    pub(super) fn forget(&self, key: &Key) {
        locked(&self.state).standing.remove(key);
    }

    /// Revokes a lease that carries nothing, while nobody waits for it.
    pub(super) fn discard(&self, id: LeaseId) {
        if id == LeaseId::NONE {
            return;
        }
        let (link, patience) = (Arc::clone(&self.link), self.patience);
        self.spawn(async move {
            // A lease that could not be revoked runs out by itself.
            let _ = timeout(patience, link.revoke(id)).await;
        });
    }

    /// Whether an entry stands on this lease by a write of this client.
    pub(super) fn is_ours(&self, key: &Key, id: LeaseId) -> bool {
        locked(&self.state).standing.get(key).is_some_and(|(_, lease)| lease.id == id)
    }

    /// Revokes a lease from which another's entry was taken: whoever renews by it alone must not be told that it stands
    /// once somebody was told that it does not. Goes on if nobody waits.
    pub(super) async fn revoke(&self, id: LeaseId) -> Result<(), Failure> {
        if id == LeaseId::NONE {
            return Ok(());
        }
        let (link, patience, (tell, told)) = (Arc::clone(&self.link), self.patience, channel());
        self.spawn(async move {
            let revoked = match timeout(patience, link.revoke(id)).await {
                Ok(Err(failure)) if failure.is_lease_gone() => Ok(()),
                Ok(revoked) => revoked,
                Err(_) => {
                    Err(Failure::odd("the lease of what stood there was not revoked in time"))
                }
            };
            // Nobody may wait any more.
            let _ = tell.send(revoked);
        });
        told.await.unwrap_or_else(|_| Err(Failure::odd("the store was closed")))
    }

    /// Runs something that ends with the store at the latest.
    pub(super) fn spawn(&self, chore: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut chores = locked(&self.chores);
        while chores.try_join_next().is_some() {}
        chores.spawn(chore)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        let wants = [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (20_000, 20)];
        for (millis, want) in wants {
            assert_eq!(Seconds::of(Duration::from_millis(millis)), Seconds(want), "{millis} ms");
        }
        assert_eq!(Seconds::of(Duration::MAX), Seconds(i64::MAX));
    }
}
