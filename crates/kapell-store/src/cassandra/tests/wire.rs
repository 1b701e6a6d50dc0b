//! Something in front of a server that counts what is asked.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

const EXECUTE: u8 = 0x0a;
const BATCH: u8 = 0x0d;

/// Ends with all of its connections when it is dropped.
pub(super) struct Wire {
    pub(super) address: SocketAddr,
    asked: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

struct Line {
    asked: Arc<AtomicU64>,
    first_table: Arc<AtomicBool>,
    slow: Duration,
}

impl Wire {
    pub(super) async fn to(server: &str) -> Self {
        Self::slow_with_tables(server, Duration::ZERO).await
    }

    /// Keeps the server from hearing of the first table for so long.
    pub(super) async fn slow_with_tables(server: &str, slow: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, first_table) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        let (server, count) = (server.to_owned(), Arc::clone(&asked));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                let (asked, first_table) = (Arc::clone(&count), Arc::clone(&first_table));
                let line = Line { asked, first_table, slow };
                lines.spawn(async move { drop(line.pass(client, server).await) });
            }
        });
        Self { address, asked, _tasks: tasks }
    }

    /// How many statements that were prepared were run so far, alone or in batches.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Line {
    async fn pass(&self, mut client: TcpStream, mut server: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        tokio::select! {
            ended = tokio::io::copy(&mut from_server, &mut to_client) => ended.map(drop),
            ended = async {
                loop {
                    let frame = self.frame(&mut from_client).await?;
                    to_server.write_all(&frame).await?;
                }
            } => ended,
        }
    }

    /// The next one: a head of nine bytes, with the kind in the fifth and the length of the rest in the last four.
    async fn frame(&self, from: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
        let mut head = [0; 9];
        from.read_exact(&mut head).await?;
        let [_, _, _, _, kind, length @ ..] = head;
        let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
        let mut frame = head.to_vec();
        frame.resize(head.len() + length, 0);
        from.read_exact(&mut frame[head.len()..]).await?;
        self.asked.fetch_add(u64::from(matches!(kind, EXECUTE | BATCH)), Ordering::Relaxed);
        let text = b"CREATE TABLE";
        let makes = frame.windows(text.len()).any(|part| part == text);
        if makes && self.first_table.swap(false, Ordering::Relaxed) {
            sleep_until(Instant::now() + self.slow).await;
        }
        Ok(frame)
    }
}
