use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kapell_core::seams::{Clock, Ids, Moment};
use kapell_core::seat::{Record, Seat};
use kapell_store::model::Entry;
use kapell_store::{Store, keys};

use super::clock::Stoppable;
use super::faulty::{Call, Fault, Faulty};
use super::killer::KillerLog;
use super::suite::{Speed, Stores};
use crate::elections::{Leased, Parts};

/// One store and those who compete over it.
#[derive(Debug)]
pub struct World {
    stores: Arc<dyn Stores>,
    name: String,
    speed: Speed,
    ids: Arc<Numbered>,
    /// A client of the store that no fault touches.
    pub store: Arc<dyn Store>,
}

/// Ids that are the same in every run.
#[derive(Debug, Default)]
struct Numbered(AtomicU64);

impl Ids for Numbered {
    fn draw(&self) -> u64 {
        (self.0.fetch_add(1, Ordering::SeqCst) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// One who competes: what a process would have of its own.
#[derive(Debug)]
pub struct Member {
    pub elections: Arc<Leased>,
    pub store: Arc<Faulty>,
    pub clock: Arc<Stoppable>,
    pub killer: Arc<KillerLog>,
}

impl World {
    /// A world over an empty store of this name.
    pub async fn new(stores: Arc<dyn Stores>, speed: Speed, name: &str) -> Self {
        let store = stores.open(name).await;
        let shortest = store.expiry().shortest;
        assert!(speed.lease >= shortest, "{} takes leases from {shortest:?}", store.name());
        Self { stores, name: name.to_owned(), speed, ids: Arc::default(), store }
    }

    /// Another process with a client of its own.
    pub async fn member(&self, address: &str) -> Member {
        let store = Arc::new(Faulty::new(self.stores.open(&self.name).await));
        let clock = Arc::new(Stoppable::new(self.stores.clock()));
        let killer = Arc::new(KillerLog::new(self.stores.clock()));
        let elections = Leased::new(Parts {
            store: Arc::clone(&store) as Arc<dyn Store>,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ids: Arc::clone(&self.ids) as Arc<dyn Ids>,
            killer: Arc::clone(&killer) as _,
            lease: self.speed.lease,
            address: address.to_owned(),
        });
        Member { elections: Arc::new(elections), store, clock, killer }
    }

    pub const fn lease(&self) -> Duration {
        self.speed.lease
    }

    /// How much later than it should something may be seen.
    pub const fn slack(&self) -> Duration {
        self.speed.slack
    }

    /// How soon whoever holds a seat finds out that somebody else has changed it.
    pub fn noticed(&self) -> Duration {
        if self.speed.told { self.slack() } else { self.lease() / 4 + self.slack() }
    }

    pub fn now(&self) -> Moment {
        self.stores.clock().now()
    }

    /// How long a seat may stay empty after its holder is gone without a word.
    pub fn failover(&self) -> Duration {
        self.lease() + self.store.expiry().lag + Duration::from_secs(1)
    }

    /// What stands in a seat, as someone sees it who has no part in it.
    ///
    /// # Panics
    /// When the store fails.
    pub async fn entry(&self, seat: Seat) -> Entry {
        self.store.read(&keys::leader(seat)).await.expect("the onlooker reads")
    }

    pub async fn record(&self, seat: Seat) -> Option<Record> {
        Record::decode(&self.value(seat).await?)
    }

    pub async fn value(&self, seat: Seat) -> Option<Vec<u8>> {
        Some(self.entry(seat).await.held?.value)
    }

    /// Puts something else where a seat's record stands.
    ///
    /// # Panics
    /// When nothing stands there, or the store fails.
    pub async fn replace(&self, seat: Seat, new: &[u8], ttl: Option<Duration>) {
        let old = self.value(seat).await.expect("something stands in the seat");
        let write = self.store.compare_and_swap(&keys::leader(seat), &old, new, ttl).await;
        assert!(write.expect("the onlooker writes").is_done());
    }

    /// Takes a seat's record away.
    ///
    /// # Panics
    /// When nothing stands there, or the store fails.
    pub async fn remove(&self, seat: Seat) {
        let old = self.value(seat).await.expect("something stands in the seat");
        let write = self.store.compare_and_delete(&keys::leader(seat), &old).await;
        assert!(write.expect("the onlooker writes").is_done());
    }
}

impl Member {
    /// Stops the process, as SIGSTOP does: it sees no time and nothing comes or goes.
    pub fn stop(&self) {
        self.clock.stop();
        self.store.set(&Call::ALL, Fault::Hang);
        self.store.mute();
    }

    pub fn go_on(&self) {
        self.clock.go_on();
        self.store.heal();
    }
}
