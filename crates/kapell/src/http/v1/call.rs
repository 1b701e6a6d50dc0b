use std::sync::Arc;

use hyper::HeaderMap;
use hyper::StatusCode;
use kapell_core::access::{About, Kind, Who, allows};
use kapell_core::board::{Domain, JobId, LrpKey, ProcessGuid, Records, TaskGuid};
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;
use kapell_core::source::Problem as Fault;
use kapell_node::access::Ledger;
use serde::de::DeserializeOwned;

use super::super::access::may;
use super::super::answer::Problem;
use super::super::audit::Note;
use super::super::desk::{Desk, look};
use super::super::query::Query;
use super::super::read::Payload;
use super::super::route::Params;
use super::super::scheduler::Scheduler;
use super::refusal::missing;

/// A request that found its route.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) who: Arc<Who>,
    pub(super) ledger: Option<Arc<Ledger>>,
    pub(super) desk: Arc<dyn Desk>,
    pub(super) scheduler: Option<Arc<dyn Scheduler>>,
    pub(super) params: Params,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) payload: Payload,
    pub(super) now: Timestamp,
    /// By the clock on the wall, for jobs.
    pub(super) wall: Timestamp,
    pub(super) note: Note,
}

impl Call {
    pub(super) fn id<T: for<'a> From<&'a str>>(&self, name: &str) -> T {
        self.params.get(name).into()
    }

    /// A filter, if it was asked for.
    pub(super) fn filter<T: for<'a> From<&'a str>>(&self, name: &str) -> Option<T> {
        self.query.get(name).map(Into::into)
    }

    pub(super) fn lrp(&self) -> Result<LrpKey, Box<Problem>> {
        let index = self.params.get("index");
        let Ok(index) = index.parse() else {
            let text = format!("an instance has a number, not `{index}`");
            return Err(Problem::new(StatusCode::NOT_FOUND, "not_found", text));
        };
        Ok(LrpKey { process_guid: self.id("process_guid"), index })
    }

    /// Whether what is in a domain is there for whoever asks.
    pub(super) fn sees(&self, domain: &Domain) -> bool {
        sees(&self.who, domain)
    }

    pub(super) fn sees_process(&self, guid: &ProcessGuid) -> bool {
        sees_by(&self.who, || domain_of_process(&*self.desk, guid))
    }

    pub(super) fn sees_task(&self, guid: &TaskGuid) -> bool {
        sees_by(&self.who, || domain_of_task(&*self.desk, guid))
    }

    /// The job that is asked for, if it is there for whoever asks.
    pub(super) fn job_seen(&self) -> Result<JobId, Box<Problem>> {
        job_seen(&self.who, &*self.desk, self.params.get("job_id"))
    }

    /// The run that is asked for, if it is there for whoever asks.
    pub(super) fn run_seen(&self) -> Result<RunId, Box<Problem>> {
        run_seen(&self.who, &*self.desk, self.params.get("run_id"))
    }

    /// The body, and all else.
    pub(super) async fn json<T: DeserializeOwned>(self) -> Result<(T, Asked), Box<Problem>> {
        let Self { who, ledger, desk, params, query, headers, payload, note, .. } = self;
        let body = payload.json(&headers).await?;
        Ok((body, Asked { who, ledger, desk, params, query, note }))
    }

    /// The same, with all that is wrong with a body that does not fit.
    pub(super) async fn json_judged<T: DeserializeOwned>(
        self,
        faults: fn(&[u8]) -> Vec<Fault>,
    ) -> Result<(T, Asked), Box<Problem>> {
        let Self { who, ledger, desk, params, query, headers, payload, note, .. } = self;
        let body = payload.json_judged(&headers, faults).await?;
        Ok((body, Asked { who, ledger, desk, params, query, note }))
    }

    /// The same, with what takes it in many forms.
    pub(super) async fn json_read<T>(
        self,
        read: fn(&[u8]) -> Result<T, Vec<Fault>>,
    ) -> Result<(T, Asked), Box<Problem>> {
        let Self { who, ledger, desk, params, query, headers, payload, note, .. } = self;
        let body = payload.json_read(&headers, read).await?;
        Ok((body, Asked { who, ledger, desk, params, query, note }))
    }

    /// What a browser sends of a form, and all else.
    pub(super) async fn form(self) -> Result<(Vec<(String, String)>, Asked), Box<Problem>> {
        let Self { who, ledger, desk, params, query, payload, note, .. } = self;
        let form = payload.form().await?;
        Ok((form, Asked { who, ledger, desk, params, query, note }))
    }

