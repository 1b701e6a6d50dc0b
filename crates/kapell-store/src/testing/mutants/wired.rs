use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::wire::{Ask, Bytes, Reply, entry, receive, send, serve};
use crate::check;
use crate::error::Error;
use crate::mem::Mem;
use crate::model::{
    Commit, Entry, Expiry, Fence, Generation, Item, Key, Limits, Op, Page, Raise, Shard, Write,
};
use crate::open::How;
use crate::store::{Shards, Store, Ttl};
use crate::testing::{Fresh, Place};
use crate::watch::{Bell, Watch};

/// What a client can get wrong about its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wiring {
    SendsAgain,
    TakesACutForALoss,
    TakesACutForSuccess,
    CommitsAtWhatStands,
    WaitsForEver,
    StaysBroken,
    LocksFirst,
    WatchStaysSilent,
}

/// Makes stores in memory behind a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wired(pub(super) Option<Wiring>);

#[derive(Debug)]
struct Served {
    address: SocketAddr,
    fault: Option<Wiring>,
    _server: JoinSet<()>,
}

#[derive(Debug)]
struct Client {
    address: SocketAddr,
    limit: Duration,
    fault: Option<Wiring>,
    line: Mutex<Option<TcpStream>>,
    feeders: std::sync::Mutex<JoinSet<()>>,
}

#[async_trait]
impl Place for Wired {
    async fn fresh(&self, how: &How) -> Result<Arc<dyn Fresh>, Error> {
        let opened = serve(Arc::new(Mem::new(how.clock.clone()))).await;
        let (address, tasks) = opened.map_err(|error| failed("open", error))?;
        Ok(Arc::new(Served { address, fault: self.0, _server: tasks }))
    }
}

#[async_trait]
impl Fresh for Served {
    async fn client(&self, how: &How) -> Result<Arc<dyn Store>, Error> {
        self.client_through(self.address, how).await
    }

    fn server(&self) -> Option<SocketAddr> {
        Some(self.address)
    }

    async fn client_through(&self, at: SocketAddr, how: &How) -> Result<Arc<dyn Store>, Error> {
        let (line, feeders) = (Mutex::new(None), std::sync::Mutex::default());
        let client = Client { address: at, limit: how.timeout, fault: self.fault, line, feeders };
        client.call("open", Ask::List).await?;
        Ok(Arc::new(client))
    }
}

fn failed(call: &'static str, error: io::Error) -> Error {
    Error::Failed { store: "wired:".to_owned(), call, source: error.into() }
}

impl Client {
    fn is(&self, fault: Wiring) -> bool {
        self.fault == Some(fault)
    }

    async fn call(&self, call: &'static str, ask: Ask) -> Result<Reply, Error> {
        let limit =
            if self.is(Wiring::WaitsForEver) { Duration::from_secs(12) } else { self.limit };
        let first = timeout(limit, self.exchange(&ask)).await;
        match first {
            Ok(Err(_)) if self.is(Wiring::SendsAgain) => {
                self.exchange(&ask).await.map_err(|error| failed(call, error))
            }
            Ok(reply) => reply.map_err(|error| failed(call, error)),
            Err(_) => Err(Error::Timeout { store: "wired:".to_owned(), call, limit }),
        }
    }

    async fn exchange(&self, ask: &Ask) -> io::Result<Reply> {
        let mut line = self.line.lock().await;
        // Taken out: whoever gives up in the middle leaves no half-read answer behind.
        let mut stream = match line.take() {
            Some(stream) => stream,
            None => TcpStream::connect(self.address).await?,
        };
        stream.set_nodelay(true)?;
        let reply = self.converse(&mut stream, ask).await;
        if reply.is_ok() || self.is(Wiring::StaysBroken) {
            *line = Some(stream);
        }
        reply
    }

    async fn converse(&self, stream: &mut TcpStream, ask: &Ask) -> io::Result<Reply> {
        if matches!(ask, Ask::Commit { .. }) && self.is(Wiring::LocksFirst) {
            send(stream, &Ask::Lock).await?;
            let _: Reply = receive(stream).await?;
        }
        send(stream, ask).await?;
        receive(stream).await
    }

    async fn write(&self, call: &'static str, ask: Ask) -> Result<Write, Error> {
        match self.call(call, ask).await {
            Ok(Reply::Write(done)) => Ok(Write::of(done)),
            Err(_) if self.is(Wiring::TakesACutForALoss) => Ok(Write::Lost),
            Err(error) => Err(error),
            Ok(other) => Err(odd(call, &other)),
        }
    }
}

fn odd(call: &'static str, reply: &Reply) -> Error {
    failed(call, io::Error::other(format!("an odd reply: {reply:?}")))
}

fn bytes(key: &Key) -> Bytes {
    key.as_bytes().into()
}

