//! `etcd:`: a store in an etcd cluster, for several hosts.

mod address;
mod ears;
mod entries;
mod failure;
mod leases;
mod link;
mod paths;
mod shards;
#[cfg(test)]
mod tests;
mod ttl;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use etcd_client::{Compare, CompareOp, GetOptions, GetResponse, Txn, TxnOp, TxnOpResponse};
use etcd_client::{KeyValue, TxnResponse};
use kapell_core::seams::Clock;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use self::address::Address;
use self::ears::Ears;
use self::failure::Failure;
use self::leases::{Leases, Seconds};
use self::link::Link;
use self::paths::Paths;
use crate::error::Error;
use crate::model::SHARDS;
use crate::open::How;
use crate::store::Store;

const FORMAT: u32 = 1;

/// A store in etcd.
///
/// `etcd://[user:password@]host:port[,host:port…][/root]?tls=true&ca=FILE&cert=FILE&key=FILE`
/// with `&domain=NAME` if the certificates bear another name, and `&password_file=FILE` to keep
/// the password out of the command line. `etcds://` is `etcd://` with `tls=true`.
pub struct Etcd {
    name: String,
    paths: Paths,
    link: Arc<Link>,
    leases: Leases,
    ears: Ears,
    /// The shortest time to live that the server grants.
    shortest: Duration,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// How many records the next page is asked for; see `scan`.
    page: AtomicI64,
}

#[derive(Serialize, Deserialize)]
struct Layout {
    format: u32,
    shards: Option<u16>,
}

/// What is at the place that a URL names.
enum Looked {
    Fits { shortest: Duration },
    Absent,
    Foreign { found: String },
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Etcd").field(&self.name).finish()
    }
}

impl Store for Etcd {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Etcd {
    pub async fn open(url: &str, how: &How) -> Result<Self, Error> {
        let address = Address::parse(url)?;
        let link = Arc::new(Link::new(&address, how));
        let mut etcd = Self {
            name: address.name(),
            paths: Paths::below(&address.root),
            leases: Leases::new(Arc::clone(&link), how.timeout),
            ears: Ears::default(),
            link,
            shortest: Duration::ZERO,
            timeout: how.timeout,
            clock: Arc::clone(&how.clock),
            page: AtomicI64::new(shards::FIRST_PAGE),
        };
        let began = how.clock.now();
        let tried = || how.clock.now().since(began);
        etcd.shortest = match timeout(how.timeout, etcd.look_around(how.create)).await {
            Ok(Ok(Looked::Fits { shortest })) => shortest,
            Ok(Ok(Looked::Absent)) => return Err(Error::Absent { store: etcd.name }),
            Ok(Ok(Looked::Foreign { found })) => {
                return Err(Error::Format { store: etcd.name, found, known: FORMAT });
            }
            Ok(Err(failure)) => return Err(failure.told(&etcd.name, "open", tried())),
            Err(late) => {
                let (store, source) = (etcd.name, late.into());
                return Err(Error::Unreachable { store, tried: tried(), source });
            }
        };
        Ok(etcd)
    }

    async fn look_around(&self, create: bool) -> Result<Looked, Failure> {
        let found = self.first_answer().await?;
        let bytes = match found.kvs().first() {
            Some(kv) => kv.value().to_vec(),
            None if create => self.lay_out().await?,
            None => return Ok(Looked::Absent),
        };
        let found = match serde_json::from_slice(&bytes) {
            Ok(Layout { format: FORMAT, shards: Some(SHARDS) }) => {
                return Ok(Looked::Fits { shortest: self.shortest_ttl().await? });
            }
            Ok(Layout { format: FORMAT, shards: Some(shards) }) => {
                format!("{FORMAT} with {shards} shards")
            }
            Ok(Layout { format, .. }) => format.to_string(),
            Err(error) => format!("unknown ({error})"),
        };
        Ok(Looked::Foreign { found })
    }

    /// Reads the layout from the first member that answers.
    async fn first_answer(&self) -> Result<GetResponse, Failure> {
        let read = || self.link.get(&self.paths.layout, GetOptions::new());
        for _ in 1..self.link.member_count() {
            match read().await {
                Err(failure) if failure.is_transport() => {}
                answer => return answer,
            }
        }
        read().await
    }

    async fn lay_out(&self) -> Result<Vec<u8>, Failure> {
        let layout = Layout { format: FORMAT, shards: Some(SHARDS) };
        let bytes = serde_json::to_vec(&layout).map_err(|error| Failure::odd(error.to_string()))?;
        let path = &self.paths.layout;
        let txn = Txn::new()
            .when([absent(path)])
            .and_then([TxnOp::put(path.clone(), bytes.clone(), None)])
            .or_else([TxnOp::get(path.clone(), None)]);
        let answer = self.link.txn(txn).await?;
        if answer.succeeded() {
            return Ok(bytes);
        }
        let theirs = values_of(&answer).pop().flatten();
        theirs.ok_or_else(|| Failure::odd("the layout came and went"))
    }

    /// etcd lengthens what it cannot honour; what it makes of one second is its shortest.
    async fn shortest_ttl(&self) -> Result<Duration, Failure> {
        let (lease, granted) = self.link.grant(Seconds(1)).await?;
        self.link.revoke(lease).await?;
        Ok(granted)
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

fn absent(path: &[u8]) -> Compare {
    Compare::create_revision(path, CompareOp::Equal, 0)
}

fn holds(path: &[u8], value: &[u8]) -> Compare {
    Compare::value(path, CompareOp::Equal, value)
}

/// What the reads of a transaction found, each with at most one key.
fn found_by(answer: &TxnResponse) -> Vec<Option<KeyValue>> {
    let answers = answer.op_responses().into_iter();
    answers
        .filter_map(|answer| match answer {
            TxnOpResponse::Get(mut got) => Some(got.take_kvs().pop()),
            TxnOpResponse::Put(_) | TxnOpResponse::Delete(_) | TxnOpResponse::Txn(_) => None,
        })
        .collect()
}

/// At which revision a read was answered. Other reads at that revision see the same moment.
fn revision_of(answer: &GetResponse) -> i64 {
    answer.header().map_or(0, etcd_client::ResponseHeader::revision)
}

fn values_of(answer: &TxnResponse) -> Vec<Option<Vec<u8>>> {
    let found = found_by(answer).into_iter();
    found.map(|kv| kv.map(|kv| kv.into_key_value().1)).collect()
}
