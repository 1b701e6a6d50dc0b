use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use etcd_client::{
    Client, ConnectOptions, GetOptions, GetResponse, KvClient, LeaseClient, LeaseKeepAliveStream,
    LeaseKeeper, Txn, TxnResponse, WatchStream,
};
use kapell_core::seams::{Clock, Moment};
use tokio::sync::OnceCell;

use super::address::Address;
use super::failure::{Failure, is_member_down, is_stale_login};
use super::leases::{Lease, LeaseId, Pulse, Seconds};
use crate::open::How;

/// The longest answer that is taken; anything longer is refused before it is read.
pub(super) const ANSWER_BYTES: usize = 8 << 20;
/// etcd ends connections that are pinged more often than every five seconds, or while idle.
const PING_EVERY: Duration = Duration::from_secs(10);

/// The members of a cluster, of which one is talked to until it fails.
///
/// Spreading calls over all of them, which the client crate would do, fails a part of the calls
/// for as long as one member is down. Nothing is sent twice, with one exception: a server that
/// refuses a login has not looked at the request.
pub(super) struct Link {
    members: Vec<Member>,
    turn: AtomicUsize,
    options: ConnectOptions,
    patience: Duration,
    clock: Arc<dyn Clock>,
    /// How many messages were sent.
    #[cfg(test)]
    pub(super) sent: std::sync::atomic::AtomicU64,
}

struct Member {
    endpoint: String,
    wires: OnceCell<Wires>,
}

struct Wires {
    member: usize,
    client: Client,
    kv: KvClient,
    lease: LeaseClient,
}

/// A stream on which one lease is kept alive.
#[derive(Debug)]
pub(super) struct Beat {
    member: usize,
    keeper: LeaseKeeper,
    stream: LeaseKeepAliveStream,
}

impl Beat {
    async fn again(&mut self) -> Result<Pulse, Failure> {
        self.keeper.keep_alive().await?;
        let answer = self.stream.message().await?;
        let answer = answer.ok_or_else(|| Failure::odd("the stream ended"))?;
        Ok(if answer.ttl() > 0 { Pulse::Beats } else { Pulse::Gone })
    }
}

/// One call to one member. Whoever gives up waiting for it, for whatever reason, has the next
/// call go to another member.
struct Attempt<'a> {
    link: &'a Link,
    member: usize,
    since: Moment,
    is_answered: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let waited = self.link.clock.now().since(self.since);
        if !self.is_answered && waited >= self.link.patience {
            self.link.turn_from(self.member);
        }
    }
}

