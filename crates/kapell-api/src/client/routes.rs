//! What people and programs ask of hosts.

use std::time::Duration;

use kapell_core::board::{ActualLrp, CellId, DesiredLrp, DesiredUpdate, Task, TaskDefinition};
use kapell_core::seams::Timestamp;
use kapell_core::seat::Epoch;
use kapell_core::secret::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::{Answer, Call};
use super::streams::Source;
use super::{Client, Error, Events, Logs};
use crate::v1::{
    AuditPage, CellView, DomainUpdate, DomainView, EPOCH, EVENT_ID, Endpoint, Explanation,
    LogQuery, Plan, SecretValue, SecretView, TokenMade, TokenView, TokenWanted, Wishes,
};
use crate::v1::{CellCertificate, CertificateWanted};

/// What stands there, and the last event that it includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    pub items: Vec<T>,
    /// For [`Client::events`], to miss nothing that comes after.
    pub event_id: Option<String>,
}

/// Which instances to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct ActualFilter<'a> {
    pub process_guid: Option<&'a str>,
    pub cell_id: Option<&'a str>,
    pub domain: Option<&'a str>,
    /// Evacuating twins too, beside the instances that replace them.
    pub all: bool,
}

impl Client {
    pub async fn domains(&self) -> Result<Listed<DomainView>, Error> {
        self.list("/v1/domains").await
    }

    /// Says that all that is desired in a domain is up to date, for so long or for ever.
    pub async fn set_domain(&self, domain: &str, ttl: Option<Duration>) -> Result<(), Error> {
        let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let call = Call::put(path(&["domains", domain])).json(&DomainUpdate { ttl: None, ttl_ms });
        self.send(&call).await.map(drop)
    }

    pub async fn desired_lrps(&self) -> Result<Listed<DesiredLrp>, Error> {
        self.list("/v1/desired-lrps").await
    }

    pub async fn desired_lrp(&self, process_guid: &str) -> Result<DesiredLrp, Error> {
        self.ask(Call::get(path(&["desired-lrps", process_guid]))).await
    }

    /// The same again changes nothing, so it may be sent twice.
    pub async fn desire(&self, lrp: &DesiredLrp) -> Result<DesiredLrp, Error> {
        self.ask(Call::post("/v1/desired-lrps").json(lrp).repeatable(true)).await
    }

    pub async fn update_desired(
        &self,
        process_guid: &str,
        update: &DesiredUpdate,
    ) -> Result<DesiredLrp, Error> {
        self.ask(Call::patch(path(&["desired-lrps", process_guid])).json(update)).await
    }

    pub async fn remove_desired(&self, process_guid: &str) -> Result<(), Error> {
        self.send(&Call::delete(path(&["desired-lrps", process_guid]))).await.map(drop)
    }

    pub async fn actual_lrps(&self, filter: ActualFilter<'_>) -> Result<Listed<ActualLrp>, Error> {
        let ActualFilter { process_guid, cell_id, domain, all } = filter;
        let all = all.then_some("true");
        let filters = [
            ("process_guid", process_guid),
            ("cell_id", cell_id),
            ("domain", domain),
            ("all", all),
        ];
        let query = query(&filters);
        self.list(&format!("/v1/actual-lrps{query}")).await
    }

    pub async fn endpoints(&self, process_guid: &str) -> Result<Listed<Endpoint>, Error> {
        self.list(&path(&["endpoints", process_guid])).await
    }

    pub async fn tasks(&self) -> Result<Listed<Task>, Error> {
        self.list("/v1/tasks").await
    }

    pub async fn task(&self, task_guid: &str) -> Result<Task, Error> {
        self.ask(Call::get(path(&["tasks", task_guid]))).await
    }

    /// With a guid of its own the same task is made once, however often this is sent.
    pub async fn create_task(&self, definition: &TaskDefinition) -> Result<Task, Error> {
        let is_named = !definition.task_guid.as_str().is_empty();
        self.ask(Call::post("/v1/tasks").json(definition).repeatable(is_named)).await
    }

