//! A leader that does what a test wants.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::DEADLINE;
use super::timeout;

/// Sends back every byte as it comes, and the head of the request as headers.
pub(super) struct Echo {
    pub(super) at: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Echo {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let service = service_fn(|request| async { Ok::<_, Infallible>(echo(request)) });
                let serve = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                open.spawn(async move { drop(serve.await) });
            }
        });
        Self { at, _tasks: tasks }
    }
}

fn echo(request: Request<Incoming>) -> Response<Incoming> {
    let (parts, body) = request.into_parts();
    let mut answer = Response::new(body);
    *answer.status_mut() = hyper::StatusCode::ACCEPTED;
    let headers = answer.headers_mut();
    headers.insert("x-line", format!("{} {}", parts.method, parts.uri).parse().unwrap());
    for (name, value) in &parts.headers {
        headers.append(
            hyper::header::HeaderName::try_from(format!("got-{name}")).unwrap(),
            value.clone(),
        );
    }
    headers.insert("kapell-served-by", "000000000000000a".parse().unwrap());
    headers.insert("connection", "x-secret, keep-alive".parse().unwrap());
    headers.insert("x-secret", "1".parse().unwrap());
    answer
}

/// Takes one request and answers when it is told to.
pub(super) struct Slow {
    pub(super) at: SocketAddr,
    asked: Arc<Notify>,
    pub(super) go: Arc<Notify>,
    gone: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Slow {
    pub(super) async fn start() -> Self {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let [asked, go, gone] = [(); 3].map(|()| Arc::new(Notify::new()));
        let mut tasks = JoinSet::new();
        let told = (Arc::clone(&asked), Arc::clone(&go), Arc::clone(&gone));
        tasks.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 4096];
            assert_ne!(stream.read(&mut bytes).await.unwrap(), 0);
            told.0.notify_one();
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate";
            tokio::select! {
                () = told.1.notified() => stream.write_all(answer.as_bytes()).await.unwrap(),
                read = stream.read(&mut bytes) => assert_eq!(read.unwrap_or(0), 0),
            }
            told.2.notify_one();
        });
        Self { at, asked, go, gone, _tasks: tasks }
    }

    /// Waits until the request is here.
    pub(super) async fn asked(&self) {
        timeout(DEADLINE, self.asked.notified()).await.expect("nobody asks");
    }

    /// Waits until it was answered or nobody waits for it any more.
    pub(super) async fn gone(&self) {
        timeout(DEADLINE, self.gone.notified()).await.expect("still there");
    }
}
