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
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::door::{Caller, Door, Entry};
use super::guests::{Guests, Pass};
use super::place::{Hosts, Scheme, is_loopback};
use super::site::{Gate, Site, Tools};
use super::watched::Watched;
use super::{Error, Limits, Listen, tls};

/// How long somebody new waits for room.
const MOMENT: Duration = Duration::from_millis(1);
/// How long nothing is accepted after it failed, as when no file descriptors are left.
const BREATH: Duration = Duration::from_millis(100);

const NO_ROOM: &str = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\
    content-length: 97\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
    {\"code\":\"too_many_connections\",\"message\":\"all connections of this host are in use\",\"details\":{}}\n";

/// How much of an answer the system keeps for a client that does not read it.
const UNREAD_BYTES: u32 = 128 * 1024;
/// How many connections the system keeps for us until we get to them.
const WAITING: u32 = 4096;

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
    pub(super) tools: Tools,
    #[cfg(test)]
    guests: Guests,
}

impl Server {
    #[expect(clippy::unused_async, reason = "it listens in the runtime that it is awaited in")]
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
        let listener = open(address).map_err(|error| refused(address, error))?;
        let local = listener.local_addr().map_err(|error| refused(address, error))?;
        let secure = acceptor.is_some();
        let tools = Tools::new(&listen, trust, limits);
        let site = site(tools.clone());
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
        let gate = Arc::new(Gate { door, site, audit, secure, body: limits.head });
        let shared =
            Shared { gate, acceptor, limits, stopped, guests: Guests::default(), heard: 0 };
        let mut tasks = JoinSet::new();
        #[cfg(test)]
        let guests = shared.guests.clone();
        // All that wait are taken in at each turn: they are quickly served or turned away, and nobody else gets in before.
        tasks.spawn(unconstrained(shared.accept(listener)));
        Ok(Self {
            local,
            stop,
            tasks,
            tools,
            #[cfg(test)]
            guests,
        })
    }

    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// How many connections there are.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        self.guests.count()
    }

    /// Accepts nothing more, lets requests finish within `grace` and closes what is still open then.
    pub(crate) async fn stop(mut self, grace: Duration) {
        let _kept = self.stop.send(Some(Instant::now() + grace));
        while self.tasks.join_next().await.is_some() {}
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Its connections have the same: however many do not read what they asked for, it takes little memory.
    socket.set_send_buffer_size(UNREAD_BYTES)?;
    socket.bind(address)?;
    socket.listen(WAITING)
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
    guests: Guests,
    /// How often somebody had been heard when we last waited for that.
    heard: u64,
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
                    Ok((stream, from)) => self.take_in(stream, from, &mut open).await,
                    Err(_) => sleep(BREATH).await,
                }
            }
        };
        drop(listener);
        let _in_time =
            timeout_at(deadline, async { while open.join_next().await.is_some() {} }).await;
        open.shutdown().await;
    }

    /// When all places are taken, whoever keeps us waiting has to leave.
    async fn take_in(&mut self, stream: TcpStream, from: SocketAddr, open: &mut JoinSet<()>) {
        let mut has_room = self.has_room(open);
        // While those who are there are being heard there is room soon, and whoever was turned away would only come
        // again: a cell among them as often as not.
        let heard = self.guests.heard();
        if !has_room && self.heard != heard {
            self.heard = heard;
            sleep(MOMENT).await;
            has_room = self.has_room(open);
        }
        if has_room {
            self.guests.enter(|pass| open.spawn(self.clone().serve(stream, from, pass)));
        } else {
            turn_away(&stream, self.acceptor.is_some());
        }
    }

    fn has_room(&self, open: &JoinSet<()>) -> bool {
        let places = self.limits.connections + self.limits.reserve;
        // Whoever was sent away is gone a moment later; that no more than these are on their way out is for the files.
        let crowded = open.len() >= places + self.limits.reserve;
        !crowded && (self.guests.count() < places || self.guests.send_one_away())
    }

    async fn serve(mut self, stream: TcpStream, from: SocketAddr, pass: Pass) {
        let Ok(local) = stream.local_addr() else { return };
        let _kept = stream.set_nodelay(true);
        let mut certificates = Vec::new();
        let io: Box<dyn Io> = match self.acceptor.take() {
            None => Box::new(watched(stream, &pass, self.limits)),
            Some(acceptor) => tokio::select! {
                biased;
                _ = stopped(&mut self.stopped) => return,
                shaken = timeout(self.limits.head, acceptor.accept(stream)) => match shaken {
                    Ok(Ok(stream)) => {
                        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
                        certificates = shown.iter().map(|it| it.clone().into_owned()).collect();
                        Box::new(watched(stream, &pass, self.limits))
                    }
                    Ok(Err(_)) | Err(_) => return,
                }
            },
        };
        let gate = self.gate;
        let pass = Arc::new(pass);
        let caller = Arc::new(Caller { local, from, certificates });
        let most = self.limits.connections;
        let service = service_fn(move |mut request| {
            let (gate, pass) = (Arc::clone(&gate), Arc::clone(&pass));
            let caller = Arc::clone(&caller);
            pass.guest.is_served();
            request.extensions_mut().insert(Arc::clone(&pass.guest));
            async move {
                let known = |entry: &Entry, path: &str| pass.known(entry, path, most);
                let answer = gate.answer(request, &caller, known).await;
                pass.guest.is_answered(&answer);
                Ok::<_, Infallible>(answer)
            }
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

fn watched<T>(io: T, pass: &Pass, limits: Limits) -> Watched<T> {
    Watched::new(io, Arc::clone(&pass.guest), limits.stall)
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
