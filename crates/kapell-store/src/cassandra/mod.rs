//! `cassandra://`: a store in a keyspace of a Cassandra cluster, version 4.1 or later.
//!
//! `cassandra://[user:password@]host[:port][,host[:port]…]/keyspace[/store]`, and behind a `?`
//! - `serial`: `global` (all data centres agree, the default) or `local` (one does: `dc`, and all hosts name the same).
//! - `dc`: the data centre whose nodes are asked.
//! - `replication`: lets the keyspace be made: `3`, or `dc1:3,dc2:3`.
//! - `gc_grace`: for how many seconds the tables, when they are made, keep what was deleted; see `docs/cassandra.md`.
//! - `tls=true` with `ca`, `cert`, `key` and `domain`, and `password_file`: as for etcd.
//!
//! Every change is a lightweight transaction: a statement, or a batch on one partition, with a condition. Their order is
//! that of Paxos, and the times of their cells are its ballots. Nothing is ever written without a condition, so no clock
//! of a client is in the data. Every read that is answered from is serial too.
//!
//! Times to live are counted by the clock of the node that is asked, never by a client's. They are a column that a
//! condition looks at and no TTL of Cassandra's: that counts whole seconds, and leaves rows behind that are in the way.

mod address;
mod answer;
mod entries;
mod fault;
mod layout;
mod link;
mod own;
mod query;
mod records;
mod slices;
#[cfg(test)]
mod tests;
mod tls;
mod watching;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapell_core::seams::Clock;
use scylla::client::session::Session;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::address::Address;
use self::fault::Failure;
use self::link::{Link, Statements};
use self::own::Own;
use self::slices::Bounds;
use crate::error::Error;
use crate::open::How;
use crate::store::Store;

/// Tables that another has just made are there for some of the nodes' statements only after a moment.
const MOMENT: Duration = Duration::from_millis(100);
const TRIES: u32 = 20;

/// A store in Cassandra. Calls may be dropped at any time: what they have sent may land or not, as after an error.
pub struct Cassandra {
    name: String,
    link: Arc<Link>,
    timeout: Duration,
    /// Only tells how long something took.
    clock: Arc<dyn Clock>,
    bounds: Mutex<Bounds>,
    own: Arc<Own>,
    watches: Mutex<JoinSet<()>>,
}

impl fmt::Debug for Cassandra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cassandra").field(&self.name).finish()
    }
}

impl Store for Cassandra {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Cassandra {
    /// Connects, and makes sure that the store is there.
    pub async fn open(url: &str, how: &How) -> Result<Self, Error> {
        let address = Address::parse(url)?;
        let name = address.name();
        let began = how.clock.now();
        let opened = open(address, how).await;
        let tried = || how.clock.now().since(began);
        let link = match opened {
            // That nobody answered at all is told as it is by all drivers.
            Err(Failure::Late(limit)) if limit == how.timeout => {
                let (store, source) = (name, Failure::Late(limit).into());
                return Err(Error::Unreachable { store, tried: tried(), source });
            }
            opened => opened.map_err(|failure| failure.told(&name, "open", tried()))?,
        };
        Ok(Self {
            name,
            link: Arc::new(link),
            timeout: how.timeout,
            clock: Arc::clone(&how.clock),
            bounds: Mutex::default(),
            own: Arc::default(),
            watches: Mutex::default(),
        })
    }

    /// Ends a call at its limit and tells its failure in the words of the crate.
    async fn within<T>(
        &self,
        call: &'static str,
        work: impl Future<Output = Result<T, Failure>> + Send,
    ) -> Result<T, Error> {
        let began = self.clock.now();
        match timeout(self.timeout, work).await {
            Ok(answer) => answer
                .map_err(|failure| failure.told(&self.name, call, self.clock.now().since(began))),
            Err(_) => Err(Error::Timeout { store: self.name.clone(), call, limit: self.timeout }),
        }
    }
}

async fn limited<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(limit, work).await.unwrap_or(Err(Failure::Late(limit)))
}

/// What is there is opened within the limit of a call. To make tables takes longer than anything else, once.
async fn open(address: Address, how: &How) -> Result<Link, Failure> {
    let found = limited(how.timeout, async {
        let session = link::connect(&address, how.timeout).await?;
        let found = find(&session, &address).await?;
        Ok((session, found))
    });
    let (session, found) = found.await?;
    let statements = match found {
        Some(statements) => statements,
        None if how.create => limited(layout::MAKING, make(&session, &address)).await?,
        None => return Err(Failure::Absent),
    };
    Ok(Link::new(address, session, statements, how.timeout))
}

/// What is prepared for a store that is there.
async fn find(session: &Session, address: &Address) -> Result<Option<Statements>, Failure> {
    let mut left = TRIES;
    loop {
        left -= 1;
        let found = async {
            if !layout::is_there(session, address).await? {
                return Ok(None);
            }
            link::prepare(session, address).await.map(Some)
        };
        match found.await {
            Err(failure) if failure.is_about_tables() && left > 0 => sleep(MOMENT).await,
            found => return found,
        }
    }
}

async fn make(session: &Session, address: &Address) -> Result<Statements, Failure> {
    loop {
        let made = async {
            layout::make(session, address).await?;
            find(session, address).await?.ok_or(Failure::Absent)
        };
        match made.await {
            Err(failure) if failure.is_about_tables() => sleep(MOMENT).await,
            made => return made,
        }
    }
}
