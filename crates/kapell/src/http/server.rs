//! The listener and its connections.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kapell_api::identity::Subject;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::door::{Caller, Door};
use super::place::{Hosts, Scheme, is_loopback};
use super::site::{Gate, Site, Tools};
use super::strangers::{Pass, Strangers};
use super::{Error, Limits, Listen, tls};

/// How long nothing is accepted after it failed, as when no file descriptors are left.
const BREATH: Duration = Duration::from_millis(100);

const NO_ROOM: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
    content-length: 97\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
    {\"code\":\"too_many_connections\",\"message\":\"all connections of this host are in use\",\"details\":{}}\n";

/// A connection, with TLS or without.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

impl fmt::Debug for dyn Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Io")
    }
}

/// Whether a site has pages, and browsers may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    Pages,
    Data,
}

/// Serves until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Server {
    local: SocketAddr,
    /// When everything must be closed, once that is known.
    stop: watch::Sender<Option<Instant>>,
    tasks: JoinSet<()>,
}

impl Server {
    pub(super) async fn start(
        listen: Listen,
        limits: Limits,
        shows: Shows,
        site: impl FnOnce(Tools) -> Arc<dyn Site>,
    ) -> Result<Self, Error> {
        let address = listen.address;
        if listen.tls.is_none() && listen.peers.is_none() && !is_loopback(address.ip()) {
            return Err(Error::NeedsTls { address });
        }
        let config = match (&listen.tls, &listen.peers) {
            (Some(files), _) => Some(tls::server(files)?),
            (None, Some(peers)) => Some(peers.trust.server(&peers.identity)?),
            (None, None) => None,
        };
        let acceptor = config.map(TlsAcceptor::from);
        let trust = match &listen.peers {
            Some(peers) => Some(peers.trust.client(Subject::Host, Some(&peers.identity))?),
            None => tls::client(listen.tls.as_ref(), listen.ca.as_deref())?,
        };
        let own = if acceptor.is_some() { Scheme::Https } else { Scheme::Http };
        let names = std::iter::once(&listen.advertise).chain(&listen.allowed_hosts);
        let hosts = Hosts::new(own, names.map(String::as_str))?;
        let listener = TcpListener::bind(address).await.map_err(|error| refused(address, error))?;
        let local = listener.local_addr().map_err(|error| refused(address, error))?;
        let secure = acceptor.is_some();
        let site = site(Tools::new(&listen, trust, limits));
        let audit = listen.audit;
        let sessions = shows == Shows::Pages;
        let door = Door {
            hosts,
            token: listen.token,
            key: listen.key,
            trust: listen.peers.map(|peers| peers.trust),
            sessions,
        };
        let (stop, stopped) = watch::channel(None);
        let gate = Arc::new(Gate { door, site, audit, secure });
        let shared = Shared { gate, acceptor, limits, stopped, strangers: Strangers::default() };
        let mut tasks = JoinSet::new();
        tasks.spawn(shared.accept(listener));
        Ok(Self { local, stop, tasks })
    }

    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts nothing more, lets requests finish within `grace` and closes what is still open then.
    pub(crate) async fn stop(mut self, grace: Duration) {
        let _kept = self.stop.send(Some(Instant::now() + grace));
        while self.tasks.join_next().await.is_some() {}
    }
}

fn refused(address: SocketAddr, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::AddrInUse {
        Error::InUse { address }
    } else {
        Error::Listen { address, source }
    }
}

/// What all connections need.
#[derive(Clone)]
struct Shared {
    gate: Arc<Gate>,
    acceptor: Option<TlsAcceptor>,
    limits: Limits,
    stopped: watch::Receiver<Option<Instant>>,
    strangers: Strangers,
}

impl Shared {
    async fn accept(mut self, listener: TcpListener) {
        let mut open = JoinSet::new();
        let deadline = loop {
            tokio::select! {
                biased;
                deadline = stopped(&mut self.stopped) => break deadline,
                Some(_) = open.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) => self.take_in(stream, from, &mut open),
                    Err(_) => sleep(BREATH).await,
                }
            }
        };
        drop(listener);
        let _in_time =
            timeout_at(deadline, async { while open.join_next().await.is_some() {} }).await;
        open.shutdown().await;
    }

    /// When all places are taken, a stranger has to leave; whoever was let in stays.
    fn take_in(&self, stream: TcpStream, from: SocketAddr, open: &mut JoinSet<()>) {
        if open.len() >= self.limits.connections && !self.strangers.send_one_away() {
            turn_away(&stream, self.acceptor.is_some());
            return;
        }
        self.strangers.enter(|pass| open.spawn(self.clone().serve(stream, from, pass)));
    }

    async fn serve(mut self, stream: TcpStream, from: SocketAddr, pass: Pass) {
        let Ok(local) = stream.local_addr() else { return };
        let _kept = stream.set_nodelay(true);
        let mut certificates = Vec::new();
        let io: Box<dyn Io> = match self.acceptor.take() {
            None => Box::new(stream),
            Some(acceptor) => tokio::select! {
                biased;
                _ = stopped(&mut self.stopped) => return,
                shaken = timeout(self.limits.head, acceptor.accept(stream)) => match shaken {
                    Ok(Ok(stream)) => {
                        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
                        certificates = shown.iter().map(|it| it.clone().into_owned()).collect();
                        Box::new(stream)
                    }
                    Ok(Err(_)) | Err(_) => return,
                }
            },
        };
        let gate = self.gate;
        let pass = Arc::new(pass);
        let caller = Arc::new(Caller { local, from, certificates });
        let service = service_fn(move |request| {
            let (gate, pass) = (Arc::clone(&gate), Arc::clone(&pass));
            let caller = Arc::clone(&caller);
            async move { Ok::<_, Infallible>(gate.answer(request, &caller, || pass.known()).await) }
        });
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(self.limits.head)
                .max_buf_size(self.limits.head_bytes)
                .serve_connection(TokioIo::new(io), service)
        );
        tokio::select! {
            biased;
            _ = stopped(&mut self.stopped) => connection.as_mut().graceful_shutdown(),
            // Whoever was at the other end has seen why.
            _ = connection.as_mut() => return,
        }
        let _seen = connection.await;
    }
}

/// Says that there is no room, if that can be said without waiting.
fn turn_away(stream: &TcpStream, secure: bool) {
    if !secure {
        let _heard = stream.try_write(NO_ROOM.as_bytes());
    }
}

/// Waits until everything is to be closed, and says by when.
async fn stopped(stop: &mut watch::Receiver<Option<Instant>>) -> Instant {
    match stop.wait_for(Option::is_some).await {
        Ok(deadline) => deadline.unwrap_or_else(Instant::now),
        Err(_) => Instant::now(),
    }
}
