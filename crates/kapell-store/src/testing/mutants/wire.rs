//! A server for a store in memory, so that there is something to cut a client off from.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kapell_core::seat::{Epoch, Seat};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinSet;

use crate::mem::Mem;
use crate::model::{Commit, Entry, Fence, Generation, Held, Key, Op, Raise, Shard};
use crate::store::{Shards as _, Ttl as _};

/// One byte, one character: much shorter than a list of numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bytes(String);

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.iter().map(|byte| char::from(*byte)).collect())
    }
}

impl Bytes {
    pub(super) fn to_vec(&self) -> Vec<u8> {
        self.0.chars().map(|char| u8::try_from(char).unwrap_or_default()).collect()
    }

    pub(super) fn key(&self) -> Key {
        Key::new(self.to_vec())
    }
}

pub(super) type Told = (u64, Option<(Bytes, Option<Duration>)>);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Ask {
    Insert(Bytes, u64, Bytes, Option<Duration>),
    Swap(Bytes, Bytes, Bytes, Option<Duration>),
    Delete(Bytes, Bytes),
    Read(Bytes),
    List,
    Lift(Bytes, u64),
    Watch(Bytes),
    Raise(u32, u64),
    Fence(u32, u16),
    Lock,
    Commit { shard: (u32, u16), at: (u64, u64), ops: Vec<(Bytes, Option<Bytes>)> },
    Scan((u32, u16), Option<Bytes>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Reply {
    Write(bool),
    Entry(Told),
    List(Vec<(Bytes, Told)>),
    Unit,
    Raised(Vec<(u64, u64)>),
    NotRaised(u64),
    Fence(u64, u64),
    Committed,
    Page(Vec<(Bytes, Bytes)>, Option<Bytes>),
}

pub(super) fn entry((generation, held): Told) -> Entry {
    let held = held.map(|(value, remaining)| Held { value: value.to_vec(), remaining });
    Entry { generation: Generation(generation), held }
}

fn told(entry: &Entry) -> Told {
    let held = entry.held.as_ref();
    (entry.generation.0, held.map(|held| (held.value.as_slice().into(), held.remaining)))
}

pub(super) async fn send(stream: &mut TcpStream, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    stream.write_all(&[&length[..], &text].concat()).await
}

pub(super) async fn receive<T: for<'de> Deserialize<'de>>(stream: &mut TcpStream) -> io::Result<T> {
    let mut text = vec![0; usize::try_from(stream.read_u32().await?).unwrap_or_default()];
    stream.read_exact(&mut text).await?;
    Ok(serde_json::from_slice(&text)?)
}

/// Serves until the tasks are dropped.
pub(super) async fn serve(store: Arc<Mem>) -> io::Result<(SocketAddr, JoinSet<()>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut lines, lock) = (JoinSet::new(), Arc::new(Mutex::new(())));
        while let Ok((stream, _)) = listener.accept().await {
            let (store, lock) = (store.clone(), lock.clone());
            lines.spawn(async move {
                // The connection ends; the client sees to the rest.
                let _ = line(stream, &store, lock).await;
            });
        }
    });
    Ok((address, tasks))
}

async fn line(mut stream: TcpStream, store: &Mem, lock: Arc<Mutex<()>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut locked: Option<OwnedMutexGuard<()>> = None;
    loop {
        let ask: Ask = receive(&mut stream).await?;
        let reply = match ask {
            Ask::Watch(key) => return watch(stream, store, &key.key()).await,
            Ask::Lock => {
                locked = Some(lock.clone().lock_owned().await);
                Reply::Unit
            }
            Ask::Raise(seat, epoch) => {
                let _guard = lock.lock().await;
                match store.raise(Seat(seat), Epoch(epoch)).await.map_err(io::Error::other)? {
                    Raise::Done(fences) => {
                        let fences = fences.iter().map(|fence| (fence.epoch.0, fence.seq));
                        Reply::Raised(fences.collect())
                    }
                    Raise::Fenced(by) => Reply::NotRaised(by.0),
                }
            }
            ask @ (Ask::Insert(..)
            | Ask::Swap(..)
            | Ask::Delete(..)
            | Ask::Read(_)
            | Ask::List
            | Ask::Lift(..)
            | Ask::Fence(..)
            | Ask::Commit { .. }
            | Ask::Scan(..)) => {
                let reply = answer(store, ask).await.map_err(io::Error::other)?;
                drop(locked.take());
                reply
            }
        };
        send(&mut stream, &reply).await?;
    }
}

async fn watch(mut stream: TcpStream, store: &Mem, key: &Key) -> io::Result<()> {
    let mut watch = store.watch(key).await.map_err(io::Error::other)?;
    loop {
        send(&mut stream, &Reply::Unit).await?;
        watch.changed().await.map_err(io::Error::other)?;
    }
}

async fn answer(store: &Mem, ask: Ask) -> Result<Reply, crate::error::Error> {
    let shard = |(seat, number)| Shard { seat: Seat(seat), number };
    let write = |write: crate::model::Write| Reply::Write(write.is_done());
    Ok(match ask {
        Ask::Insert(key, seen, value, ttl) => {
            let (seen, value) = (Generation(seen), value.to_vec());
            write(store.insert_if_absent(&key.key(), seen, &value, ttl).await?)
        }
        Ask::Swap(key, old, new, ttl) => {
            write(store.compare_and_swap(&key.key(), &old.to_vec(), &new.to_vec(), ttl).await?)
        }
        Ask::Delete(key, old) => write(store.compare_and_delete(&key.key(), &old.to_vec()).await?),
        Ask::Read(key) => Reply::Entry(told(&store.read(&key.key()).await?)),
        Ask::List => {
            let all = store.list().await?;
            Reply::List(
                all.iter().map(|(key, entry)| (key.as_bytes().into(), told(entry))).collect(),
            )
        }
        Ask::Lift(key, floor) => {
            store.lift(&key.key(), Generation(floor)).await?;
            Reply::Unit
        }
        Ask::Fence(seat, number) => {
            let fence = store.fence(shard((seat, number))).await?;
            Reply::Fence(fence.epoch.0, fence.seq)
        }
        Ask::Commit { shard: to, at: (epoch, seq), ops } => {
            let ops: Vec<Op> = ops.into_iter().map(op).collect();
            match store.commit(shard(to), Fence { epoch: Epoch(epoch), seq }, &ops).await? {
                Commit::Done => Reply::Committed,
                Commit::Fenced(by) => Reply::Fence(by.epoch.0, by.seq),
            }
        }
        Ask::Scan(of, after) => {
            let page = store.scan(shard(of), after.map(|after| after.key()).as_ref()).await?;
            let items = page.items.iter();
            let items =
                items.map(|item| (item.key.as_bytes().into(), item.value.as_slice().into()));
            Reply::Page(items.collect(), page.next.map(|next| next.as_bytes().into()))
        }
        Ask::Watch(_) | Ask::Lock | Ask::Raise(..) => Reply::Unit,
    })
}

fn op((key, value): (Bytes, Option<Bytes>)) -> Op {
    match value {
        Some(value) => Op::Put(key.key(), value.to_vec()),
        None => Op::Delete(key.key()),
    }
}
