//! What stands behind the door.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use hyper::Request;
use hyper::body::Incoming;
use tokio_rustls::rustls::ClientConfig;

use super::Limits;
use super::answer::Answer;
use super::door::{Door, Entry};
use super::session;
use super::token::Token;

/// What answers requests that were let in: a host or a cell.
#[async_trait]
pub(super) trait Site: Send + Sync {
    async fn answer(&self, visit: Visit) -> Answer;
}

/// A request that was let in.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) request: Request<Incoming>,
    pub(super) by: Entry,
}

/// What the listener has that a site may need.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    /// Whom to trust; nobody if no authority is known.
    pub(super) trust: Option<Arc<ClientConfig>>,
    pub(super) token: Token,
    pub(super) limits: Limits,
}

/// A site and the door before it.
pub(super) struct Gate {
    pub(super) door: Door,
    pub(super) site: Arc<dyn Site>,
    /// Clients come over TLS.
    pub(super) secure: bool,
}

impl Gate {
    /// Answers a request that came in at `local`.
    pub(super) async fn answer(&self, request: Request<Incoming>, local: SocketAddr) -> Answer {
        let (parts, mut body) = request.into_parts();
        if let Err(refused) = self.door.place(&parts, local) {
            return refused.answer();
        }
        let caller = session::Caller { token: &self.door.token, secure: self.secure, local };
        if self.door.sessions
            && let Some(answer) = caller.before_the_door(&parts, &mut body).await
        {
            return answer;
        }
        match self.door.enter(&parts) {
            Ok(by) => {
                let request = Request::from_parts(parts, body);
                self.site.answer(Visit { request, by }).await
            }
            Err(refused) if self.door.sessions && session::wants_page(&parts) => {
                session::ask_for_token(*refused)
            }
            Err(refused) => refused.answer(),
        }
    }
}
