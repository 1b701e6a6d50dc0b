//! Connections: opened, driven by whoever waits for something from them, and kept for the next.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::address::Base;
use super::call::Body;

/// How many connections to one place are kept.
const MOST_IDLE: usize = 8;
/// Servers close what lies idle for longer than this, or a little more.
pub(super) const LONGEST_IDLE: Duration = Duration::from_secs(4);
/// No server closes what it answered over so short a time ago, unless it ends.
pub(super) const A_MOMENT: Duration = Duration::from_secs(1);

pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug> Io for T {}

/// Why an exchange broke off.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("the connection broke")]
    Connection(#[from] hyper::Error),
    #[error("it took longer than {0:?}")]
    Late(Duration),
    #[error("the answer is longer than {0} bytes")]
    Long(usize),
}

impl Broken {
    pub(super) const fn late(limit: Duration) -> Self {
        Self::Late(limit)
    }
}

/// Connects to the first address of a place that `allowed` lets pass and that answers.
pub(super) async fn dial(
    base: &Base,
    tls: Option<&Arc<ClientConfig>>,
    allowed: impl Fn(IpAddr) -> bool,
) -> io::Result<Box<dyn Io>> {
    let addresses: Vec<SocketAddr> = lookup_host((base.host.as_str(), base.port)).await?.collect();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        if !allowed(address.ip()) {
            let text = format!("{} is for the machine itself only", address.ip());
            last = io::Error::new(io::ErrorKind::PermissionDenied, text);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return secure(base, tls, stream).await,
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn secure(
    base: &Base,
    tls: Option<&Arc<ClientConfig>>,
    stream: TcpStream,
) -> io::Result<Box<dyn Io>> {
    stream.set_nodelay(true)?;
    if !base.secure {
        return Ok(Box::new(stream));
    }
    let tls = tls.ok_or_else(|| io::Error::other("TLS is not set up"))?;
    let name = ServerName::try_from(base.host.clone()).map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?))
}

type Driver = http1::Connection<TokioIo<Box<dyn Io>>, Body>;

/// One connection.
#[derive(Debug)]
pub(super) struct Wire {
    sender: http1::SendRequest<Body>,
    driver: Option<Pin<Box<Driver>>>,
}

/// Moves what can be moved. How it ends is seen by those who wait.
fn drive(driver: &mut Option<Pin<Box<Driver>>>, cx: &mut Context<'_>) {
    if let Some(connection) = driver
        && connection.as_mut().poll(cx).is_ready()
    {
        *driver = None;
    }
}

impl Wire {
    pub(super) async fn open(io: Box<dyn Io>) -> hyper::Result<Self> {
        let (sender, driver) = http1::handshake(TokioIo::new(io)).await?;
        Ok(Self { sender, driver: Some(Box::pin(driver)) })
    }

    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> hyper::Result<Response<Incoming>> {
        let Self { sender, driver } = self;
        let mut sent = pin!(sender.send_request(request));
        poll_fn(|cx| {
            drive(driver, cx);
            sent.as_mut().poll(cx)
        })
        .await
    }

    /// Whether it takes another request, as far as anybody can know.
    fn is_usable(&mut self) -> bool {
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Connections to one place that wait for the next request.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<(Instant, Wire)>>,
}

impl Pool {
    /// One that has not been idle for longer than this. The one used last comes first.
    pub(super) fn take(&self, longest: Duration) -> Option<Wire> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(since, _)| since.elapsed() < LONGEST_IDLE);
        while idle.last().is_some_and(|(since, _)| since.elapsed() < longest) {
            let (_, mut wire) = idle.pop()?;
            if wire.is_usable() {
                return Some(wire);
            }
        }
        None
    }

    fn give(&self, wire: Wire) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push((Instant::now(), wire));
        }
    }
}

/// The body of an answer, with the connection that it comes over.
#[derive(Debug)]
pub(super) struct Download {
    /// Gone when all has come.
    wire: Option<Wire>,
    body: Incoming,
    pool: Arc<Pool>,
}

impl Download {
    pub(super) const fn new(wire: Wire, body: Incoming, pool: Arc<Pool>) -> Self {
        Self { wire: Some(wire), body, pool }
    }

    /// The next bytes; none when all have come.
    pub(super) async fn chunk(&mut self) -> hyper::Result<Option<Bytes>> {
        loop {
            let frame = poll_fn(|cx| {
                if let Some(wire) = &mut self.wire {
                    drive(&mut wire.driver, cx);
                }
                Pin::new(&mut self.body).poll_frame(cx)
            });
            match frame.await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_trailers) => {}
                },
                Some(Err(error)) => return Err(error),
                None => {
                    if let Some(wire) = self.wire.take() {
                        self.pool.give(wire);
                    }
                    return Ok(None);
                }
            }
        }
    }

    pub(super) async fn whole(mut self, most: usize) -> Result<Bytes, Broken> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut all = BytesMut::from(&*first);
        let mut next = Some(second);
        while let Some(bytes) = next {
            if all.len() + bytes.len() > most {
                return Err(Broken::Long(most));
            }
            all.extend_from_slice(&bytes);
            next = self.chunk().await?;
        }
        Ok(all.freeze())
    }
}