#[async_trait]
impl Ttl for Client {
    fn expiry(&self) -> Expiry {
        Expiry { shortest: Duration::from_millis(1), lag: Duration::ZERO }
    }

    async fn prepare(&self, _: Duration) -> Result<(), Error> {
        Ok(())
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, value)?;
        self.write("insert", Ask::Insert(bytes(key), seen.0, value.into(), ttl)).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, new)?;
        self.write("swap", Ask::Swap(bytes(key), old.into(), new.into(), ttl)).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        self.write("delete", Ask::Delete(bytes(key), old.into())).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        let reply = self.call("read", Ask::Read(bytes(key))).await?;
        let Reply::Entry(told) = reply else { return Err(odd("read", &reply)) };
        Ok(entry(told))
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        let reply = self.call("list", Ask::List).await?;
        let Reply::List(all) = reply else { return Err(odd("list", &reply)) };
        Ok(all.into_iter().map(|(key, told)| (key.key(), entry(told))).collect())
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        self.call("lift", Ask::Lift(bytes(key), floor.0)).await.map(drop)
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        let open = async {
            let mut stream = TcpStream::connect(self.address).await?;
            send(&mut stream, &Ask::Watch(bytes(key))).await?;
            let _: Reply = receive(&mut stream).await?;
            io::Result::Ok(stream)
        };
        let limit = self.limit;
        let late = |_| Error::Timeout { store: "wired:".to_owned(), call: "watch", limit };
        let stream = timeout(limit, open).await.map_err(late)?;
        let mut stream = stream.map_err(|error| failed("watch", error))?;
        let (bell, stays) = (Bell::new(), self.is(Wiring::WatchStaysSilent));
        let watch = bell.watch();
        let mut feeders = self.feeders.lock().unwrap_or_else(PoisonError::into_inner);
        let feeder = feeders.spawn(async move {
            while receive::<Reply>(&mut stream).await.is_ok() {
                bell.ring();
            }
            if stays {
                std::future::pending::<()>().await;
            }
        });
        Ok(watch.fed_by(feeder))
    }
}

#[async_trait]
impl Shards for Client {
    fn limits(&self) -> Limits {
        Limits { commit_ops: 500, commit_bytes: 300_000, value_bytes: 100_000, key_bytes: 1024 }
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        let fence = |(epoch, seq)| Fence { epoch: Epoch(epoch), seq };
        let reply = self.call("raise", Ask::Raise(seat.0, epoch.0)).await?;
        if let Reply::NotRaised(by) = reply {
            return Ok(Raise::Fenced(Epoch(by)));
        }
        let Reply::Raised(fences) = reply else { return Err(odd("raise", &reply)) };
        Ok(Raise::Done(fences.into_iter().map(fence).collect()))
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        let reply = self.call("fence", Ask::Fence(shard.seat.0, shard.number)).await?;
        let Reply::Fence(epoch, seq) = reply else { return Err(odd("fence", &reply)) };
        Ok(Fence { epoch: Epoch(epoch), seq })
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        check::commit(self.limits(), ops)?;
        let ops = ops.iter().map(|op| match op {
            Op::Put(key, value) => (bytes(key), Some(value.as_slice().into())),
            Op::Delete(key) => (bytes(key), None),
        });
        let shard = (shard.seat.0, shard.number);
        let ask = |at: Fence, ops| Ask::Commit { shard, at: (at.epoch.0, at.seq), ops };
        let ops: Vec<_> = ops.collect();
        let mut reply = self.call("commit", ask(at, ops.clone())).await;
        if let Ok(Reply::Fence(epoch, seq)) = reply
            && self.is(Wiring::CommitsAtWhatStands)
        {
            reply = self.call("commit", ask(Fence { epoch: Epoch(epoch), seq }, ops)).await;
        }
        match reply {
            Ok(Reply::Committed) => Ok(Commit::Done),
            Ok(Reply::Fence(epoch, seq)) => Ok(Commit::Fenced(Fence { epoch: Epoch(epoch), seq })),
            Err(_) if self.is(Wiring::TakesACutForSuccess) => Ok(Commit::Done),
            Err(error) => Err(error),
            Ok(other) => Err(odd("commit", &other)),
        }
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        let ask = Ask::Scan((shard.seat.0, shard.number), after.map(bytes));
        let reply = self.call("scan", ask).await?;
        let Reply::Page(items, next) = reply else { return Err(odd("scan", &reply)) };
        let item = |(key, value): (Bytes, Bytes)| Item { key: key.key(), value: value.to_vec() };
        let items = items.into_iter().map(item).collect();
        Ok(Page { items, next: next.map(|next| next.key()) })
    }
}

impl Store for Client {
    fn name(&self) -> &'static str {
        "wired:"
    }
}
