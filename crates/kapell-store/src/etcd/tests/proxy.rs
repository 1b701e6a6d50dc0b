use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Stands between a client and a server and makes their connection as bad as a test needs it.
pub(super) struct Proxy {
    pub(super) address: String,
    line: Arc<watch::Sender<Line>>,
    _tasks: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Open,
    /// Nothing gets through, nothing is closed.
    Silent,
    /// What the client says arrives; what the server says does not.
    AnswersLost,
    /// What was open is closed, and nothing new is taken.
    Cut,
}

impl Proxy {
    pub(super) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let line = Arc::new(watch::Sender::new(Line::Open));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server.to_owned(), Arc::clone(&line)));
        Self { address, line, _tasks: tasks }
    }

    pub(super) fn set(&self, line: Line) {
        self.line.send_replace(line);
    }
}

async fn accept(listener: TcpListener, server: String, line: Arc<watch::Sender<Line>>) {
    let mut pairs = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let now = line.subscribe();
        if *now.borrow() == Line::Cut {
            continue;
        }
        let Ok(upstream) = TcpStream::connect(&server).await else { continue };
        client.set_nodelay(true).unwrap();
        upstream.set_nodelay(true).unwrap();
        pairs.spawn(pair(client, upstream, now));
    }
}

async fn pair(client: TcpStream, server: TcpStream, mut line: watch::Receiver<Line>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = [Line::Open, Line::AnswersLost];
    tokio::select! {
        () = pump(from_client, to_server, line.clone(), &requests) => {}
        () = pump(from_server, to_client, line.clone(), &[Line::Open]) => {}
        _ = line.wait_for(|line| *line == Line::Cut) => {}
    }
}

async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut line: watch::Receiver<Line>,
    passing: &[Line],
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if line.wait_for(|line| passing.contains(line)).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// An address at which nobody listens.
pub(super) async fn deserted() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

/// How much later than its limit a call may be seen to end on a busy machine.
pub(super) const SOON: Duration = Duration::from_secs(5);
