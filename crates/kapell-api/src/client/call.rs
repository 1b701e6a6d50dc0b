//! One request, and what came of it.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;
use super::address::Base;
use super::connection::{Broken, Download};
use super::exec::Upload;
use crate::v1::Problem;

pub(super) type Body = Either<Full<Bytes>, Upload>;

/// The longest answer that is not a stream: 250,000 instances are well below.
const MOST_BYTES: usize = 512 << 20;

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
    /// Whether it does no harm to send it twice.
    pub(super) repeatable: bool,
    pub(super) streams: bool,
    pub(super) limit: Option<Duration>,
    pub(super) most_bytes: usize,
}

impl Call {
    fn new(method: Method, path: impl Into<String>, repeatable: bool) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            repeatable,
            streams: false,
            limit: None,
            most_bytes: MOST_BYTES,
        }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, true)
    }

    pub(super) fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path, true)
    }

    pub(super) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path, false)
    }

    pub(super) fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path, false)
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, false)
    }

    pub(super) const fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }

    pub(super) const fn streaming(mut self) -> Self {
        self.streams = true;
        self
    }

    pub(super) const fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        // A value that no header can hold is nothing that a host ever gave us.
        if let Ok(value) = HeaderValue::try_from(value) {
            self.headers.push((HeaderName::from_static(name), value));
        }
        self
    }

    pub(super) fn json(mut self, body: &impl Serialize) -> Self {
        // Our types have text keys only, so this cannot fail.
        self.body = serde_json::to_vec(body).unwrap_or_default().into();
        self.headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
        self
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.split_once('?').map_or(self.path.as_str(), |(path, _)| path);
        write!(f, "{} {path}", self.method)
    }
}

/// A good answer: whole, or still coming.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) head: Parts,
    pub(super) bytes: Bytes,
    pub(super) stream: Option<Download>,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self, url: &str) -> Result<T, Error> {
        serde_json::from_slice(&self.bytes).map_err(|error| Error::Protocol {
            url: url.to_owned(),
            what: format!("the answer cannot be read: {error}"),
        })
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    /// What an answer other than a good one means.
    pub(super) fn refusal(&self, base: &Base) -> Failure {
        let status = self.head.status;
        match serde_json::from_slice(&self.bytes) {
            Ok(problem) => Failure::Refused { status: status.as_u16(), problem },
            Err(_) => Failure::Garbled { url: base.to_string(), what: format!("it says {status}") },
        }
    }
}

/// Why one host gave no good answer.
#[derive(Debug)]
pub(super) enum Failure {
    Unreachable { source: io::Error },
    NoAnswer { url: String, call: String, source: Broken },
    Refused { status: u16, problem: Box<Problem> },
    Garbled { url: String, what: String },
}

impl Failure {
    pub(super) fn nobody() -> Self {
        Self::Unreachable { source: io::ErrorKind::NotFound.into() }
    }

    /// Whether the same may be asked of another host, or again.
    pub(super) fn allows_again(&self, call: &Call) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::NoAnswer { .. } => call.repeatable,
            Self::Refused { status, problem } => match refusal_kind(*status, problem) {
                Kind::Final => false,
                Kind::NothingHappened => true,
                Kind::Unknown => call.repeatable,
            },
            Self::Garbled { .. } => false,
        }
    }

    /// Whether waiting may help. A port where nobody listens stays so until a person acts.
    pub(super) const fn passes(&self) -> bool {
        match self {
            Self::NoAnswer { .. } | Self::Refused { .. } => true,
            Self::Unreachable { .. } | Self::Garbled { .. } => false,
        }
    }

    /// Of two hosts' failures, the one that says more: that somebody is there at all.
    pub(super) fn telling(before: Option<Self>, now: Self) -> Self {
        match before {
            Some(before) if before.passes() && !now.passes() => before,
            Some(_) | None => now,
        }
    }

    pub(super) fn into_error(self, urls: &str) -> Error {
        match self {
            Self::Unreachable { source } => Error::Unreachable { url: urls.to_owned(), source },
            Self::NoAnswer { url, call, source } => Error::NoAnswer { url, call, source },
            Self::Refused { status, problem } => Error::Problem { status, problem },
            Self::Garbled { url, what } => Error::Protocol { url, what },
        }
    }
}

enum Kind {
    /// That is the answer.
    Final,
    NothingHappened,
    Unknown,
}

fn refusal_kind(status: u16, problem: &Problem) -> Kind {
    match (status, problem.code.as_str()) {
        // The seat or the store may have been lost while the request was in hand.
        (503, "not_leading" | "store_unavailable") => Kind::Unknown,
        (429 | 503, _) => Kind::NothingHappened,
        // A standby tells whether its leader saw the request.
        (502 | 504, _) => match problem.details.get("sent").and_then(serde_json::Value::as_bool) {
            Some(false) => Kind::NothingHappened,
            Some(true) | None => Kind::Unknown,
        },
        _ => Kind::Final,
    }
}
