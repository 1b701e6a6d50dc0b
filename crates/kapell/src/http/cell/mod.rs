//! What a cell answers: its leader's orders, and what its containers wrote.

mod exec;
mod follow;
mod part;
mod rep;
mod segments;
mod table;

use std::sync::Arc;

use async_trait::async_trait;
use hyper::header::HeaderName;
use hyper::{HeaderMap, StatusCode};
use kapell_api::v1::{Cancel, Stop, Work};
use kapell_core::access::About;
use kapell_core::board::LrpKey;
use kapell_core::seat::Epoch;
use kapell_node::cell::LogOf;
use serde::Serialize;
use serde_json::json;

use super::access::may;
use super::answer::{self, Answer, Problem};
use super::query::Query;
use super::read::Payload;
use super::route::{Params, find};
use super::site::{Site, Tools, Visit};
use exec::exec;
use follow::logs;
pub(super) use follow::{Files, Reading};
pub(crate) use rep::Rep;
use table::{Op, ROUTES};

const EPOCH: HeaderName = HeaderName::from_static(kapell_api::v1::EPOCH);

/// A cell behind its door.
pub(super) struct CellSite {
    rep: Arc<dyn Rep>,
    tools: Tools,
}

#[async_trait]
impl Site for CellSite {
    async fn answer(&self, visit: Visit) -> Answer {
        self.route(visit).await.unwrap_or_else(|problem| problem.answer())
    }
}

impl CellSite {
    pub(super) fn new(rep: Arc<dyn Rep>, tools: Tools) -> Self {
        Self { rep, tools }
    }

    async fn route(&self, visit: Visit) -> Result<Answer, Box<Problem>> {
        let who = visit.entry.who;
        let (parts, body) = visit.request.into_parts();
        let limits = &self.tools.limits;
        let payload = Payload::new(&parts, body, limits.bulk_bytes, limits);
        payload.check()?;
        let (route, params) = find(ROUTES, &parts.method, parts.uri.path())?;
        may(&who, route.does.kind(), About::Anything)?;
        let query = Query::parse(parts.uri.query().unwrap_or_default(), route.query)?;
        let headers = &parts.headers;
        let rep = &self.rep;
        match route.does {
            Op::Health => {
                let value = json!({ "status": "running", "cell_id": rep.id() });
                Ok(answer::json(StatusCode::OK, &value))
            }
            Op::State => told(rep.state(epoch(headers)?)),
            Op::Work => {
                let epoch = epoch(headers)?;
                told(rep.work(epoch, payload.json::<Work>(headers).await?))
            }
            Op::Stop => {
                let epoch = epoch(headers)?;
                done(rep.stop(epoch, &payload.json::<Stop>(headers).await?))
            }
            Op::Cancel => {
                let epoch = epoch(headers)?;
                done(rep.cancel(epoch, &payload.json::<Cancel>(headers).await?))
            }
            Op::Evacuate => done(rep.evacuate(epoch(headers)?)),
            Op::LogsOfLrp => logs(Arc::clone(rep), lrp(&params)?, &query, &self.tools).await,
            Op::LogsOfTask => {
                let of = LogOf::Task(params.get("task_guid").into());
                logs(Arc::clone(rep), of, &query, &self.tools).await
            }
            Op::ExecInLrp => {
                self.is_led(headers)?;
                exec(Arc::clone(rep), lrp(&params)?, payload.body, &self.tools).await
            }
            Op::ExecInTask => {
                self.is_led(headers)?;
                let of = LogOf::Task(params.get("task_guid").into());
                exec(Arc::clone(rep), of, payload.body, &self.tools).await
            }
        }
    }

    /// Refuses the order of a leader that was replaced.
    fn is_led(&self, headers: &HeaderMap) -> Result<(), Box<Problem>> {
        self.rep.state(epoch(headers)?).map(drop).map_err(refused)
    }
}

fn lrp(params: &Params) -> Result<LogOf, Box<Problem>> {
    let index = params.get("index");
    let Ok(index) = index.parse() else {
        let text = format!("an instance has a number, not `{index}`");
        return Err(Problem::new(StatusCode::NOT_FOUND, "not_found", text));
    };
    Ok(LogOf::Lrp(LrpKey { process_guid: params.get("process_guid").into(), index }))
}

/// Whose order it is.
fn epoch(headers: &HeaderMap) -> Result<Epoch, Box<Problem>> {
    let text = headers.get(EPOCH).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).map(Epoch).ok_or_else(|| {
        let text = "a cell takes orders only with the leader's epoch, in the header kapell-epoch";
        Problem::new(StatusCode::BAD_REQUEST, "no_epoch", text)
    })
}

/// A cell says no because of what it knows: an older epoch, or its own end.
fn refused(problem: kapell_api::v1::Problem) -> Box<Problem> {
    let details = if problem.details.is_object() { problem.details } else { json!({}) };
    Problem::new(StatusCode::CONFLICT, problem.code, problem.message).details(details)
}

fn told(answer: Result<impl Serialize, kapell_api::v1::Problem>) -> Result<Answer, Box<Problem>> {
    answer.map(|value| answer::value(StatusCode::OK, &value)).map_err(refused)
}

fn done(answer: Result<(), kapell_api::v1::Problem>) -> Result<Answer, Box<Problem>> {
    answer.map(|()| answer::nothing()).map_err(refused)
}
