//! Stands between clients and a server and counts what they ask for.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::place::Place;
use crate::wire::Wire;

/// It ends with its connections when it is dropped.
#[derive(Debug)]
pub(crate) struct Meter {
    requests: Arc<AtomicU64>,
    /// The server as clients are to write it.
    pub(crate) server: String,
    _tasks: JoinSet<()>,
}

impl Meter {
    /// None for a store without a server.
    pub(crate) async fn open(place: &Place) -> anyhow::Result<Option<Self>> {
        if Wire::of(place.kind).is_none() {
            return Ok(None);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (own, server) = place.through(listener.local_addr()?);
        let to: SocketAddr = own.parse().with_context(|| format!("`{own}` is no address"))?;
        let requests = Arc::new(AtomicU64::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, to, place.kind, Arc::clone(&requests)));
        Ok(Some(Self { requests, server, _tasks: tasks }))
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

async fn accept(
    listener: TcpListener,
    to: SocketAddr,
    kind: crate::place::Kind,
    requests: Arc<AtomicU64>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let Some(wire) = Wire::of(kind) else { return };
        let requests = Arc::clone(&requests);
        // Whichever end goes away first ends the other, too.
        connections.spawn(async move { pass(client, to, wire, &requests).await.is_ok() });
    }
}

async fn pass(
    client: TcpStream,
    to: SocketAddr,
    mut wire: Wire,
    requests: &AtomicU64,
) -> std::io::Result<()> {
    let server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let length = from_client.read(&mut bytes).await?;
            if length == 0 {
                return Ok(());
            }
            requests.fetch_add(wire.hear(&bytes[..length]), Ordering::Relaxed);
            to_server.write_all(&bytes[..length]).await?;
        }
    };
    tokio::select! {
        done = asking => done,
        done = copy(&mut from_server, &mut to_client) => done.map(drop),
    }
}
