//! Who does what, noted before it is done.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::header::HeaderName;
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use kapell_core::access::Kind;
use kapell_core::audit::{AuditRecord, Outcome};
use kapell_node::audit::{Journal, Unavailable};

use super::answer::{Answer, Problem};
use super::door::{By, Entry, only};

/// What clients may call their requests.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What is noted of a request whose client did not wait for the answer.
const BROKEN_OFF: Outcome = Outcome { status: 499, code: None };

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) client: SocketAddr,
    /// The host that passed it on.
    pub(super) via: Option<SocketAddr>,
}

/// What is noted of one request. Of most, nothing is. Clones are of the same request.
#[derive(Debug, Clone, Default)]
pub(super) struct Note(Option<Arc<Noted>>);

#[derive(Debug)]
struct Noted {
    journal: Arc<Journal>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    record: AuditRecord,
    is_finished: bool,
}

impl Note {
    /// A request that changes something, if that is to be noted.
    pub(super) fn begin(
        journal: Option<&Arc<Journal>>,
        kind: Kind,
        op: &str,
        entry: &Entry,
        origin: Origin,
        headers: &HeaderMap,
    ) -> Self {
        let Some(journal) = journal else { return Self(None) };
        let mut record = AuditRecord::wish(journal.name(), journal.now(), kind, op, &entry.who);
        match &entry.by {
            By::Certificate => record.shown_by(&entry.who.role),
            By::Token | By::Session(_) | By::Signed(_) => {}
        }
        record.from = origin.client.to_string();
        record.via = origin.via.map(|via| via.to_string());
        record.called(only(headers, &REQUEST_ID));
        let state = Mutex::new(State { record, is_finished: false });
        Self(Some(Arc::new(Noted { journal: Arc::clone(journal), state })))
    }

    /// Adds the name of something that it is about.
    pub(super) fn about(&self, what: &str, name: &str) {
        if let Some(noted) = &self.0 {
            noted.state().record.about(what, name);
        }
    }

    /// Says that it will be done. Nothing may be done unless this was.
    pub(super) async fn intend(&self) -> Result<(), Box<Problem>> {
        let Some(noted) = &self.0 else { return Ok(()) };
        let record = noted.state().record.clone();
        noted.journal.keep(&record).await.map_err(|why| unavailable(&why))
    }

    /// Says what came of it.
    pub(super) fn finish(&self, answered: &Result<Answer, Box<Problem>>) {
        let outcome = match answered {
            Ok(answer) => Outcome { status: answer.status().as_u16(), code: None },
            Err(why) => {
                Outcome { status: why.status().as_u16(), code: Some(why.code().to_owned()) }
            }
        };
        if let Some(noted) = &self.0 {
            noted.finish(outcome);
        }
    }
}

impl Noted {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, outcome: Outcome) {
        let mut state = self.state();
        if !state.is_finished {
            state.is_finished = true;
            state.record.outcome = Some(outcome);
            self.journal.note(&state.record);
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.finish(BROKEN_OFF);
    }
}

fn unavailable(why: &Unavailable) -> Box<Problem> {
    let text = format!(
        "nothing was done, because it cannot be noted who does it: {why}; make room for `audit` in the host's state \
         directory, or set `audit: off`"
    );
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "audit_unavailable", text).passing()
}

/// Counts somebody who showed what does not count.
pub(super) fn refused(journal: Option<&Arc<Journal>>, origin: Origin, why: &Problem) {
    if let Some(journal) = journal.filter(|_| why.status() == StatusCode::UNAUTHORIZED) {
        journal.refused(origin.client.ip().to_string(), why.code());
    }
}

/// Whether a request shows something at all to be let in by.
pub(super) fn shows_something(request: &Parts, certificates: usize) -> bool {
    certificates > 0 || request.headers.contains_key(hyper::header::AUTHORIZATION)
}
