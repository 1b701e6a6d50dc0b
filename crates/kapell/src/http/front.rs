//! Which answer a request gets.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::Limited;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use kapell_core::seat::Owner;
use serde_json::json;

use super::answer::{self, Answer, Problem};
use super::door::Door;
use super::forward::{FORWARDED_BY, Forwarder};
use super::{Face, Leader, Role};

/// Who gave the answer.
const SERVED_BY: HeaderName = HeaderName::from_static("kapell-served-by");

type Page = fn(&dyn Face) -> Result<Answer, Box<Problem>>;

/// What every host answers itself.
const PAGES: [(&str, Page); 3] = [("/healthz", health), ("/leader", leader), ("/metrics", metrics)];

pub(super) struct Front {
    pub(super) face: Arc<dyn Face>,
    pub(super) door: Door,
    pub(super) forwarder: Forwarder,
    pub(super) body_bytes: usize,
}

impl Front {
    /// Answers a request that came in at `local`.
    pub(super) async fn answer(&self, request: Request<Incoming>, local: SocketAddr) -> Answer {
        let (parts, body) = request.into_parts();
        if let Err(refused) = self.door.pass(&parts, local) {
            return refused.answer();
        }
        let request = Request::from_parts(parts, body);
        let mut answer = self.route(request).await.unwrap_or_else(|problem| problem.answer());
        if !answer.headers().contains_key(SERVED_BY) {
            answer.headers_mut().insert(SERVED_BY, name(self.face.owner()));
        }
        answer
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Answer, Box<Problem>> {
        if let Some((_, page)) = PAGES.iter().find(|(path, _)| *path == request.uri().path()) {
            return self.page(&request, *page);
        }
        if request.method() == Method::CONNECT {
            return Err(not_allowed("GET, HEAD, POST, PUT, PATCH, DELETE"));
        }
        let leader = self.face.leader().ok_or_else(nobody)?;
        if leader.here {
            return self.serve(request).await;
        }
        let us = self.face.owner();
        if leader.record.owner == us {
            let text = "this host holds the seat but may not act right now";
            return Err(
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_leading", text).passing()
            );
        }
        if let Some(by) = request.headers().get(FORWARDED_BY) {
            let text = "this host does not lead, and the request was forwarded once already";
            let details = json!({
                "forwarded_by": String::from_utf8_lossy(by.as_bytes()),
                "owner": leader.record.owner,
                "address": leader.record.address,
            });
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "forwarded_twice", text);
            return Err(problem.details(details).passing());
        }
        self.forwarder.forward(request, &leader, us).await
    }

    fn page(&self, request: &Request<Incoming>, page: Page) -> Result<Answer, Box<Problem>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(not_allowed("GET, HEAD"));
        }
        page(&*self.face)
    }

    /// Answers as the leader. Whatever more it has to offer is added in `api`.
    async fn serve(&self, request: Request<Incoming>) -> Result<Answer, Box<Problem>> {
        let limit = self.body_bytes;
        let least = request.body().size_hint().lower();
        if usize::try_from(least).is_ok_and(|least| least <= limit) {
            return api(request.map(|body| Limited::new(body, limit))).await;
        }
        let text = format!("a body may have at most {limit} bytes");
        let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text);
        Err(problem.details(json!({ "limit_bytes": limit })).closing())
    }
}

#[expect(clippy::unused_async, reason = "what is added here will read bodies")]
async fn api(request: Request<Limited<Incoming>>) -> Result<Answer, Box<Problem>> {
    let path = request.uri().path();
    let text = format!("there is nothing at `{path}`");
    let problem = Problem::new(StatusCode::NOT_FOUND, "not_found", text);
    Err(problem.details(json!({ "path": path })))
}

fn health(face: &dyn Face) -> Result<Answer, Box<Problem>> {
    let health = face.health();
    let value = json!({
        "status": health.role.name(),
        "store_reachable": health.store_reachable,
        "since": health.since,
    });
    match health.role {
        Role::Leading | Role::Standby => Ok(answer::json(StatusCode::OK, &value)),
        Role::Stopping => {
            let text = "this host is stopping";
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", text);
            Err(problem.details(value))
        }
    }
}

fn leader(face: &dyn Face) -> Result<Answer, Box<Problem>> {
    let Leader { seat, record, expires_in_ms, here } = face.leader().ok_or_else(nobody)?;
    let value = json!({
        "seat": seat,
        "epoch": record.epoch,
        "owner": record.owner,
        "address": record.address,
        "expires_in_ms": expires_in_ms,
        "here": here,
    });
    Ok(answer::json(StatusCode::OK, &value))
}

#[expect(clippy::unnecessary_wraps, reason = "it is a page like the others")]
fn metrics(face: &dyn Face) -> Result<Answer, Box<Problem>> {
    Ok(answer::metrics(face.metrics()))
}

fn nobody() -> Box<Problem> {
    let text = "nobody leads right now";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_leader", text).passing()
}

fn not_allowed(methods: &'static str) -> Box<Problem> {
    let text = format!("only {methods} are possible here");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", text).allow(methods)
}

/// An owner as the value of a header.
pub(super) fn name(owner: Owner) -> HeaderValue {
    HeaderValue::try_from(owner.to_string()).unwrap_or_else(|_| HeaderValue::from_static(""))
}
