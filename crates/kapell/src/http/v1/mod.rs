//! What the leader answers: the API under `/v1`, and the pages for people.

mod audit;
mod backfill;
mod call;
mod cells;
mod certificates;
mod events;
mod exec;
mod explain;
mod forms;
mod jobs;
mod jobs_apply;
mod jobs_explain;
mod jobs_look;
mod lists;
mod logs;
mod openapi;
mod plan;
mod refusal;
mod run_logs;
mod runs;
mod secrets;
mod table;
mod tokens;
mod upstream;
mod writes;

use std::sync::Arc;

use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode};
use kapell_core::access::{About, Kind, TokenId, Who};
use kapell_core::board::{CellId, Domain};
use kapell_core::seams::Ids;
use kapell_node::system::SystemIds;

use super::Face;
use super::access::may;
use super::answer::{self, Answer, Problem};
use super::audit::{Note, Origin};
use super::door::Entry;
use super::guests::speaks_for_cell;
use super::query::{Query, decoded, pairs};
use super::read::Payload;
use super::route::{Params, find, not_allowed, not_found};
use super::session;
use super::site::{Tools, Visit};
use crate::page;
use call::Call;
pub(crate) use explain::{Subject, explain};
use forms::{FORMS, Form};
pub(crate) use jobs::coming;
pub(crate) use jobs_explain::explain_job;
pub(crate) use jobs_look::{RunsWanted, job, jobs as list_jobs, runs as list_runs, whole_run};
use logs::LogSource;
pub(crate) use runs::state_named;
use table::{Op, ROUTES};
pub(super) use upstream::{Peer, Upstream};

/// A request and its route.
struct Found {
    /// What may stand in its query.
    query: &'static [&'static str],
    params: Params,
    parts: Parts,
    payload: Payload,
    note: Note,
}

impl Found {
    fn query(&self) -> Result<Query, Box<Problem>> {
        Query::parse(self.parts.uri.query().unwrap_or_default(), self.query)
    }

    /// What is answered, if the board is loaded.
    fn call(self, query: Query, entry: &Entry, face: &dyn Face) -> Result<Call, Box<Problem>> {
        let desk = face.board().ok_or_else(starting)?;
        let (now, wall) = (desk.now(), desk.wall());
        let Self { params, parts, payload, note, .. } = self;
        let (who, ledger, scheduler) = (Arc::clone(&entry.who), face.ledger(), face.scheduler());
        let headers = parts.headers;
        Ok(Call { who, ledger, desk, scheduler, params, query, headers, payload, now, wall, note })
    }
}

/// What the leader answers.
pub(super) struct Api {
    tools: Tools,
    ids: Arc<dyn Ids>,
    upstream: Arc<Upstream>,
}

impl Api {
    pub(super) fn new(tools: Tools) -> Self {
        let upstream = Arc::new(Upstream::new(tools.clone()));
        Self { tools, ids: Arc::new(SystemIds), upstream }
    }

    pub(super) async fn answer(
        &self,
        visit: Visit,
        face: &dyn Face,
    ) -> Result<Answer, Box<Problem>> {
        let Visit { request, entry, origin } = visit;
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let limits = &self.tools.limits;
        let found = find(ROUTES, &parts.method, path);
        let most_bytes = match found {
            Ok((route, _)) if route.does.is_bulk() => limits.bulk_bytes,
            Ok(_) | Err(_) => limits.body_bytes,
        };
        let mut payload = Payload::new(&parts, body, most_bytes, limits);
        let turn = self.tools.turns.begin(speaks_for_cell(&entry, path));
        if !path.starts_with("/v1/") {
            payload.check()?;
            if let Ok((form, params)) = find(FORMS, &parts.method, path) {
                payload.in_turn(&turn).await?;
                let op = form.does.op();
                let note = self.note(op, &params, &entry, origin, &parts.headers);
                let asked = Found { query: &[], params, parts, payload, note: note.clone() };
                let answered = self.judge_and_fill(form.does, asked, &entry, face).await;
                note.finish(&answered);
                return answered;
            }
            turn.come().await?;
            return self.page(&parts, &entry.who, face).await;
        }
        let (route, params) = match found {
            Ok(found) => found,
            Err(problem) => return payload.check().and(Err(problem)),
        };
        payload.in_turn(&turn).await?;
        let note = self.note(route.does, &params, &entry, origin, &parts.headers);
        let asked = Found { query: route.query, params, parts, payload, note: note.clone() };
        let answered = self.judge_and_perform(route.does, asked, &entry, face).await;
        note.finish(&answered);
        answered
    }

