//! What an answer looks like; above all one that says no.

use bytes::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::Body;

pub(super) type Answer = Response<Body>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const NEVER_KEPT: HeaderValue = HeaderValue::from_static("no-store");

pub(super) fn json(status: StatusCode, value: &Value) -> Answer {
    text(status, JSON, format!("{value}\n"))
}

pub(super) fn metrics(figures: String) -> Answer {
    text(StatusCode::OK, METRICS, figures)
}

fn text(status: StatusCode, kind: HeaderValue, text: String) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer.headers_mut().insert(CACHE_CONTROL, NEVER_KEPT);
    answer
}

/// Why a request gets nothing.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Value,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> Box<Self> {
        let (message, details) = (message.into(), json!({}));
        Box::new(Self { status, code, message, details, headers: Vec::new() })
    }

    pub(super) fn details(mut self: Box<Self>, details: Value) -> Box<Self> {
        self.details = details;
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

    pub(super) fn allow(self: Box<Self>, methods: &'static str) -> Box<Self> {
        self.header(ALLOW, methods)
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
