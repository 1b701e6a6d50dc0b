//! What is held here: nobody else writes it before its time is over, so it need not be looked at meanwhile.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The keys that were renewed here, and until when that holds at least. Should one be taken by force, the next renewal tells.
#[derive(Debug, Default)]
pub(super) struct Own(Mutex<BTreeMap<Vec<u8>, Instant>>);

impl Own {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A renewal that was sent then has succeeded.
    pub(super) fn renewed(&self, key: &[u8], sent: Instant, ttl: Duration) {
        // What stands for centuries is nobody's seat.
        if let Some(until) = sent.checked_add(ttl) {
            self.all().insert(key.to_vec(), until);
        }
    }

    /// It was changed, or nobody knows.
    pub(super) fn forget(&self, key: &[u8]) {
        self.all().remove(key);
    }

    pub(super) fn holds(&self, key: &[u8]) -> bool {
        self.all().get(key).is_some_and(|until| Instant::now() < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn what_was_renewed_here_is_held_for_its_time() {
        let own = Own::default();
        assert!(!own.holds(b"seat"));
        own.renewed(b"seat", Instant::now(), TTL);
        assert!(own.holds(b"seat") && !own.holds(b"other"));
        tokio::time::advance(TTL / 2).await;
        let sent = Instant::now();
        tokio::time::advance(TTL / 4).await;
        own.renewed(b"seat", sent, TTL);
        tokio::time::advance(TTL / 2).await;
        assert!(own.holds(b"seat"), "by the second one");
        tokio::time::advance(TTL / 4).await;
        assert!(!own.holds(b"seat"), "its time counts from when it was sent");
        own.renewed(b"seat", Instant::now(), TTL);
        own.forget(b"seat");
        assert!(!own.holds(b"seat"));
        own.renewed(b"seat", Instant::now(), Duration::MAX);
        assert!(!own.holds(b"seat"));
    }
}
