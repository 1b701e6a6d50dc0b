//! The way to the leader: one connection a request, so that none is ever sent twice or over a connection gone stale.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    AUTHORIZATION, CONNECTION, COOKIE, EXPECT, HOST, HeaderName, HeaderValue, ORIGIN,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use hyper::{HeaderMap, Request, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use kapell_core::access::Role;
use kapell_core::causes::chain;
use kapell_core::seat::Owner;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::Leader;
use super::answer::{Answer, Problem};
use super::body::{Body, Relay, Upload};
use super::dial::{Target, dial};
use super::door::By;
use super::front::name;
use super::guests::{Guest, speaks_for_cell};
use super::place::Place;
use super::query::pairs;
use super::server::Io;
use super::site::{Tools, Visit, too_many_streams};
use super::token::Token;

/// Says that a host passed the request on. Nobody does it a second time.
pub(super) const FORWARDED_BY: HeaderName = HeaderName::from_static("kapell-forwarded-by");

/// The cell that a host speaks for: its certificate stays behind with its connection.
pub(super) const ON_BEHALF: HeaderName = HeaderName::from_static("kapell-on-behalf-of");

/// Whom a host passes a request on for.
pub(super) const CLIENT: HeaderName = HeaderName::from_static("kapell-client");

/// What concerns one connection only.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];

const US: HeaderValue = HeaderValue::from_static("1.1 kapell");

pub(super) struct Forwarder {
    /// Whom to trust; nobody if no authority is known.
    tls: Option<Arc<ClientConfig>>,
    token: Token,
    slots: Arc<Semaphore>,
    /// Those of cells, which others cannot take.
    cell_slots: Arc<Semaphore>,
    /// So that streams leave ways to the leader for all else.
    streams: Arc<Semaphore>,
    connect: Duration,
    stall: Duration,
    head_bytes: usize,
}

impl Forwarder {
    pub(super) fn new(tools: Tools) -> Self {
        let limits = tools.limits;
        Self {
            tls: tools.trust,
            token: tools.token,
            slots: Arc::new(Semaphore::new(limits.forwards)),
            cell_slots: Arc::new(Semaphore::new(limits.forwards / 2)),
            streams: Arc::new(Semaphore::new(limits.streams.min(limits.forwards / 2))),
            connect: limits.connect,
            stall: limits.stall,
            head_bytes: limits.head_bytes,
        }
    }

    /// Has the leader answer a request.
    pub(super) async fn forward(
        &self,
        visit: Visit,
        leader: &Leader,
        us: Owner,
    ) -> Result<Answer, Box<Problem>> {
        let of_cell = speaks_for_cell(&visit.entry, visit.request.uri().path());
        let slots = if of_cell { &self.cell_slots } else { &self.slots };
        let Ok(slot) = Arc::clone(slots).try_acquire_owned() else {
            let text = "too many requests are on their way to the leader";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", text).passing());
        };
        let place = if streams(visit.request.uri()) {
            let place = Arc::clone(&self.streams).try_acquire_owned();
            Some(place.map_err(|_| too_many_streams())?)
        } else {
            None
        };
        let slots = Slots { _way: slot, _stream: place };
        let about = About { leader };
        let target = about.target()?;
        let request = self.outbound(visit, &target, us).map_err(|error| about.failed(&error))?;
        let io = match timeout(self.connect, dial(self.tls.as_ref(), &target)).await {
            Ok(Ok(io)) => io,
            Ok(Err(error)) => return Err(about.unreachable(&error)),
            Err(_) => return Err(about.unreachable(&io::Error::from(io::ErrorKind::TimedOut))),
        };
        let answer = self.exchange(request, io, slots, &about).await?;
        Ok(inbound(answer))
    }

    /// The same request as it goes on to the leader.
    fn outbound(
        &self,
        visit: Visit,
        target: &Target,
        us: Owner,
    ) -> Result<Request<Incoming>, hyper::http::Error> {
        let (mut parts, body) = visit.request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = Uri::try_from(path)?;
        parts.version = Version::HTTP_11;
        strip(&mut parts.headers);
        // It was judged here; to the leader it would be foreign, and a session without it would count for nothing.
        parts.headers.remove(ORIGIN);
        parts.headers.remove(ON_BEHALF);
        if let (By::Certificate, Role::Cell(id)) = (&visit.entry.by, &visit.entry.who.role) {
            parts.headers.insert(ON_BEHALF, HeaderValue::try_from(id.as_str())?);
        }
        if matches!(visit.entry.by, By::Session(_)) {
            parts.headers.remove(COOKIE);
            let bearer = HeaderValue::try_from(format!("Bearer {}", self.token.as_str()))?;
            parts.headers.insert(AUTHORIZATION, bearer);
        }
        parts.headers.insert(HOST, HeaderValue::try_from(target.authority())?);
        parts.headers.insert(FORWARDED_BY, name(us));
        parts.headers.insert(CLIENT, HeaderValue::try_from(visit.origin.client.to_string())?);
        parts.headers.append(VIA, US);
        Ok(Request::from_parts(parts, body))
    }