    /// All but the body, which nobody reads.
    pub(super) fn without_body(self) -> Asked {
        let Self { who, ledger, desk, params, query, note, .. } = self;
        Asked { who, ledger, desk, params, query, note }
    }

    pub(super) async fn json_if_any<T: DeserializeOwned>(
        self,
    ) -> Result<(Option<T>, Asked), Box<Problem>> {
        let Self { who, ledger, desk, params, query, headers, payload, note, .. } = self;
        let body = payload.json_if_any(&headers).await?;
        Ok((body, Asked { who, ledger, desk, params, query, note }))
    }
}

/// A [`Call`] whose body was read.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) who: Arc<Who>,
    pub(super) ledger: Option<Arc<Ledger>>,
    pub(super) desk: Arc<dyn Desk>,
    pub(super) params: Params,
    pub(super) query: Query,
    pub(super) note: Note,
}

impl Asked {
    pub(super) fn id<T: for<'a> From<&'a str>>(&self, name: &str) -> T {
        self.params.get(name).into()
    }

    /// Refuses those who have nothing to do with a domain that they name.
    pub(super) fn may(&self, kind: Kind, domain: &Domain) -> Result<(), Box<Problem>> {
        may(&self.who, kind, About::Domain(domain))
    }

    pub(super) fn sees_process(&self, guid: &ProcessGuid) -> bool {
        sees_by(&self.who, || domain_of_process(&*self.desk, guid))
    }
}

pub(super) fn job_seen(who: &Who, desk: &dyn Desk, name: &str) -> Result<JobId, Box<Problem>> {
    let job_id = JobId::from(name);
    let domain = domain_of_job(desk, &job_id).filter(|domain| sees(who, domain));
    domain.map(|_| job_id).ok_or_else(|| missing("job", name))
}

pub(super) fn run_seen(who: &Who, desk: &dyn Desk, name: &str) -> Result<RunId, Box<Problem>> {
    let find = |run_id: RunId| {
        let of = |records: &Records| records.runs.get(&run_id).map(|run| run.domain.clone());
        let domain = look(desk, run_id.job(), of).flatten();
        domain.filter(|domain| sees(who, domain)).map(|_| run_id)
    };
    RunId::parse(name).and_then(find).ok_or_else(|| missing("run", name))
}

/// Says that something will be done to a job or to a run of it.
pub(super) async fn intend_job(
    note: &Note,
    desk: &dyn Desk,
    job_id: &JobId,
) -> Result<(), Box<Problem>> {
    let domain = domain_of_job(desk, job_id);
    note.about("domain", domain.as_ref().map_or("", Domain::as_str));
    note.intend().await
}

pub(super) fn domain_of_job(desk: &dyn Desk, job_id: &JobId) -> Option<Domain> {
    let of = |records: &Records| records.jobs.get(job_id).map(|job| job.domain.clone());
    look(desk, job_id.as_str(), of).flatten()
}

pub(super) fn sees(who: &Who, domain: &Domain) -> bool {
    allows(who, Kind::Read, About::Domain(domain)).is_ok()
}

/// Who has all domains sees also what is in none any more.
fn sees_by(who: &Who, domain: impl FnOnce() -> Option<Domain>) -> bool {
    who.domains.is_all() || domain().is_some_and(|domain| sees(who, &domain))
}

/// Says that something will be done to a process.
pub(super) async fn intend_process(
    note: &Note,
    desk: &dyn Desk,
    guid: &ProcessGuid,
) -> Result<(), Box<Problem>> {
    let domain = domain_of_process(desk, guid);
    note.about("domain", domain.as_ref().map_or("", Domain::as_str));
    note.intend().await
}

/// Says that something will be done to a task.
pub(super) async fn intend_task(
    note: &Note,
    desk: &dyn Desk,
    guid: &TaskGuid,
) -> Result<(), Box<Problem>> {
    let domain = domain_of_task(desk, guid);
    note.about("domain", domain.as_ref().map_or("", Domain::as_str));
    note.intend().await
}

/// The domain of a process, or of what is left of it.
pub(super) fn domain_of_process(desk: &dyn Desk, guid: &ProcessGuid) -> Option<Domain> {
    let of = |records: &Records| {
        let both = records.instances_of(guid).chain(records.evacuating_of(guid));
        let desired = records.known_desired(guid).map(|lrp| lrp.domain.clone());
        desired.or_else(|| both.map(|lrp| lrp.domain.clone()).next())
    };
    look(desk, guid.as_str(), of).flatten()
}

fn domain_of_task(desk: &dyn Desk, guid: &TaskGuid) -> Option<Domain> {
    let of = |records: &Records| records.tasks.get(guid).map(|it| it.definition.domain.clone());
    look(desk, guid.as_str(), of).flatten()
}
