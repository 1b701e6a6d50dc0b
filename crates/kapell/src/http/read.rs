//! Bodies of requests that are answered here.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use kapell_core::source::Problem as Fault;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::Limits;
use super::answer::Problem;
use super::guests::Guest;
use super::query::{decoded, pairs};
use super::turns::InTurn;

/// A body, and how much of it is taken.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) body: Incoming,
    most_bytes: usize,
    /// From its first byte to its last.
    patience: Duration,
    /// Whose it is.
    guest: Option<Arc<Guest>>,
    /// What comes once all of it is there.
    turn: Option<InTurn>,
}

impl Payload {
    /// The body of a request, of which at most so much is taken.
    pub(super) fn new(request: &Parts, body: Incoming, most_bytes: usize, limits: &Limits) -> Self {
        let guest = request.extensions.get::<Arc<Guest>>().cloned();
        Self { body, most_bytes, patience: limits.body, guest, turn: None }
    }

    /// Waits for a turn: for what has no body at once, for all else when it is there.
    pub(super) async fn in_turn(&mut self, turn: &InTurn) -> Result<(), Box<Problem>> {
        if self.body.is_end_stream() {
            return turn.come().await;
        }
        self.turn = Some(turn.clone());
        Ok(())
    }

    /// Refuses what says that it is too large before anything of it is read.
    pub(super) fn check(&self) -> Result<(), Box<Problem>> {
        let least = self.body.size_hint().lower();
        if usize::try_from(least).is_ok_and(|least| least <= self.most_bytes) {
            return Ok(());
        }
        Err(self.too_large())
    }

    fn too_large(&self) -> Box<Problem> {
        let limit = self.most_bytes;
        let text = format!("a body may have at most {limit} bytes");
        let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text);
        problem.details(json!({ "limit_bytes": limit })).closing()
    }

    async fn bytes(mut self) -> Result<Bytes, Box<Problem>> {
        let (turn, guest) = (self.turn.take(), self.guest.take());
        let awaits = |is_so| {
            if let Some(guest) = &guest {
                guest.awaits_body(is_so);
            }
        };
        awaits(true);
        let bytes = self.all().await;
        awaits(false);
        let bytes = bytes?;
        if let Some(turn) = turn {
            turn.come().await?;
        }
        Ok(bytes)
    }

    async fn all(mut self) -> Result<Bytes, Box<Problem>> {
        self.check()?;
        let mut bytes = BytesMut::new();
        let until = Instant::now() + self.patience;
        loop {
            let frame = match timeout_at(until, self.body.frame()).await {
                Ok(None) => return Ok(bytes.freeze()),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    let text = format!("the body broke off: {error}");
                    return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_body", text).closing());
                }
                Err(_) => {
                    let text = format!("the body did not come within {:?}", self.patience);
                    let problem = Problem::new(StatusCode::REQUEST_TIMEOUT, "body_stalled", text);
                    return Err(problem.closing());
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > self.most_bytes {
                return Err(self.too_large());
            }
            bytes.extend_from_slice(&data);
        }
    }

    /// Reads a body of JSON.
    pub(super) async fn json<T: DeserializeOwned>(
        self,
        headers: &HeaderMap,
    ) -> Result<T, Box<Problem>> {
        content_type(headers)?;
        parse(&self.bytes().await?)
    }

    /// Reads a body of JSON. `faults` finds all that is wrong with one that is JSON and does not fit.
    pub(super) async fn json_judged<T: DeserializeOwned>(
        self,
        headers: &HeaderMap,
        faults: fn(&[u8]) -> Vec<Fault>,
    ) -> Result<T, Box<Problem>> {
        content_type(headers)?;
        let bytes = self.bytes().await?;
        parse(&bytes).map_err(|problem| {
            let is_json = serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
            let found = if is_json { faults(&bytes) } else { Vec::new() };
            if found.is_empty() { problem } else { misfit(&found) }
        })
    }

    /// Reads a body of JSON by what takes it in many forms, or finds all that is wrong with it.
    pub(super) async fn json_read<T>(
        self,
        headers: &HeaderMap,
        read: fn(&[u8]) -> Result<T, Vec<Fault>>,
    ) -> Result<T, Box<Problem>> {
        content_type(headers)?;
        let bytes = self.bytes().await?;
        parse::<IgnoredAny>(&bytes)?;
        read(&bytes).map_err(|faults| misfit(&faults))
    }

    /// Reads what a browser sends of a form.
    pub(super) async fn form(self) -> Result<Vec<(String, String)>, Box<Problem>> {
        let bytes = self.bytes().await?;
        let wrong = || {
            let text = "the form cannot be read";
            Problem::new(StatusCode::BAD_REQUEST, "bad_body", text)
        };
        let text = str::from_utf8(&bytes).map_err(|_| wrong())?;
        let field = |(name, value): (&str, &str)| {
            let plain = |text: &str| decoded(&text.replace('+', " "));
            Some((plain(name)?, plain(value)?))
        };
        pairs(text).map(|pair| field(pair).ok_or_else(wrong)).collect()
    }

    /// Reads a body of JSON, if there is a body.
    pub(super) async fn json_if_any<T: DeserializeOwned>(
        self,
        headers: &HeaderMap,
    ) -> Result<Option<T>, Box<Problem>> {
        if headers.contains_key(CONTENT_TYPE) {
            content_type(headers)?;
        }
        let bytes = self.bytes().await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        content_type(headers)?;
        parse(&bytes).map(Some)
    }
}

const KINDS: [&str; 2] = ["application/json", "application/merge-patch+json"];

fn content_type(headers: &HeaderMap) -> Result<(), Box<Problem>> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = given.split(';').next().unwrap_or_default().trim();
    if KINDS.iter().any(|each| kind.eq_ignore_ascii_case(each)) {
        return Ok(());
    }
    let text = "a body must be JSON: send `Content-Type: application/json`";
    let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", text);
    Err(problem.details(json!({ "content_type": given })))
}

/// Refuses a body for all that is wrong with it.
fn misfit(faults: &[Fault]) -> Box<Problem> {
    let tell = |fault: &Fault| {
        let help = fault.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        format!("{}{help} (line {}, column {})", fault.message, fault.span.line, fault.span.column)
    };
    let problems: Vec<String> = faults.iter().map(tell).collect();
    let text = format!("it is not valid: {}", problems.join("; "));
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", text);
    problem.details(json!({ "problems": problems }))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Box<Problem>> {
    serde_json::from_slice(bytes).map_err(|error| {
        let details = json!({ "line": error.line(), "column": error.column() });
        let text = format!("the body is not what belongs here: {error}");
        Problem::new(StatusCode::BAD_REQUEST, "bad_json", text).details(details)
    })
}
