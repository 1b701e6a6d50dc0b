use std::sync::Arc;
use std::time::Duration;

use kapell_core::seat::Seat;
use tokio::time::Instant;

use super::place::Fresh;
use super::timed::{SLACK, Span, pause, timed};
use super::verdict::{Verdict, ensure, same};
use crate::error::Error;
use crate::model::{Entry, Generation, Key, Shard, Write};
use crate::store::Store;

/// Long enough to outlive every case.
pub(super) const LONG: Duration = Duration::from_secs(120);

/// What one case works with: several clients of one store, and keys and a seat of its own.
#[derive(Debug, Clone)]
pub(super) struct Bench {
    pub(super) case: &'static str,
    pub(super) seat: Seat,
    pub(super) clients: Arc<[Arc<dyn Store>]>,
    pub(super) fresh: Arc<dyn Fresh>,
}

impl Bench {
    /// One of the clients, as another host would be one.
    pub(super) fn client(&self, number: usize) -> &Arc<dyn Store> {
        &self.clients[number % self.clients.len()]
    }

    pub(super) fn key(&self, label: &str) -> Key {
        Key::new([self.case.as_bytes(), b"/", label.as_bytes()].concat())
    }

    pub(super) const fn shard(&self, number: u16) -> Shard {
        Shard { seat: self.seat, number }
    }

    /// A time to live that can be waited for.
    pub(super) fn short(&self) -> Duration {
        self.client(0).expiry().shortest.max(Duration::from_millis(600))
    }

    pub(super) fn lag(&self) -> Duration {
        self.client(0).expiry().lag
    }

    pub(super) async fn insert(
        &self,
        key: &Key,
        seen: u64,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Span, super::Wrong> {
        let call = self.client(0).insert_if_absent(key, Generation(seen), value, ttl);
        let (write, span) = timed(call).await;
        same!(write?, Write::Done, "an insert into nothing at generation {seen}");
        Ok(span)
    }

    /// Every client must read the same.
    pub(super) async fn shows(&self, key: &Key, generation: u64, value: Option<&[u8]>) -> Verdict {
        for client in self.clients.iter() {
            let entry = client.read(key).await?;
            same!(entry.generation, Generation(generation), "the generation read");
            let held = entry.held.as_ref().map(|held| held.value.as_slice());
            ensure!(held == value, "read {} and not {}", brief(held), brief(value));
        }
        Ok(())
    }

    pub(super) async fn shows_generation(&self, key: &Key, generation: u64) -> Verdict {
        for client in self.clients.iter() {
            let is = client.read(key).await?.generation;
            same!(is, Generation(generation), "the generation read");
        }
        Ok(())
    }

    /// Where each client judges by what it has seen itself, all look once: from here on all of them count. Elsewhere nobody
    /// looks.
    pub(super) async fn noticed(&self, key: &Key, value: &[u8]) -> Verdict {
        for client in self.clients.iter().filter(|client| client.observes()) {
            let held = client.read(key).await?.held.map(|held| held.value);
            ensure!(held.as_deref() == Some(value), "noticed {}", brief(held.as_deref()));
        }
        Ok(())
    }

    /// Looks until the entry is gone: not before its time to live, nor later than promised.
    pub(super) async fn goes(&self, key: &Key, write: Span, ttl: Duration) -> Verdict {
        let latest = write.done + ttl + self.lag() + SLACK;
        for turn in 0.. {
            let (entry, look) = self.look(turn, key).await?;
            if entry.held.is_none() {
                let lived = look.done - write.sent;
                ensure!(lived >= ttl, "gone {lived:?} after the write was sent, ttl {ttl:?}");
                break;
            }
            let late = look.sent.saturating_duration_since(latest);
            ensure!(late.is_zero(), "still there {late:?} after ttl {ttl:?} and lag have passed");
            pause().await;
        }
        Ok(())
    }

    /// Looks until then whether exactly this value stands, without interruption.
    pub(super) async fn stays(&self, key: &Key, value: &[u8], until: Instant) -> Verdict {
        for turn in 0.. {
            let (entry, look) = self.look(turn, key).await?;
            let held = entry.held.as_ref().map(|held| held.value.as_slice());
            ensure!(held == Some(value), "read {} and not {}", brief(held), brief(Some(value)));
            if look.sent > until {
                break;
            }
            pause().await;
        }
        Ok(())
    }

    /// When no client may see an entry any more.
    pub(super) fn surely_gone(&self, write: Span, ttl: Duration) -> Instant {
        write.done + ttl + self.lag() + SLACK
    }

    async fn look(&self, turn: usize, key: &Key) -> Result<(Entry, Span), Error> {
        let (entry, span) = timed(self.client(turn).read(key)).await;
        Ok((entry?, span))
    }
}

/// A value that may be very long.
pub(super) fn brief(value: Option<&[u8]>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(value) if value.len() <= 40 => format!("`{}`", value.escape_ascii()),
        Some(value) => format!("{} bytes from `{}`", value.len(), value[..20].escape_ascii()),
    }
}