impl Link {
    pub(super) fn new(address: &Address, how: &How) -> Self {
        let members: Vec<_> = address
            .endpoints()
            .map(|endpoint| Member { endpoint, wires: OnceCell::new() })
            .collect();
        let share = u32::try_from(members.len() + 1).unwrap_or(u32::MAX);
        let options = address
            .options()
            .with_connect_timeout(how.timeout / share)
            .with_keep_alive(PING_EVERY, how.timeout)
            .with_keep_alive_while_idle(false)
            .with_require_leader(true);
        Self {
            members,
            turn: AtomicUsize::new(0),
            options,
            patience: how.timeout / 4,
            clock: Arc::clone(&how.clock),
            #[cfg(test)]
            sent: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// Counts a message, for tests.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "only tests count"))]
    fn sends(&self) {
        #[cfg(test)]
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// The one that is talked to.
    pub(super) fn member(&self) -> usize {
        self.turn.load(Ordering::Relaxed)
    }

    fn attempt(&self, member: usize) -> Attempt<'_> {
        Attempt { link: self, member, since: self.clock.now(), is_answered: false }
    }

    pub(super) fn member_count(&self) -> usize {
        self.members.len()
    }

    fn turn_from(&self, member: usize) {
        let next = (member + 1) % self.members.len();
        // Someone else may have turned already; then theirs stands.
        let _ = self.turn.compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    async fn wires(&self, member: usize) -> Result<&Wires, etcd_client::Error> {
        let Member { endpoint, wires } = &self.members[member];
        wires
            .get_or_try_init(|| async {
                let client = Client::connect([endpoint], Some(self.options.clone())).await?;
                let kv = client.kv_client().max_decoding_message_size(ANSWER_BYTES);
                Ok(Wires { member, kv, lease: client.lease_client(), client })
            })
            .await
    }

    async fn call<T, F>(&self, send: impl Fn(&Wires) -> F + Send) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>> + Send,
    {
        let member = self.member();
        let mut attempt = self.attempt(member);
        self.sends();
        let answer = match Box::pin(self.wires(member)).await {
            Ok(wires) => match Box::pin(send(wires)).await {
                Err(error) if is_stale_login(&error) => {
                    wires.client.refresh_token().await?;
                    Box::pin(send(wires)).await
                }
                answer => answer,
            },
            Err(error) => Err(error),
        };
        attempt.is_answered = true;
        if answer.as_ref().is_err_and(is_member_down) {
            self.turn_from(member);
        }
        Ok(answer?)
    }

    /// Decides and writes in one step.
    ///
    /// Not for reading only: etcd before 3.5.5 ends with a panic if whoever sent a transaction
    /// without writes goes away while it is being answered (etcd-io/etcd#14110).
    pub(super) async fn txn(&self, txn: Txn) -> Result<TxnResponse, Failure> {
        self.call(|wires| {
            let (mut kv, txn) = (wires.kv.clone(), txn.clone());
            async move { kv.txn(txn).await }
        })
        .await
    }

    pub(super) async fn get(
        &self,
        path: &[u8],
        options: GetOptions,
    ) -> Result<GetResponse, Failure> {
        self.call(|wires| {
            let (mut kv, path, options) = (wires.kv.clone(), path.to_vec(), options.clone());
            async move { kv.get(path, Some(options)).await }
        })
        .await
    }

    /// A new lease, and for how long the server grants it: that may be longer.
    pub(super) async fn grant(&self, ttl: Seconds) -> Result<(LeaseId, Duration), Failure> {
        let granted = self
            .call(|wires| {
                let mut lease = wires.lease.clone();
                async move { lease.grant(ttl.0, None).await }
            })
            .await?;
        let seconds = u64::try_from(granted.ttl()).unwrap_or_default();
        Ok((LeaseId(granted.id()), Duration::from_secs(seconds)))
    }

    pub(super) async fn revoke(&self, id: LeaseId) -> Result<(), Failure> {
        self.call(|wires| {
            let mut lease = wires.lease.clone();
            async move { lease.revoke(id.0).await.map(drop) }
        })
        .await
    }

    /// Gives a lease its full time again by a message on the stream that it has. Nothing if it has none to the member that
    /// is talked to, or if that broke.
    pub(super) async fn beat(&self, lease: &mut Lease) -> Option<Pulse> {
        let member = self.member();
        let mut beat = lease.beat.take().filter(|beat| beat.member == member)?;
        let mut attempt = self.attempt(member);
        self.sends();
        let pulse = beat.again().await;
        attempt.is_answered = true;
        let pulse = pulse.ok()?;
        lease.beat = Some(beat);
        Some(pulse)
    }

    /// Gives a lease its full time again. That may be asked for any number of times, so a
    /// stream that broke is no reason to give up.
    pub(super) async fn keep_alive(&self, lease: &mut Lease) -> Result<Pulse, Failure> {
        if let Some(pulse) = self.beat(lease).await {
            return Ok(pulse);
        }
        let id = lease.id;
        let opened = self.call(|wires| {
            let (mut client, member) = (wires.lease.clone(), wires.member);
            async move {
                match client.keep_alive(id.0).await {
                    Ok((keeper, stream)) => Ok(Some(Beat { member, keeper, stream })),
                    Err(etcd_client::Error::LeaseKeepAliveError(_)) => Ok(None),
                    Err(error) => Err(error),
                }
            }
        });
        let Some(beat) = opened.await? else { return Ok(Pulse::Gone) };
        lease.beat = Some(beat);
        Ok(Pulse::Beats)
    }

    /// How long a lease has left at least; nothing if it is over.
    pub(super) async fn time_left(&self, id: LeaseId) -> Result<Option<Duration>, Failure> {
        let left = self
            .call(|wires| {
                let mut lease = wires.lease.clone();
                async move { lease.time_to_live(id.0, None).await }
            })
            .await?;
        Ok(u64::try_from(left.ttl()).ok().map(Duration::from_secs))
    }

    /// Watches several paths at once, at one member. All watches stand when this returns.
    pub(super) async fn watch(&self, paths: &[Vec<u8>]) -> Result<(usize, WatchStream), Failure> {
        match self.try_watch(paths).await {
            Err(failure) if failure.is_refusal() => {
                let wires = self.wires(self.member()).await?;
                wires.client.refresh_token().await?;
                self.try_watch(paths).await
            }
            answer => answer,
        }
    }

    /// A refusal comes as a message on a stream that was opened well, not as an error, and
    /// looks the same whether the login ran out or was never good enough.
    async fn try_watch(&self, paths: &[Vec<u8>]) -> Result<(usize, WatchStream), Failure> {
        let Some((first, others)) = paths.split_first() else {
            return Err(Failure::odd("a watch needs something to watch"));
        };
        let opened = self.call(|wires| {
            let (mut client, member) = (wires.client.watch_client(), wires.member);
            let (first, others) = (first.clone(), others.to_vec());
            async move {
                let mut stream = client.watch(first, None).await?;
                let mut missing = 1 + others.len();
                for path in others {
                    stream.watch(path, None).await?;
                }
                while missing > 0 {
                    let Some(message) = stream.message().await? else {
                        return Ok(Err("the stream ended".to_owned()));
                    };
                    if message.canceled() {
                        return Ok(Err(message.cancel_reason().to_owned()));
                    }
                    missing -= usize::from(message.created());
                }
                Ok(Ok((member, stream)))
            }
        });
        opened.await?.map_err(Failure::Cancelled)
    }
}
