//! Requests over HTTP/1.1, a connection each, with a limit on every wait.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::Context;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderMap, HeaderName, LOCATION, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::super::error::Error;
use super::super::settings::Settings;
use super::tls;

const MOST_REDIRECTS: usize = 5;

trait Io: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug> Io for T {}

type Driver = http1::Connection<TokioIo<Box<dyn Io>>, Empty<Bytes>>;

/// See the module.
#[derive(Debug)]
pub(in super::super) struct Http {
    pub(super) settings: Arc<Settings>,
    tls: OnceLock<Arc<ClientConfig>>,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) url: &'a Url,
    pub(super) accept: &'a str,
    pub(super) authorization: Option<&'a str>,
    /// For errors: what it is good for.
    pub(super) doing: &'a str,
}

/// An answer whose body is still to come.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    place: String,
    doing: String,
    stall: std::time::Duration,
    body: Incoming,
    driver: Option<Pin<Box<Driver>>>,
}

impl Answer {
    /// The next bytes; none at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = poll_fn(|cx| {
                drive(&mut self.driver, cx);
                Pin::new(&mut self.body).poll_frame(cx)
            });
            match timeout(self.stall, frame).await {
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_trailers) => {}
                },
                Ok(Some(Err(source))) => {
                    let (place, doing) = (self.place.clone(), self.doing.clone());
                    return Err(Error::Broken { place, doing, source });
                }
                Ok(None) => return Ok(None),
                Err(_late) => {
                    let (place, doing) = (self.place.clone(), self.doing.clone());
                    return Err(Error::Stalled { place, doing, limit: self.stall });
                }
            }
        }
    }

    pub(super) async fn whole(mut self, limit: u64) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            if (all.len() + bytes.len()) as u64 > limit {
                let what = format!("the answer of {} to {}", self.place, self.doing);
                return Err(Error::TooBig { what, limit, unit: "bytes" });
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    pub(super) fn header(&self, name: impl Into<HeaderName>) -> Option<&str> {
        self.headers.get(name.into())?.to_str().ok()
    }
}

/// Moves what can be moved. How it ends is seen by those who wait.
fn drive(driver: &mut Option<Pin<Box<Driver>>>, cx: &mut Context<'_>) {
    if let Some(connection) = driver
        && connection.as_mut().poll(cx).is_ready()
    {
        *driver = None;
    }
}

impl Http {
    pub(in super::super) const fn new(settings: Arc<Settings>) -> Self {
        Self { settings, tls: OnceLock::new() }
    }

    /// Asks, and follows the answer to other places.
    pub(super) async fn get(&self, ask: Ask<'_>) -> Result<Answer, Error> {
        let mut url = ask.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let at_home = url.origin() == ask.url.origin();
            // Who gave it to us for one place did not give it to another.
            let authorization = if at_home { ask.authorization } else { None };
            self.check(&url, ask.url)?;
            let answer = self.once(&url, Ask { authorization, ..ask }).await?;
            let target = match answer.status.as_u16() {
                301 | 302 | 303 | 307 | 308 => answer.header(LOCATION).map(|to| url.join(to)),
                _others => return Ok(answer),
            };
            url = match target {
                Some(Ok(target)) => target,
                Some(Err(_)) | None => {
                    return Err(Error::damaged(place(&url), "it redirects to no URL"));
                }
            };
        }
        let why = format!("it redirects more than {MOST_REDIRECTS} times");
        Err(Error::damaged(place(ask.url), why))
    }

    /// Without TLS only to this machine, and then only if it was asked for; or if it is listed.
    fn check(&self, url: &Url, asked: &Url) -> Result<(), Error> {
        let is_fine = match url.scheme() {
            "https" => true,
            "http" => self.is_listed(url) || (is_own(url) && is_own(asked)),
            _others => false,
        };
        if is_fine && url.username().is_empty() && url.password().is_none() {
            return Ok(());
        }
        let what = format!("to fetch from {}", place(url));
        let instead = "use https, or list the registry as insecure".to_owned();
        Err(Error::Forbidden { what, instead })
    }

    pub(super) fn is_listed(&self, url: &Url) -> bool {
        let authority = place_without_scheme(url);
        let host = url.host_str().unwrap_or_default();
        self.settings.insecure.iter().any(|each| *each == authority || each == host)
    }

    async fn once(&self, url: &Url, ask: Ask<'_>) -> Result<Answer, Error> {
        let limits = &self.settings.limits;
        let unreachable = |source| Error::Unreachable { place: place(url), source };
        let io = match timeout(limits.connect, self.dial(url)).await {
            Ok(dialled) => dialled?,
            Err(_late) => {
                let text = format!("no connection within {:?}", limits.connect);
                return Err(unreachable(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
        };
        let broken = |source| Error::Broken { place: place(url), doing: ask.doing.into(), source };
        let (mut sender, driver) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut request = Request::get(format!("{}{query}", url.path()))
            .header(HOST, place_without_scheme(url))
            .header(USER_AGENT, concat!("kapell/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, ask.accept);
        if let Some(authorization) = ask.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let bad = |error: hyper::http::Error| Error::damaged(place(url), error);
        let request = request.body(Empty::new()).map_err(bad)?;
        let mut driver = Some(Box::pin(driver));
        let mut sent = pin!(sender.send_request(request));
        let answered = poll_fn(|cx| {
            drive(&mut driver, cx);
            sent.as_mut().poll(cx)
        });
        let response = match timeout(limits.stall, answered).await {
            Ok(response) => response.map_err(broken)?,
            Err(_late) => {
                let (place, limit) = (place(url), limits.stall);
                return Err(Error::Stalled { place, doing: ask.doing.into(), limit });
            }
        };
        let (head, body) = response.into_parts();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            place: place(url),
            doing: ask.doing.to_owned(),
            stall: limits.stall,
            body,
            driver,
        })
    }

    async fn dial(&self, url: &Url) -> Result<Box<dyn Io>, Error> {
        let unreachable = |source| Error::Unreachable { place: place(url), source };
        let port = url.port_or_known_default().unwrap_or(443);
        // An address of version 6 has brackets in a URL only.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let must_be_own = url.scheme() == "http" && !self.is_listed(url);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in lookup_host((host, port)).await.map_err(unreachable)? {
            let ip = address.ip().to_canonical();
            if is_link_local(ip) || (must_be_own && !ip.is_loopback()) {
                let what = format!("to fetch from {} at {ip}", place(url));
                let instead = "it is no address of a registry".to_owned();
                return Err(Error::Forbidden { what, instead });
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return self.secure(url, host, stream).await,
                Err(error) => last = error,
            }
        }
        Err(unreachable(last))
    }

    async fn secure(&self, url: &Url, host: &str, stream: TcpStream) -> Result<Box<dyn Io>, Error> {
        if url.scheme() == "http" {
            return Ok(Box::new(stream));
        }
        let tls = match self.tls.get() {
            Some(tls) => tls,
            None => {
                let tls = tls::client(self.settings.ca.as_deref())?;
                self.tls.get_or_init(|| tls)
            }
        };
        let unreachable = |source| Error::Unreachable { place: place(url), source };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| unreachable(io::Error::other(error)))?;
        let secured = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
        Ok(Box::new(secured.map_err(unreachable)?))
    }
}

/// Whether a URL is one of this machine, by its own words.
pub(super) fn is_own(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Where clouds tell a machine its secrets.
const fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

pub(super) fn place(url: &Url) -> String {
    format!("{}://{}", url.scheme(), place_without_scheme(url))
}

fn place_without_scheme(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