    async fn exchange(
        &self,
        request: Request<Incoming>,
        io: Box<dyn Io>,
        slots: Slots,
        about: &About<'_>,
    ) -> Result<Answer, Box<Problem>> {
        let (parts, body) = request.into_parts();
        let guest = parts.extensions.get::<Arc<Guest>>().cloned();
        let (upload, moved) = Upload::of(body, guest);
        let request = Request::from_parts(parts, upload);
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(self.head_bytes)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| about.failed(&error))?;
        let mut connection = Connection(Some(Box::pin(connection)));
        let answered = {
            let mut sent = pin!(sender.send_request(request));
            let mut answered = pin!(poll_fn(|cx| {
                connection.poll(cx);
                sent.as_mut().poll(cx)
            }));
            loop {
                let before = moved.load(Ordering::Relaxed);
                match timeout(self.stall, answered.as_mut()).await {
                    Ok(answered) => break answered,
                    Err(_) if moved.load(Ordering::Relaxed) != before => {}
                    Err(_) => return Err(about.silent(self.stall)),
                }
            }
        };
        let answer = answered.map_err(|error| about.failed(&error))?;
        Ok(answer.map(|body| Body::Relayed(Relay { connection, body, _slots: slots })))
    }
}

/// What a request on its way takes of what there is.
#[derive(Debug)]
pub(super) struct Slots {
    _way: OwnedSemaphorePermit,
    _stream: Option<OwnedSemaphorePermit>,
}

/// Whether an answer goes on for as long as somebody reads.
fn streams(uri: &Uri) -> bool {
    let path = uri.path();
    path == "/v1/events"
        || path.ends_with("/exec")
        || ((path.starts_with("/v1/logs/") || path.ends_with("/logs")) && follows(uri))
}

fn follows(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    pairs(query).any(|(name, value)| name == "follow" && value != "false")
}

/// A connection to the leader, driven by whoever waits for something from it.
#[derive(Debug)]
pub(super) struct Connection(Option<Pin<Box<Driver>>>);

type Driver = http1::Connection<TokioIo<Box<dyn Io>>, Upload>;

impl Connection {
    /// Moves what can be moved. How it ends is seen by those who wait.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.0
            && let Poll::Ready(_) = connection.as_mut().poll(cx)
        {
            self.0 = None;
        }
    }
}

fn inbound(mut answer: Answer) -> Answer {
    strip(answer.headers_mut());
    answer.headers_mut().append(VIA, US);
    *answer.version_mut() = Version::HTTP_11;
    answer
}

/// Removes what concerned the connection that a message came over.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// What is said when the leader gives no answer.
struct About<'a> {
    leader: &'a Leader,
}

impl About<'_> {
    fn target(&self) -> Result<Target, Box<Problem>> {
        let address = &self.leader.record.address;
        let Some(place) = Place::parse(address) else {
            return Err(self.problem("leader_unreachable", "the leader's address is none", false));
        };
        Target::of(place).map_err(|text| self.problem("leader_insecure", text, false))
    }

    fn unreachable(&self, error: &dyn StdError) -> Box<Problem> {
        let text = format!("the leader cannot be reached: {}", chain(error));
        self.problem("leader_unreachable", &text, false)
    }

    fn failed(&self, error: &dyn StdError) -> Box<Problem> {
        let text = format!("the leader gave no answer: {}", chain(error));
        self.problem("leader_failed", &text, true)
    }

    fn silent(&self, waited: Duration) -> Box<Problem> {
        let text = format!("the leader gave no answer within {waited:?}");
        let problem = Problem::new(StatusCode::GATEWAY_TIMEOUT, "leader_silent", text);
        problem.details(self.details(true))
    }

    fn problem(&self, code: &'static str, text: &str, sent: bool) -> Box<Problem> {
        Problem::new(StatusCode::BAD_GATEWAY, code, text).details(self.details(sent))
    }

    /// `sent` is false if the leader surely saw nothing of the request.
    fn details(&self, sent: bool) -> serde_json::Value {
        let record = &self.leader.record;
        json!({ "owner": record.owner, "address": record.address, "sent": sent })
    }
}