    /// What is noted of a request; nothing if it changes nothing.
    fn note(
        &self,
        op: Op,
        params: &Params,
        entry: &Entry,
        origin: Origin,
        headers: &HeaderMap,
    ) -> Note {
        if !op.is_noted() {
            return Note::default();
        }
        let (kind, op) = (op.kind(), openapi::id(op));
        let note = Note::begin(self.tools.audit.as_ref(), kind, &op, entry, origin, headers);
        for (what, name) in params.all() {
            // Whoever names a token by all of it does not have it written down.
            if what != "token_id" || TokenId::parse(name).is_some() {
                note.about(what, name);
            }
        }
        note
    }

    async fn judge_and_perform(
        &self,
        op: Op,
        found: Found,
        entry: &Entry,
        face: &dyn Face,
    ) -> Result<Answer, Box<Problem>> {
        found.payload.check()?;
        judge(&entry.who, op.kind(), &found.params)?;
        let query = found.query()?;
        if op == Op::OpenApi {
            return Ok(answer::value(StatusCode::OK, &openapi::document()));
        }
        self.perform(op, found.call(query, entry, face)?).await
    }

    async fn judge_and_fill(
        &self,
        form: Form,
        found: Found,
        entry: &Entry,
        face: &dyn Face,
    ) -> Result<Answer, Box<Problem>> {
        judge(&entry.who, form.op().kind(), &found.params)?;
        let query = found.query()?;
        forms::perform(form, found.call(query, entry, face)?, &*self.ids).await
    }

    async fn perform(&self, op: Op, call: Call) -> Result<Answer, Box<Problem>> {
        match op {
            Op::SetDomain => writes::set_domain(call).await,
            Op::ListDomains => lists::domains(&call),
            Op::Desire => writes::desire(call).await,
            Op::ListDesired => lists::desired(&call),
            Op::GetDesired => lists::one_desired(&call),
            Op::UpdateDesired => writes::update(call).await,
            Op::RemoveDesired => writes::remove(call).await,
            Op::ListActual => lists::actual(&call),
            Op::CreateTask => writes::create_task(call, &*self.ids).await,
            Op::ListTasks => lists::tasks(&call),
            Op::GetTask => lists::one_task(&call),
            Op::DeleteTask => writes::delete_task(call).await,
            Op::CancelTask => writes::cancel_task(call).await,
            Op::ListCells => lists::cells(&call),
            Op::Evacuate => cells::evacuate(call).await,
            Op::Present => cells::present(call).await,
            Op::Leave => cells::leave(&call),
            Op::Report => cells::reports(call).await,
            Op::Records => cells::records(call).await,
            Op::Events => events::events(&call, &self.tools),
            Op::Endpoints => lists::endpoints(&call),
            Op::ExplainProcess => explain::process(&call),
            Op::ExplainLrp => explain::lrp(&call),
            Op::ExplainTask => explain::task(&call),
            Op::ExplainCell => explain::cell(&call),
            Op::LogsOfLrp => logs::answer(&call, LogSource::lrp(&call)?, &self.upstream).await,
            Op::LogsOfTask => logs::answer(&call, LogSource::task(&call), &self.upstream).await,
            Op::ExecInLrp => {
                let source = LogSource::lrp(&call)?;
                exec::answer(call, &source, &self.upstream).await
            }
            Op::ExecInTask => {
                let source = LogSource::task(&call);
                exec::answer(call, &source, &self.upstream).await
            }
            Op::Plan => plan::plan(call, &*self.ids).await,
            Op::Join => certificates::join(call, &self.tools).await,
            Op::Renew => certificates::renew(call, &self.tools).await,
            Op::CreateToken => tokens::create(call, &self.tools).await,
            Op::ListTokens => tokens::list(&call),
            Op::RevokeToken => tokens::revoke(&call).await,
            Op::SetSecret => secrets::set(call, &self.tools).await,
            Op::ListSecrets => secrets::list(&call, &self.tools).await,
            Op::RemoveSecret => secrets::remove(&call, &self.tools).await,
            Op::TakeSecrets => secrets::take(call, &self.tools).await,
            Op::Audit => audit::answer(&call.query, &self.tools).await,
            Op::ListJobs => jobs::list(&call),
            Op::ApplyJob => jobs_apply::apply(call).await,
            Op::GetJob => jobs::one(&call),
            Op::DeleteJob => jobs::remove(call).await,
            Op::PauseJob => jobs::pause(call).await,
            Op::ResumeJob => jobs::resume(call).await,
            Op::TriggerJob => jobs::trigger(call, &*self.ids).await,
            Op::BackfillJob => backfill::backfill(call).await,
            Op::NextOfJob => jobs::next(&call),
            Op::ExplainJob => jobs_explain::job(&call),
            Op::ExplainRun => jobs_explain::run(&call).await,
            Op::ListRuns => runs::list(&call),
            Op::GetRun => runs::one(&call).await,
            Op::CancelRun => runs::cancel(call).await,
            Op::RetryRun => runs::retry(call, &*self.ids).await,
            Op::LogsOfRun => run_logs::logs(&call, &self.upstream).await,
            Op::KnownRuns => runs::known(&call),
            Op::SchedulerStats => runs::stats(&call),
            Op::ListDeliveries => runs::deliveries(&call),
            Op::OpenApi => Ok(answer::value(StatusCode::OK, &openapi::document())),
        }
    }

