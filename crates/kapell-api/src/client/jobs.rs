//! What people and programs ask about jobs and runs.

use kapell_core::job::JobDefinition;
use kapell_core::seams::Timestamp;

use super::call::Call;
use super::routes::{Listed, path, query};
use super::{Client, Error, Logs};
use crate::v1::{
    BackfillWanted, Backfilled, CancelWanted, Explanation, JobApplied, JobView, LogQuery,
    NextMoments, PauseWanted, RunView, TriggerWanted, WebhookDelivery,
};

/// Which runs to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter<'a> {
    pub job: Option<&'a str>,
    pub state: Option<&'a str>,
    /// Only those that have not ended, or only those that have.
    pub active: Option<bool>,
    pub domain: Option<&'a str>,
    pub limit: Option<u32>,
    /// Only those of moments before this one.
    pub before: Option<Timestamp>,
}

impl Client {
    pub async fn jobs(
        &self,
        domain: Option<&str>,
        tag: Option<&str>,
    ) -> Result<Listed<JobView>, Error> {
        self.list(&format!("/v1/jobs{}", query(&[("domain", domain), ("tag", tag)]))).await
    }

    pub async fn job(&self, job_id: &str) -> Result<JobView, Error> {
        self.ask(Call::get(path(&["jobs", job_id]))).await
    }

    /// The same again changes nothing, so it may be sent twice.
    pub async fn apply_job(&self, definition: &JobDefinition) -> Result<JobApplied, Error> {
        self.ask(Call::post("/v1/jobs").json(definition).repeatable(true)).await
    }

    /// Whether a host would take it. Nothing is changed.
    pub async fn check_job(&self, definition: &JobDefinition) -> Result<(), Error> {
        let call = Call::post("/v1/jobs?dry_run=true").json(definition).repeatable(true);
        self.send(&call).await.map(drop)
    }

    pub async fn delete_job(&self, job_id: &str, cancel_runs: bool) -> Result<(), Error> {
        let query = query(&[("cancel_runs", cancel_runs.then_some("true"))]);
        self.send(&Call::delete(path(&["jobs", job_id]) + &query)).await.map(drop)
    }

    pub async fn pause_job(&self, job_id: &str, note: &str) -> Result<JobView, Error> {
        let wanted = PauseWanted { note: note.to_owned() };
        self.ask(Call::post(path(&["jobs", job_id, "pause"])).json(&wanted).repeatable(true)).await
    }

    pub async fn resume_job(&self, job_id: &str) -> Result<JobView, Error> {
        self.ask(Call::post(path(&["jobs", job_id, "resume"])).repeatable(true)).await
    }

    /// Has a job run once more, now.
    pub async fn trigger_job(
        &self,
        job_id: &str,
        wanted: &TriggerWanted,
    ) -> Result<RunView, Error> {
        self.ask(Call::post(path(&["jobs", job_id, "trigger"])).json(wanted)).await
    }

    pub async fn backfill_job(
        &self,
        job_id: &str,
        wanted: &BackfillWanted,
    ) -> Result<Backfilled, Error> {
        let call = Call::post(path(&["jobs", job_id, "backfill"])).json(wanted);
        // Asked again it makes nothing twice.
        self.ask(call.repeatable(true)).await
    }

    pub async fn next_moments(&self, job_id: &str, count: u32) -> Result<NextMoments, Error> {
        self.ask(Call::get(path(&["jobs", job_id, "next"]) + &format!("?n={count}"))).await
    }

    /// Why a job did or did not run, now or at a time.
    pub async fn explain_job(&self, job_id: &str, at: Option<&str>) -> Result<Explanation, Error> {
        self.ask(Call::get(path(&["explain", "job", job_id]) + &query(&[("at", at)]))).await
    }

    pub async fn explain_run(&self, run_id: &str) -> Result<Explanation, Error> {
        self.ask(Call::get(path(&["explain", "run", run_id]))).await
    }

    /// The newest first.
    pub async fn runs(&self, filter: RunFilter<'_>) -> Result<Listed<RunView>, Error> {
        let RunFilter { job, state, active, domain, limit, before } = filter;
        let active = active.map(|active| active.to_string());
        let (limit, before) = (limit.map(|it| it.to_string()), before.map(|it| it.0.to_string()));
        let query = query(&[
            ("job", job),
            ("state", state),
            ("active", active.as_deref()),
            ("domain", domain),
            ("limit", limit.as_deref()),
            ("before", before.as_deref()),
        ]);
        self.list(&format!("/v1/runs{query}")).await
    }

    pub async fn run(&self, run_id: &str) -> Result<RunView, Error> {
        self.ask(Call::get(path(&["runs", run_id]))).await
    }

    pub async fn cancel_run(&self, run_id: &str, at_once: bool) -> Result<RunView, Error> {
        let wanted = CancelWanted { at_once };
        let call = Call::post(path(&["runs", run_id, "cancel"])).json(&wanted);
        self.ask(call.repeatable(true)).await
    }

    /// Has an ended run done once more, as a new run.
    pub async fn retry_run(&self, run_id: &str) -> Result<RunView, Error> {
        self.ask(Call::post(path(&["runs", run_id, "retry"]))).await
    }

    /// The messages that jobs sent, the newest first: all, or those of a job or of a run.
    pub async fn deliveries(
        &self,
        job: Option<&str>,
        run: Option<&str>,
    ) -> Result<Listed<WebhookDelivery>, Error> {
        let query = query(&[("job", job), ("run", run)]);
        self.list(&format!("/v1/webhooks/deliveries{query}")).await
    }

    /// What an attempt of a run wrote; without one, its last.
    pub async fn run_logs(
        &self,
        run_id: &str,
        attempt: Option<u32>,
        query: LogQuery,
    ) -> Result<Logs, Error> {
        let attempt = attempt.map(|attempt| format!("attempt={attempt}"));
        self.logs_with(&path(&["runs", run_id, "logs"]), attempt.as_deref(), query).await
    }
}
