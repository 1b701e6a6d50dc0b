//! `dynamodb://`: a store in a table of Amazon DynamoDB.
//!
//! `dynamodb://REGION/TABLE`, and of options
//! - `endpoint`: where the service is, if it is not the region's usual place: an endpoint of a VPC, or DynamoDB Local.
//! - `ca`: a file with the authorities to believe instead of the system's.
//! - `profile`: whose credentials, of the files in which AWS tools keep them. Without it they are found as by those tools:
//!   environment, profile, web identity, container, machine.
//! - `credentials=none`: a placeholder instead of credentials, for DynamoDB Local.
//! - `pool`: how many commits and scans may be under way at a time, 16 if it does not say; elections are not held up by it.
//! - `create=true`: makes the table if there is none, if whoever opens the store may lay one out at all.
//!
//! The service has no clock that a condition could ask. An entry has run out once it has stood unchanged for its whole time
//! to live, by the clock of whoever looks: a newcomer waits for all of it, and no two clocks are compared. Whoever finds
//! one that has run out removes it, under the condition that it is still the same, before it says so: what was seen to be
//! gone is gone for everybody.
//!
//! Every write bears a stamp of its own, by which a client knows its own write again; nothing is sent twice without that.

mod address;
mod connect;
mod entries;
mod failure;
mod item;
mod layout;
mod records;
mod seen;
#[cfg(test)]
mod tests;
mod ttl;
mod turns;
mod watching;

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aws_sdk_dynamodb::Client;
use kapell_core::seams::Clock;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::address::Address;
use self::failure::Failure;
use self::item::{Stamp, Stand};
use self::seen::{Judged, Sights};
use crate::error::Error;
use crate::model::Key;
use crate::open::How;
use crate::store::Store;

/// A store in DynamoDB.
pub struct DynamoDb {
    core: Arc<Core>,
    watches: Mutex<JoinSet<()>>,
}

/// What watches need too.
struct Core {
    name: String,
    client: Client,
    table: String,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    sights: Mutex<Sights>,
    /// Commits and scans that may be under way: a server that does one at a time would keep elections waiting behind them.
    lane: Semaphore,
    /// Which of all clients this is, and how many stamps it has given out.
    who: u64,
    stamps: AtomicU64,
    /// Something was answered: what was asked was signed.
    had_credentials: AtomicBool,
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynamoDb").field(&self.core.name).finish()
    }
}

impl Store for DynamoDb {
    fn name(&self) -> &str {
        &self.core.name
    }
}

impl DynamoDb {
    /// Looks at the table, and makes what is missing if that is asked for.
    pub async fn open(url: &str, how: &How) -> Result<Self, Error> {
        let address: Address = url.parse()?;
        let name = address.name();
        let unusable = |why: String| Error::BadUrl { url: name.clone(), why };
        let client = connect::connect(&address, how).await.map_err(unusable)?;
        let core = Core {
            name,
            client,
            table: address.table.clone(),
            timeout: how.timeout,
            clock: Arc::clone(&how.clock),
            sights: Mutex::default(),
            lane: Semaphore::new(address.pool),
            who: RandomState::new().hash_one((SystemTime::now(), std::process::id())),
            stamps: AtomicU64::new(0),
            had_credentials: AtomicBool::new(false),
        };
        layout::check(&core, &address, how.create).await?;
        Ok(Self { core: Arc::new(core), watches: Mutex::default() })
    }
}

impl Core {
    /// No call takes longer than it was said.
    async fn within<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T, Failure>> + Send,
    ) -> Result<T, Error> {
        let began = self.clock.now();
        match timeout(self.timeout, answer).await {
            Ok(Ok(answer)) => {
                self.had_credentials.store(true, Ordering::Relaxed);
                Ok(answer)
            }
            Ok(Err(failure)) => {
                let had = self.had_credentials.load(Ordering::Relaxed);
                let failure = if had { failure.seen_later() } else { failure };
                Err(failure.told(&self.name, call, self.clock.now().since(began)))
            }
            Err(_) => Err(Error::Timeout { store: self.name.clone(), call, limit: self.timeout }),
        }
    }

    /// No other write has it.
    fn stamp(&self) -> Stamp {
        let number = self.stamps.fetch_add(1, Ordering::Relaxed);
        let mut stamp = [0; 16];
        stamp[..8].copy_from_slice(&self.who.to_be_bytes());
        stamp[8..].copy_from_slice(&number.to_be_bytes());
        stamp
    }

    fn see(&self, key: &Key, stand: Stand, own: bool) -> Judged {
        let now = self.clock.now();
        self.sights.lock().unwrap_or_else(PoisonError::into_inner).see(key, stand, own, now)
    }

    /// What is known to have run out, by its stamp.
    fn over(&self, key: &Key) -> Option<Vec<u8>> {
        let now = self.clock.now();
        self.sights.lock().unwrap_or_else(PoisonError::into_inner).over(key, now)
    }
}