    async fn page(
        &self,
        request: &Parts,
        who: &Who,
        face: &dyn Face,
    ) -> Result<Answer, Box<Problem>> {
        let path = request.uri.path();
        let query = pairs(request.uri.query().unwrap_or_default());
        let query = query.filter_map(|(name, value)| Some((decoded(name)?, decoded(value)?)));
        let wanted = page::Wanted::at(path, query).ok_or_else(|| not_found(path))?;
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(not_allowed("GET, HEAD"));
        }
        may(who, Kind::Pages, About::Anything)?;
        let desk = face.board().ok_or_else(starting)?;
        let scheduler = face.scheduler();
        let page = wanted.render(&*desk, scheduler.as_deref(), desk.now()).await;
        page.map(|page| session::html(StatusCode::OK, page)).ok_or_else(|| not_found(path))
    }
}

/// Judges a request by its path. Where the path does not tell, what is asked for does later.
fn judge(who: &Who, kind: Kind, params: &Params) -> Result<(), Box<Problem>> {
    let (cell, domain) = (params.get("cell_id"), params.get("domain"));
    if !cell.is_empty() {
        may(who, kind, About::Cell(&CellId::from(cell)))
    } else if !domain.is_empty() {
        may(who, kind, About::Domain(&Domain::from(domain)))
    } else {
        may(who, kind, About::Anything)
    }
}

/// The methods and paths of all routes.
#[cfg(test)]
pub(super) fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES.iter().map(|route| (route.method.name(), route.path))
}

/// The methods and paths of those of which it is noted who asks.
#[cfg(test)]
pub(super) fn noted() -> impl Iterator<Item = (&'static str, &'static str)> {
    let noted = ROUTES.iter().filter(|route| route.does.is_noted());
    noted.map(|route| (route.method.name(), route.path))
}

#[cfg(test)]
pub(super) fn document() -> serde_json::Value {
    openapi::document()
}

/// The seat is held, the board is not loaded yet.
fn starting() -> Box<Problem> {
    let text = "this host leads but has not loaded the board yet";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "starting", text).passing()
}
