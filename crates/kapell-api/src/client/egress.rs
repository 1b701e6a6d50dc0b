//! Calls to places that users name: never to where only this machine should get.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Request, StatusCode};
use tokio::time::timeout;
use url::Url;

use super::address::Base;
use super::call::Body;
use super::connection::{Broken, Download, Wire, dial};
use super::tls;

/// Where clouds tell a machine its secrets, over IPv6.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
/// Where those do so whose addresses for it are not link-local: Alibaba's, Oracle's and Azure's.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// How to call out.
#[derive(Debug, Clone)]
pub struct Egress {
    /// Whose certificates are trusted; without it, those that the system trusts.
    pub ca: Option<PathBuf>,
    /// How long a call may take in all.
    pub limit: Duration,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    #[error("`{0}` is no URL that can be called: write http://… or https://…")]
    BadUrl(String),
    /// What it says is not repeated: it may be a secret.
    #[error("header `{0}` cannot be sent: it has characters that no header may have")]
    BadHeader(String),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// Its address is one that nobody may have us call.
    #[error("{place} must not be called: {why}")]
    Forbidden { place: String, why: String },
    #[error("{place} cannot be reached")]
    Unreachable {
        place: String,
        #[source]
        source: io::Error,
    },
    #[error("{place} gave no answer")]
    NoAnswer {
        place: String,
        #[source]
        source: Broken,
    },
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    pub method: &'a str,
    pub url: &'a str,
    pub headers: &'a [(String, String)],
    pub body: &'a Bytes,
    /// How long it may take in all, if not as long as others.
    pub limit: Option<Duration>,
}

/// An answer that is still coming.
#[derive(Debug)]
pub struct Received {
    place: String,
    status: StatusCode,
    headers: HeaderMap,
    body: Download,
}

impl Received {
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The next bytes; none when all have come.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        let chunk = self.body.chunk().await;
        chunk.map_err(|error| EgressError::NoAnswer {
            place: self.place.clone(),
            source: error.into(),
        })
    }
}

impl Egress {
    /// Sends JSON, and gives the status of the answer, whatever it is.
    pub async fn post_json(&self, url: &str, body: Bytes) -> Result<StatusCode, EgressError> {
        let sent = [("content-type".to_owned(), "application/json".to_owned())];
        Ok(self.exchange("POST", url, &sent, body).await?.status)
    }

    /// Sends a file, and gives the status of the answer, whatever it is.
    pub async fn put(&self, url: &str, body: Bytes) -> Result<StatusCode, EgressError> {
        Ok(self.exchange("PUT", url, &file(), body).await?.status)
    }

    /// Asks for a file. The limit is for the beginning of the answer; nobody is followed elsewhere.
    pub async fn get(&self, url: &str) -> Result<Received, EgressError> {
        self.exchange("GET", url, &file(), Bytes::new()).await
    }

    /// Sends anything. The limit is for the beginning of the answer; nobody is followed elsewhere.
    pub async fn send(&self, sent: Outgoing<'_>) -> Result<Received, EgressError> {
        let limit = sent.limit.unwrap_or(self.limit);
        let egress = Self { ca: self.ca.clone(), limit };
        egress.exchange(sent.method, sent.url, sent.headers, sent.body.clone()).await
    }

    async fn exchange(
        &self,
        method: &str,
        url: &str,
        headers: &[(String, String)],
        body: Bytes,
    ) -> Result<Received, EgressError> {
        let bad = || EgressError::BadUrl(url.to_owned());
        let target = Url::parse(url).map_err(|_| bad())?;
        let base = Base::of(&target).ok_or_else(bad)?;
        let tls = if base.secure { Some(tls::client(self.ca.as_deref())?) } else { None };
        let query = target.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{query}", target.path()))
            .header(HOST, base.authority());
        for (name, value) in headers {
            let value = HeaderValue::try_from(value.as_str());
            let value = value.map_err(|_| EgressError::BadHeader(name.clone()))?;
            request = request.header(name, value);
        }
        let request = request.body(Body::Left(Full::new(body))).map_err(|_| bad())?;
        let place = base.to_string();
        let call = async {
            let dialled = dial(&base, tls.as_ref(), may_be_called).await;
            let io = dialled.map_err(|source| {
                // The system may forbid it too, for reasons that pass.
                let is_ours = source.raw_os_error().is_none();
                if is_ours && source.kind() == io::ErrorKind::PermissionDenied {
                    EgressError::Forbidden { place: place.clone(), why: source.to_string() }
                } else {
                    EgressError::Unreachable { place: place.clone(), source }
                }
            })?;
            let broken = |error: hyper::Error| EgressError::NoAnswer {
                place: place.clone(),
                source: error.into(),
            };
            let mut wire = Wire::open(io).await.map_err(broken)?;
            let (head, body) = wire.send(request).await.map_err(broken)?.into_parts();
            let body = Download::new(wire, body, Arc::default());
            let (status, headers) = (head.status, head.headers);
            Ok(Received { place: place.clone(), status, headers, body })
        };
        match timeout(self.limit, call).await {
            Ok(answered) => answered,
            Err(_) => Err(EgressError::NoAnswer {
                place: place.clone(),
                source: Broken::late(self.limit),
            }),
        }
    }
}

fn file() -> [(String, String); 1] {
    [("content-type".to_owned(), "application/octet-stream".to_owned())]
}

/// Link-local addresses are where clouds tell a machine its secrets, most of them.
pub(super) fn may_be_called(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !address.is_link_local() && !METADATA_V4.contains(&address),
        IpAddr::V6(address) => {
            let behind = translated(address).is_none_or(|behind| may_be_called(behind.into()));
            behind && !address.is_unicast_link_local() && address != METADATA
        }
    }
}

/// What NAT64 makes of an address below `64:ff9b::/96`.
const fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => {
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}
