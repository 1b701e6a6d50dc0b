//! Who is let in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method, StatusCode};
use kapell_api::identity::{Subject, Trust};
use kapell_core::access::{Claims, Invalid, Who};
use kapell_core::seams::Clock as _;
use kapell_node::access::ClusterKey;
use kapell_node::system::SystemClock;
use serde_json::json;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};

use super::answer::Problem;
use super::audit::Origin;
use super::forward::{CLIENT, FORWARDED_BY, ON_BEHALF};
use super::place::{Hosts, Place};
use super::token::{Session, Token};

#[derive(Debug)]
pub(super) struct Door {
    pub(super) hosts: Hosts,
    pub(super) token: Token,
    /// Tokens that it signed open the door too.
    pub(super) key: Option<ClusterKey>,
    /// Certificates of its cluster open the door too.
    pub(super) trust: Option<Trust>,
    /// Browsers may come in with a session.
    pub(super) sessions: bool,
}

/// Who was let in, and how.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) who: Arc<Who>,
    pub(super) by: By,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// The token of the hosts.
    Token,
    /// By the cookie of a browser.
    Session(Session),
    /// By a token that was signed and is in time. Whether it was revoked is for the leader to know.
    Signed(Arc<Claims>),
    /// By a certificate of the cluster, one's own or that of a host which speaks for a cell.
    Certificate,
}

/// Whoever is at the other end of a connection.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) local: SocketAddr,
    pub(super) from: SocketAddr,
    /// What they showed, judged by nobody yet; they have its key.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

impl Entry {
    fn owner(by: By) -> Self {
        Self { who: Arc::new(Who::owner()), by }
    }
}

/// What the cookies of sessions are called, followed by the port: browsers do not keep those of several ports apart.
pub(super) const COOKIE: &str = "kapell_session_";

impl Door {
    /// Judges for whom a request is meant and which page it comes from.
    ///
    /// This goes first: a page that misuses somebody's browser is not even told whether a token was right.
    pub(super) fn place(&self, request: &Parts, local: SocketAddr) -> Result<(), Box<Problem>> {
        self.host(request, local)
            .and_then(|()| self.origin(&request.headers, local))
            .map_err(Problem::closing)
    }

    /// Lets a request in whose place was judged before.
    pub(super) fn enter(&self, request: &Parts, from: &Caller) -> Result<Entry, Box<Problem>> {
        let headers = &request.headers;
        let by_cookie = self.sessions && !headers.contains_key(AUTHORIZATION);
        let now = SystemTime::now();
        let judge = |given| self.token.judge_session(given, now);
        let session = by_cookie.then(|| sessions(headers).find_map(judge)).flatten();
        let Some(session) = session else {
            if !headers.contains_key(AUTHORIZATION)
                && let Some(entry) = self.certified(headers, from)
            {
                return entry.map_err(Problem::closing);
            }
            return self.token(headers).map_err(Problem::closing);
        };
        // A browser sends the cookie whoever made it ask; a foreign Origin was refused before.
        let harmless = matches!(request.method, Method::GET | Method::HEAD);
        if harmless || headers.contains_key(ORIGIN) {
            return Ok(Entry::owner(By::Session(session)));
        }
        let text = "a browser that changes something must say from which page, by an Origin header";
        Err(Problem::new(StatusCode::FORBIDDEN, "no_origin", text).closing())
    }

    /// Where a request comes from. What a host says of whom it speaks for is believed, and nobody else.
    pub(super) fn whence(&self, headers: &HeaderMap, from: &Caller) -> Origin {
        let told = only(headers, &CLIENT).filter(|_| headers.contains_key(FORWARDED_BY));
        let told = told.and_then(|text| text.parse().ok()).filter(|_| self.is_host(from));
        let via = told.map(|_: SocketAddr| from.from);
        Origin { client: told.unwrap_or(from.from), via }
    }

    fn is_host(&self, from: &Caller) -> bool {
        let judge = |trust: &Trust| trust.judge(&from.certificates, UnixTime::now());
        self.trust.as_ref().map(judge).is_some_and(|it| matches!(it, Ok(Subject::Host)))
    }