    pub async fn cancel_task(&self, task_guid: &str) -> Result<(), Error> {
        self.send(&Call::post(path(&["tasks", task_guid, "cancel"]))).await.map(drop)
    }

    pub async fn delete_task(&self, task_guid: &str) -> Result<(), Error> {
        self.send(&Call::delete(path(&["tasks", task_guid]))).await.map(drop)
    }

    pub async fn cells(&self) -> Result<Listed<CellView>, Error> {
        self.list("/v1/cells").await
    }

    pub async fn evacuate_cell(&self, cell_id: &str) -> Result<(), Error> {
        self.send(&Call::post(path(&["cells", cell_id, "evacuate"]))).await.map(drop)
    }

    /// Gets a cell its first certificate.
    pub async fn join(&self, cell_id: &CellId, csr: &str) -> Result<CellCertificate, Error> {
        let wanted = CertificateWanted { csr: csr.to_owned() };
        self.ask(Call::post(path(&["cells", cell_id.as_str(), "join"])).json(&wanted)).await
    }

    /// Gets a cell its next certificate.
    pub async fn renew(&self, cell_id: &CellId, csr: &str) -> Result<CellCertificate, Error> {
        let wanted = CertificateWanted { csr: csr.to_owned() };
        let call = Call::post(path(&["cells", cell_id.as_str(), "certificate"]));
        self.ask(call.json(&wanted).repeatable(true)).await
    }

    /// Makes a token, which is shown in this answer only.
    pub async fn create_token(&self, wanted: &TokenWanted) -> Result<TokenMade, Error> {
        self.ask(Call::post("/v1/tokens").json(wanted)).await
    }

    pub async fn tokens(&self) -> Result<Vec<TokenView>, Error> {
        self.ask(Call::get("/v1/tokens")).await
    }

    /// A token that was revoked stays so, however often this is sent.
    pub async fn revoke_token(&self, id: &str) -> Result<(), Error> {
        self.send(&Call::delete(path(&["tokens", id])).repeatable(true)).await.map(drop)
    }

    /// Sets a secret, whatever it was before; so it may be sent twice.
    pub async fn set_secret(
        &self,
        domain: &str,
        name: &str,
        value: &Secret,
    ) -> Result<SecretView, Error> {
        let body = SecretValue { value: value.clone() };
        self.ask(Call::put(path(&["secrets", domain, name])).json(&body).repeatable(true)).await
    }

    pub async fn secrets(&self, domain: Option<&str>) -> Result<Vec<SecretView>, Error> {
        let query = query(&[("domain", domain)]);
        self.ask(Call::get(format!("/v1/secrets{query}"))).await
    }

    pub async fn remove_secret(&self, domain: &str, name: &str) -> Result<(), Error> {
        self.send(&Call::delete(path(&["secrets", domain, name]))).await.map(drop)
    }

    /// Who changed what, as the host that leads noted it: what follows `after`, not older than `since`.
    pub async fn audit(&self, since: Timestamp, after: Option<&str>) -> Result<AuditPage, Error> {
        let after = after.map(|after| format!("&after={}", escape(after))).unwrap_or_default();
        self.ask(Call::get(format!("/v1/audit?since={}{after}", since.0))).await
    }

    pub async fn openapi(&self) -> Result<Value, Error> {
        self.ask(Call::get("/v1/openapi.json")).await
    }

    /// What applying this would come to. Nothing changes, so it may be sent twice.
    pub async fn plan(&self, wishes: &Wishes) -> Result<Plan, Error> {
        self.ask(Call::post("/v1/plan").json(wishes).repeatable(true)).await
    }

    pub async fn explain_process(&self, process_guid: &str) -> Result<Explanation, Error> {
        self.ask(Call::get(path(&["explain", "lrp", process_guid]))).await
    }

    pub async fn explain_lrp(&self, process_guid: &str, index: u32) -> Result<Explanation, Error> {
        let path = path(&["explain", "lrp", process_guid, &index.to_string()]);
        self.ask(Call::get(path)).await
    }

