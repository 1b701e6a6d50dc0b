//! A client of hosts and cells: HTTP/1.1 over a few connections that are kept.
//!
//! Nothing runs on its own behind it: a connection moves while somebody waits for something from it.

mod address;
mod call;
mod connection;
mod egress;
mod error;
mod exec;
mod hosts;
mod jobs;
mod routes;
mod sse;
mod streams;
mod tls;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Uri};
use rustls::ClientConfig;
use tokio::time::{Instant, sleep, timeout};

use address::Base;
use call::{Answer, Call, Failure};
use connection::{Download, Pool, Wire};

pub use egress::{Egress, EgressError, Outgoing, Received};
pub use error::Error;
pub use exec::{Exec, Input, Told};
pub use jobs::RunFilter;
pub use routes::{ActualFilter, Listed};
pub use sse::{Message, Parser};
pub use streams::{Events, Logs};
pub use tls::SYSTEM_ROOTS;

/// The first pause before hosts are asked again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How to talk to hosts.
#[derive(Debug, Clone)]
pub struct Options {
    pub token: Option<Token>,
    /// Whose certificates hosts must have, in PEM; without it, those that the system trusts.
    pub ca: Option<PathBuf>,
    /// How hosts are known and who we show to be, instead of `ca`.
    pub tls: Option<Arc<ClientConfig>>,
    /// How long connecting may take.
    pub connect: Duration,
    /// How long an answer may take.
    pub answer: Duration,
    /// How long hosts are asked again that say that nobody leads, or that they have too much to do.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            token: None,
            ca: None,
            tls: None,
            connect: Duration::from_secs(3),
            answer: Duration::from_secs(30),
            patience: Duration::from_secs(5),
        }
    }
}

/// What every request bears. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// A way to ask the hosts of a cluster, or one cell. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bases: Vec<(Base, Arc<Pool>)>,
    /// Who answered last.
    preferred: AtomicUsize,
    bearer: Option<HeaderValue>,
    tls: Option<Arc<ClientConfig>>,
    options: Options,
}

impl Client {
    /// `urls` is one URL, or several with commas between them.
    pub fn new(urls: &str, options: Options) -> Result<Self, Error> {
        let bases = Base::parse_all(urls)?;
        let bearer = match &options.token {
            Some(Token(token)) => Some(
                HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| Error::BadToken)?,
            ),
            None => None,
        };
        let exposed = bases.iter().find(|base| bearer.is_some() && !base.keeps_secrets());
        if let Some(base) = exposed {
            return Err(Error::Insecure { url: base.to_string() });
        }
        let tls = match &options.tls {
            Some(tls) => Some(Arc::clone(tls)),
            None if bases.iter().any(|base| base.secure) => {
                Some(tls::client(options.ca.as_deref())?)
            }
            None => None,
        };
        let bases = bases.into_iter().map(|base| (base, Arc::default())).collect();
        let preferred = AtomicUsize::new(0);
        Ok(Self { shared: Arc::new(Shared { bases, preferred, bearer, tls, options }) })
    }

    /// Who is asked, as text for people.
    pub fn urls(&self) -> String {
        let urls: Vec<_> = self.shared.bases.iter().map(|(base, _)| base.to_string()).collect();
        urls.join(", ")
    }

    /// Asks one host after the other until one answers, and all of them again for a while if
    /// they say that asking again will help.
    async fn send(&self, call: &Call) -> Result<Answer, Error> {
        let bases = &self.shared.bases;
        let until = Instant::now() + self.shared.options.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            let first = self.shared.preferred.load(Ordering::Relaxed);
            let mut last: Option<Failure> = None;
            for step in 0..bases.len() {
                let at = (first + step) % bases.len();
                let (base, pool) = &bases[at];
                match self.attempt(base, pool, call).await {
                    Ok(answer) => {
                        self.shared.preferred.store(at, Ordering::Relaxed);
                        return Ok(answer);
                    }
                    Err(failure) if !failure.allows_again(call) => {
                        return Err(failure.into_error(&self.urls()));
                    }
                    Err(failure) => last = Some(Failure::telling(last, failure)),
                }
            }
            let last = last.unwrap_or_else(Failure::nobody);
            if !last.passes() || Instant::now() + pause > until {
                return Err(last.into_error(&self.urls()));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(&self, base: &Base, pool: &Arc<Pool>, call: &Call) -> Result<Answer, Failure> {
        // One that lay idle may be closed just as we write to it. What cannot be sent twice goes
        // only over one that was in use a moment ago.
        let idle = if call.repeatable { connection::LONGEST_IDLE } else { connection::A_MOMENT };
        if let Some(wire) = pool.take(idle) {
            match self.exchange(wire, base, pool, call).await {
                Err(Failure::NoAnswer {
                    source: connection::Broken::Connection(error), ..
                }) if call.repeatable || error.is_canceled() => {}
                done => return done,
            }
        }
        let wire = self.open(base).await?;
        self.exchange(wire, base, pool, call).await
    }

    async fn exchange(
        &self,
        wire: Wire,
        base: &Base,
        pool: &Arc<Pool>,
        call: &Call,
    ) -> Result<Answer, Failure> {
        let request = self.request(base, call).map_err(|source| Failure::Garbled {
            url: base.to_string(),
            what: format!("`{}` cannot be asked for: {source}", call.path),
        })?;
        self.exchange_request(wire, (base, pool), call, request).await
    }

    async fn exchange_request(
        &self,
        mut wire: Wire,
        (base, pool): (&Base, &Arc<Pool>),
        call: &Call,
        request: Request<call::Body>,
    ) -> Result<Answer, Failure> {
        let limit = call.limit.unwrap_or(self.shared.options.answer);
        let exchange = async {
            let answer = wire.send(request).await?;
            let (head, body) = answer.into_parts();
            let download = Download::new(wire, body, Arc::clone(pool));
            if call.streams && head.status.is_success() {
                return Ok(Answer { head, bytes: bytes::Bytes::new(), stream: Some(download) });
            }
            let bytes = download.whole(call.most_bytes).await?;
            Ok(Answer { head, bytes, stream: None })
        };
        let unanswered = |source: connection::Broken| Failure::NoAnswer {
            url: base.to_string(),
            call: call.to_string(),
            source,
        };
        let answer = match timeout(limit, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(source)) => return Err(unanswered(source)),
            Err(_) => return Err(unanswered(connection::Broken::late(limit))),
        };
        if answer.head.status.is_success() { Ok(answer) } else { Err(answer.refusal(base)) }
    }

    async fn open(&self, base: &Base) -> Result<Wire, Failure> {
        let Shared { tls, options, .. } = &*self.shared;
        let unreachable = |source| Failure::Unreachable { source };
        let dialled = connection::dial(base, tls.as_ref(), |_| true);
        let io = match timeout(options.connect, dialled).await {
            Ok(dialled) => dialled.map_err(unreachable)?,
            Err(_) => return Err(unreachable(std::io::ErrorKind::TimedOut.into())),
        };
        Wire::open(io).await.map_err(|error| unreachable(std::io::Error::other(error)))
    }

    fn request(&self, base: &Base, call: &Call) -> Result<Request<call::Body>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(Uri::try_from(&call.path)?)
            .header(HOST, base.authority());
        if let Some(bearer) = &self.shared.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        request.body(call::Body::Left(Full::new(call.body.clone())))
    }
}
