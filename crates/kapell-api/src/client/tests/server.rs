//! A server that answers what a test tells it to.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What a server does with the next request.
#[derive(Debug, Clone)]
pub(super) enum Turn {
    Answer(u16, &'static str),
    /// Takes the request and closes the connection.
    HangUp,
}

#[derive(Debug, Default)]
struct Script {
    turns: VecDeque<Turn>,
    seen: Vec<String>,
    connections: usize,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) url: String,
    script: Arc<Mutex<Script>>,
    _task: JoinSet<()>,
}

impl Server {
    pub(super) async fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let turns = turns.into_iter().collect();
        let script = Arc::new(Mutex::new(Script { turns, ..Script::default() }));
        let mut task = JoinSet::new();
        task.spawn(serve(listener, Arc::clone(&script)));
        Self { url: format!("http://{address}"), script, _task: task }
    }

    /// Every request so far: its line, its headers of interest, its body.
    pub(super) fn seen(&self) -> Vec<String> {
        self.script.lock().unwrap().seen.clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.script.lock().unwrap().connections
    }
}

async fn serve(listener: TcpListener, script: Arc<Mutex<Script>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        script.lock().unwrap().connections += 1;
        let script = Arc::clone(&script);
        connections.spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&script)));
            let _ended =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    script: Arc<Mutex<Script>>,
) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut line = format!("{} {}", head.method, head.uri);
    for name in ["authorization", "last-event-id", "kapell-epoch"] {
        if let Some(value) = head.headers.get(name) {
            line.push_str(&format!(" {name}={}", value.to_str()?));
        }
    }
    if !body.is_empty() {
        line.push_str(&format!(" {}", String::from_utf8_lossy(&body)));
    }
    let turn = {
        let mut script = script.lock().unwrap();
        script.seen.push(line);
        script.turns.pop_front()
    };
    match turn {
        Some(Turn::Answer(status, text)) => {
            let answer = Response::builder().status(status).header("kapell-event-id", "3-7");
            Ok(answer.body(Full::from(text))?)
        }
        Some(Turn::HangUp) | None => Err("hung up".into()),
    }
}
