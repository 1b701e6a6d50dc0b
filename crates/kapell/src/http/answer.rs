//! What an answer looks like; above all one that says no.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use super::body::Body;

pub(super) type Answer = Response<Body>;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const NEVER_KEPT: HeaderValue = HeaderValue::from_static("no-store");

pub(super) fn json(status: StatusCode, value: &Value) -> Answer {
    text(status, JSON, format!("{value}\n"))
}

pub(super) fn metrics(figures: String) -> Answer {
    text(StatusCode::OK, METRICS, figures)
}

/// Anything that can be written as JSON.
pub(super) fn value(status: StatusCode, value: &impl Serialize) -> Answer {
    match serde_json::to_string(value) {
        Ok(json) => text(status, JSON, json + "\n"),
        Err(error) => {
            let why = format!("the answer could not be written: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "unwritable", why).answer()
        }
    }
}

/// Done, and there is nothing to show.
pub(super) fn nothing() -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::new()));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer.headers_mut().insert(CACHE_CONTROL, NEVER_KEPT);
    answer
}

/// JSON that comes in pieces.
pub(super) fn json_stream(body: Body) -> Answer {
    stream(JSON, body)
}

pub(super) fn event_stream(body: Body) -> Answer {
    stream(EVENTS, body)
}

/// Something that comes piece by piece and that nobody on the way may collect.
pub(super) fn stream(kind: HeaderValue, body: Body) -> Answer {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, NEVER_KEPT);
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

pub(super) fn text(status: StatusCode, kind: HeaderValue, text: String) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer.headers_mut().insert(CACHE_CONTROL, NEVER_KEPT);
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Why a request gets nothing.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: Cow<'static, str>,
    message: String,
    details: Value,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// What it says.
    pub(super) fn text(&self) -> String {
        self.message.clone()
    }

    /// The same, with what it is about before it.
    pub(super) fn about(mut self: Box<Self>, what: &str) -> Box<Self> {
        self.message.insert_str(0, what);
        self
    }

    pub(super) fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Box<Self> {
        let (code, message, details) = (code.into(), message.into(), json!({}));
        Box::new(Self { status, code, message, details, headers: Vec::new() })
    }

    pub(super) fn details(mut self: Box<Self>, details: Value) -> Box<Self> {
        self.details = details;
        self
    }

    /// One more of them.
    pub(super) fn detail(mut self: Box<Self>, name: &str, value: impl Into<Value>) -> Box<Self> {
        if let Value::Object(details) = &mut self.details {
            details.insert(name.to_owned(), value.into());
        }
        self
    }

    fn header(mut self: Box<Self>, name: HeaderName, value: &'static str) -> Box<Self> {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// It may be different soon.
    pub(super) fn passing(self: Box<Self>) -> Box<Self> {
        self.header(RETRY_AFTER, "1")
    }

    pub(super) fn allow(mut self: Box<Self>, methods: &str) -> Box<Self> {
        let value = HeaderValue::try_from(methods).unwrap_or(HeaderValue::from_static(""));
        self.headers.push((ALLOW, value));
        self
    }

    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn code(&self) -> &str {
        &self.code
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn challenge(self: Box<Self>, challenge: &'static str) -> Box<Self> {
        self.header(WWW_AUTHENTICATE, challenge)
    }

    /// Nothing more is taken on this connection, so whoever was refused cannot keep it busy.
    pub(super) fn closing(self: Box<Self>) -> Box<Self> {
        self.header(CONNECTION, "close")
    }

    pub(super) fn answer(self) -> Answer {
        let value = json!({ "code": self.code, "message": self.message, "details": self.details });
        let mut answer = json(self.status, &value);
        answer.headers_mut().extend(self.headers);
        answer
    }
}