    pub async fn explain_task(&self, task_guid: &str) -> Result<Explanation, Error> {
        self.ask(Call::get(path(&["explain", "task", task_guid]))).await
    }

    pub async fn explain_cell(&self, cell_id: &str) -> Result<Explanation, Error> {
        self.ask(Call::get(path(&["explain", "cell", cell_id]))).await
    }

    /// Everything that happens after an event, or from now on.
    pub async fn events(&self, after: Option<&str>) -> Result<Events, Error> {
        let mut call = Call::get("/v1/events").streaming().header("accept", "text/event-stream");
        if let Some(after) = after {
            call = call.header("last-event-id", after);
        }
        Ok(Events::new(self.stream(&call).await?))
    }

    pub async fn lrp_logs(
        &self,
        process_guid: &str,
        index: u32,
        query: LogQuery,
    ) -> Result<Logs, Error> {
        self.logs(&path(&["logs", "lrp", process_guid, &index.to_string()]), query, None).await
    }

    pub async fn task_logs(&self, task_guid: &str, query: LogQuery) -> Result<Logs, Error> {
        self.logs(&path(&["logs", "task", task_guid]), query, None).await
    }

    /// Whatever format is asked for, frames are what comes.
    pub(super) async fn logs(
        &self,
        path: &str,
        query: LogQuery,
        epoch: Option<Epoch>,
    ) -> Result<Logs, Error> {
        let call = match epoch {
            // A cell knows no other format.
            Some(epoch) => {
                Call::get(format!("{path}?{}", show(query))).header(EPOCH, &epoch.0.to_string())
            }
            None => return self.logs_with(path, None, query).await,
        };
        let call = call.streaming();
        Ok(Logs::new(self.stream(&call).await?))
    }

    /// The same of a host, with more in the query.
    pub(super) async fn logs_with(
        &self,
        path: &str,
        more: Option<&str>,
        query: LogQuery,
    ) -> Result<Logs, Error> {
        let more = more.map(|more| format!("{more}&")).unwrap_or_default();
        let call = Call::get(format!("{path}?{more}format=frames&{}", show(query))).streaming();
        Ok(Logs::new(self.stream(&call).await?))
    }

    pub(super) async fn stream(&self, call: &Call) -> Result<Source, Error> {
        let answer = self.send(call).await?;
        let url = self.urls();
        match answer.stream {
            Some(download) => Ok(Source { url, call: call.to_string(), download }),
            None => Err(Error::Protocol { url, what: "the answer is no stream".to_owned() }),
        }
    }

    pub(super) async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        self.send(&call).await?.json(&self.urls())
    }

    pub(super) async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Listed<T>, Error> {
        let answer: Answer = self.send(&Call::get(path)).await?;
        let event_id = answer.header(EVENT_ID).map(str::to_owned);
        Ok(Listed { items: answer.json(&self.urls())?, event_id })
    }
}

fn show(query: LogQuery) -> String {
    let mut text = format!("follow={}", query.follow);
    if let Some(tail) = query.tail {
        text.push_str(&format!("&tail={tail}"));
    }
    text
}

/// What stands behind a path: the filters that have a value.
pub(super) fn query(filters: &[(&str, Option<&str>)]) -> String {
    let mut query = String::new();
    for (name, value) in filters.iter().filter_map(|(name, it)| Some((name, (*it)?))) {
        let mark = if query.is_empty() { '?' } else { '&' };
        query.push_str(&format!("{mark}{name}={}", escape(value)));
    }
    query
}

/// A path below `/v1`, of names that may be anything.
pub(super) fn path(names: &[&str]) -> String {
    names.iter().fold("/v1".to_owned(), |path, name| format!("{path}/{}", escape(name)))
}

fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
    // A name of dots only would be taken for a directory.
    let dot = |byte: u8| byte == b'.' && !text.bytes().all(|byte| byte == b'.');
    text.bytes()
        .map(|byte| {
            if plain(byte) || dot(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
