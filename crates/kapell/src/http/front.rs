//! Which answer a request gets.

use std::sync::Arc;

use async_trait::async_trait;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use kapell_core::access::{About, Kind};
use kapell_core::seat::Owner;
use kapell_node::audit::Journal;
use serde_json::json;

use super::access;
use super::answer::{self, Answer, Problem};
use super::audit;
use super::door::By;
use super::forward::{FORWARDED_BY, Forwarder};
use super::host_logs;
use super::route::not_allowed;
use super::session;
use super::site::{Site, Tools, Visit};
use super::v1::Api;
use super::{Face, Leader, Role, Writes};

/// Who gave the answer.
const SERVED_BY: HeaderName = HeaderName::from_static("kapell-served-by");

type Page = fn(&dyn Face) -> Result<Answer, Box<Problem>>;

const LEADER_ONLY: &str = "only the leader knows which signed tokens count: ask it, or bear the token of the state directory";

/// What every host answers itself.
const PAGES: [(&str, Kind, Page); 3] = [
    ("/healthz", Kind::Health, health),
    ("/leader", Kind::Health, leader),
    ("/metrics", Kind::Figures, metrics),
];

pub(super) struct Front {
    face: Arc<dyn Face>,
    forwarder: Forwarder,
    audit: Option<Arc<Journal>>,
    api: Api,
    tools: Tools,
}

#[async_trait]
impl Site for Front {
    async fn answer(&self, visit: Visit) -> Answer {
        let Visit { request, entry, origin } = visit;
        let (parts, body) = request.into_parts();
        let person = session::wants_page(&parts);
        let request = Request::from_parts(parts, body);
        let answered = self.route(Visit { request, entry, origin }).await;
        let mut answer = answered.unwrap_or_else(|problem| {
            if person { session::sorry(&problem) } else { problem.answer() }
        });
        if !answer.headers().contains_key(SERVED_BY) {
            answer.headers_mut().insert(SERVED_BY, name(self.face.owner()));
        }
        answer
    }
}

impl Front {
    pub(super) fn new(face: Arc<dyn Face>, tools: Tools) -> Self {
        let audit = tools.audit.clone();
        let (api, forwarder) = (Api::new(tools.clone()), Forwarder::new(tools.clone()));
        Self { face, forwarder, audit, api, tools }
    }

    async fn route(&self, visit: Visit) -> Result<Answer, Box<Problem>> {
        let request = &visit.request;
        let page = PAGES.iter().find(|(path, ..)| *path == request.uri().path());
        if let Some((_, kind, page)) = page {
            self.is_known(&visit)?;
            access::may(&visit.entry.who, *kind, About::Anything)?;
            return self.page(request, *page);
        }
        if host_logs::is_meant(request.uri().path()) {
            return host_logs::answer(&visit, Arc::clone(&self.face), &self.tools).await;
        }
        if request.method() == Method::CONNECT {
            return Err(not_allowed("GET, HEAD, POST, PUT, PATCH, DELETE"));
        }
        let leader = self.face.leader().ok_or_else(nobody)?;
        if leader.here {
            self.stands(&visit)?;
            return self.api.answer(visit, &*self.face).await;
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
        self.forwarder.forward(visit, &leader, us).await
    }

    /// A host that does not lead cannot know what was revoked.
    fn is_known(&self, visit: &Visit) -> Result<(), Box<Problem>> {
        let leads = self.face.leader().is_some_and(|leader| leader.here);
        match &visit.entry.by {
            By::Token | By::Session(_) | By::Certificate => Ok(()),
            By::Signed(_) if leads => self.stands(visit),
            By::Signed(_) => {
                Err(Problem::new(StatusCode::FORBIDDEN, "ask_the_leader", LEADER_ONLY))
            }
        }
    }

    fn stands(&self, Visit { entry, origin, .. }: &Visit) -> Result<(), Box<Problem>> {
        access::stands(entry, self.face.ledger().as_deref())
            .inspect_err(|why| audit::refused(self.audit.as_ref(), *origin, why))
    }

    fn page(&self, request: &Request<Incoming>, page: Page) -> Result<Answer, Box<Problem>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(not_allowed("GET, HEAD"));
        }
        page(&*self.face)
    }
}

fn health(face: &dyn Face) -> Result<Answer, Box<Problem>> {
    let health = face.health();
    let mut value = json!({
        "status": health.role.name(),
        "store_reachable": health.store_trouble.is_none(),
        "writes": health.writes.name(),
        "since": health.since,
    });
    if let Writes::Refused { why, since } = health.writes {
        value["reason"] = why.into();
        value["refused_since"] = json!(since);
    }
    if let Some(why) = health.store_trouble {
        value["reason"] = why.into();
    }
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

/// An owner as the value of a header.
pub(super) fn name(owner: Owner) -> HeaderValue {
    HeaderValue::try_from(owner.to_string()).unwrap_or_else(|_| HeaderValue::from_static(""))
}
