//! What stands behind the door.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use kapell_api::identity::{self, Subject};
use kapell_core::board::CellId;
use kapell_node::access::ClusterKey;
use kapell_node::audit::Journal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::rustls::ClientConfig;

use super::answer::{Answer, Problem};
use super::audit::{self, Origin};
use super::door::{By, Caller, Door, Entry};
use super::session;
use super::token::{Session, Token};
use super::turns::Turns;
use super::{Limits, Listen, Peers, Vouching};

/// What answers requests that were let in: a host or a cell.
#[async_trait]
pub(super) trait Site: Send + Sync {
    async fn answer(&self, visit: Visit) -> Answer;
}

/// A request that was let in.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) request: Request<Incoming>,
    pub(super) entry: Entry,
    pub(super) origin: Origin,
}

/// What the listener has that a site may need.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    /// Whom to trust; nobody if no authority is known.
    pub(super) trust: Option<Arc<ClientConfig>>,
    pub(super) token: Token,
    /// What tokens are signed by.
    pub(super) key: Option<ClusterKey>,
    pub(super) vouching: Option<Vouching>,
    /// Where it is noted who does what.
    pub(super) audit: Option<Arc<Journal>>,
    peers: Option<Peers>,
    pub(super) limits: Limits,
    streams: Arc<Semaphore>,
    execs: Arc<Semaphore>,
    pub(super) turns: Turns,
}

impl Tools {
    pub(super) fn new(listen: &Listen, trust: Option<Arc<ClientConfig>>, limits: Limits) -> Self {
        Self {
            trust,
            token: listen.token.clone(),
            key: listen.key.clone(),
            vouching: listen.vouching.clone(),
            audit: listen.audit.clone(),
            peers: listen.peers.clone(),
            limits,
            streams: Arc::new(Semaphore::new(limits.streams)),
            execs: Arc::new(Semaphore::new(limits.execs)),
            turns: Turns::new(&limits),
        }
    }

    /// How a cell is reached by TLS, and whether it is shown the token. A cell that joined is known by its certificate
    /// and we by ours: it never learns what would let it in everywhere.
    pub(super) fn to_cell(
        &self,
        id: &CellId,
        secure: bool,
    ) -> Result<(Option<Arc<ClientConfig>>, bool), identity::Error> {
        match &self.peers {
            Some(peers) if secure => {
                let expected = Subject::Cell(id.clone());
                Ok((Some(peers.trust.client(expected, Some(&peers.identity))?), false))
            }
            Some(_) | None => Ok((self.trust.clone(), true)),
        }
    }

    /// A place for something that goes on for as long as somebody reads.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, Box<Problem>> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| too_many_streams())
    }

    /// A place for a program that runs for as long as somebody wants it.
    pub(super) fn exec(&self) -> Result<OwnedSemaphorePermit, Box<Problem>> {
        Arc::clone(&self.execs).try_acquire_owned().map_err(|_| {
            let text = format!(
                "{} programs were started on this cell by `kapell exec` and run: end some of them",
                self.limits.execs
            );
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_programs", text).passing()
        })
    }
}

pub(super) fn too_many_streams() -> Box<Problem> {
    let text = "too many streams are being read: end some of them";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", text).passing()
}

/// A site and the door before it.
pub(super) struct Gate {
    pub(super) door: Door,
    pub(super) site: Arc<dyn Site>,
    pub(super) audit: Option<Arc<Journal>>,
    /// Clients come over TLS.
    pub(super) secure: bool,
    /// How long a body may take that is read before anybody was let in.
    pub(super) body: Duration,
}

impl Gate {
    /// Answers a request that came in at `local`, if `entered` has room for whoever was let in.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        from: &Caller,
        entered: impl FnOnce(&Entry, &str) -> Result<(), Box<Problem>>,
    ) -> Answer {
        let local = from.local;
        let (parts, mut body) = request.into_parts();
        if let Err(refused) = self.door.place(&parts, local) {
            return refused.answer();
        }
        let (secure, patience) = (self.secure, self.body);
        let caller = session::Caller { token: &self.door.token, secure, local, patience };
        if self.door.sessions
            && let Some(answer) = caller.before_the_door(&parts, &mut body).await
        {
            self.note_login(&answer, from);
            return answer;
        }
        let origin = self.door.whence(&parts.headers, from);
        let entered_as = self.door.enter(&parts, from);
        if let Err(why) = &entered_as
            && audit::shows_something(&parts, from.certificates.len())
        {
            audit::refused(self.audit.as_ref(), origin, why);
        }
        match entered_as {
            Ok(entry) => {
                if let Err(no_room) = entered(&entry, parts.uri.path()) {
                    return no_room.answer();
                }
                let aging = entry.by == By::Session(Session { is_aging: true });
                let request = Request::from_parts(parts, body);
                let mut answer = self.site.answer(Visit { request, entry, origin }).await;
                if aging {
                    caller.renew(&mut answer);
                }
                answer
            }
            Err(refused) if self.door.sessions && session::wants_page(&parts) => {
                session::ask_for_token(*refused)
            }
            Err(refused) => refused.answer(),
        }
    }

    /// Somebody gave a wrong token on a page.
    fn note_login(&self, answer: &Answer, from: &Caller) {
        if let Some(journal) = self.audit.as_ref().filter(|_| answer.status() == 401) {
            journal.refused(from.from.ip().to_string(), "unauthorized");
        }
    }
}