    fn host(&self, request: &Parts, local: SocketAddr) -> Result<(), Box<Problem>> {
        let Some(host) = only(&request.headers, &HOST) else {
            let text = "a request needs one Host header";
            return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_host", text));
        };
        // An absolute target goes before the header, so it has to fit as well.
        let target = request.uri.authority().map(Authority::as_str);
        for text in [Some(host), target].into_iter().flatten() {
            let place = Place::authority(text);
            if !place.is_some_and(|place| self.hosts.have(&place, local)) {
                let why = format!("`{text}` is not an address of this host");
                let details = json!({ "host": text, "help": "add it by --allow-host on the host" });
                return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host", why)
                    .details(details));
            }
        }
        Ok(())
    }

    fn origin(&self, headers: &HeaderMap, local: SocketAddr) -> Result<(), Box<Problem>> {
        if !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        let origin = only(headers, &ORIGIN).unwrap_or_default();
        let place = Place::parse(origin).filter(|place| place.scheme.is_some());
        if place.is_some_and(|place| self.hosts.have(&place, local)) {
            return Ok(());
        }
        let text = "pages of other origins may not ask this host";
        let problem = Problem::new(StatusCode::FORBIDDEN, "foreign_origin", text);
        Err(problem.details(json!({ "origin": origin })))
    }

    fn token(&self, headers: &HeaderMap) -> Result<Entry, Box<Problem>> {
        let given = only(headers, &AUTHORIZATION).and_then(|text| text.split_once(' '));
        let (text, challenge) = match given {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                let token = token.trim();
                if self.token.is(token) {
                    return Ok(Entry::owner(By::Token));
                }
                return self.signed(token).map_err(|why| invalid(&why));
            }
            Some(_) | None => ("send `Authorization: Bearer TOKEN`", r#"Bearer realm="kapell""#),
        };
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", text);
        Err(problem.challenge(challenge))
    }

    /// Whom a certificate lets in; none if none was shown, or nobody asks for one here.
    fn certified(&self, headers: &HeaderMap, from: &Caller) -> Option<Result<Entry, Box<Problem>>> {
        let trust = self.trust.as_ref().filter(|_| !from.certificates.is_empty())?;
        // Each time: a certificate may expire while its connection lasts.
        let who = match trust.judge(&from.certificates, UnixTime::now()) {
            Ok(Subject::Cell(id)) => Who::cell(id),
            Ok(Subject::Host) => match only(headers, &ON_BEHALF) {
                Some(cell) if headers.contains_key(FORWARDED_BY) => Who::cell(cell.into()),
                Some(_) | None => Who::host(from.from.to_string()),
            },
            Err(why) => {
                tracing::warn!(from = %from.from, %why, "a certificate was refused");
                let status = StatusCode::UNAUTHORIZED;
                return Some(Err(Problem::new(status, why.code(), why.to_string())));
            }
        };
        Some(Ok(Entry { who: Arc::new(who), by: By::Certificate }))
    }

    fn signed(&self, token: &str) -> Result<Entry, Invalid> {
        let key = self.key.as_ref().ok_or(Invalid::Forged)?;
        let claims = key.verify(token, SystemClock.wall())?;
        let who = Arc::new(claims.who());
        Ok(Entry { who, by: By::Signed(Arc::new(claims)) })
    }
}

/// Refuses a token that does not count.
pub(super) fn invalid(why: &Invalid) -> Box<Problem> {
    let problem = Problem::new(StatusCode::UNAUTHORIZED, why.code(), why.to_string());
    problem.challenge(r#"Bearer realm="kapell", error="invalid_token""#)
}

/// What could be sessions of ours among the cookies.
fn sessions(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    const MOST: usize = 16;
    let cookies = headers.get_all(hyper::header::COOKIE).iter();
    cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|each| each.trim().strip_prefix(COOKIE)?.split_once('='))
        .map(|(_, value)| value)
        .take(MOST)
}

/// The value of a header that stands there once and is text.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}
