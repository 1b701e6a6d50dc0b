//! Every route of the API. The router, its refusals and the OpenAPI document are made from this table.

use kapell_core::access::Kind;

use super::super::route::{Gives, Route, Verb};

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    SetDomain,
    ListDomains,
    Desire,
    ListDesired,
    GetDesired,
    UpdateDesired,
    RemoveDesired,
    ListActual,
    CreateTask,
    ListTasks,
    GetTask,
    DeleteTask,
    CancelTask,
    ListCells,
    Evacuate,
    Present,
    Leave,
    Report,
    Records,
    Events,
    Endpoints,
    ExplainProcess,
    ExplainLrp,
    ExplainTask,
    ExplainCell,
    LogsOfLrp,
    LogsOfTask,
    ExecInLrp,
    ExecInTask,
    Plan,
    OpenApi,
    Join,
    Renew,
    CreateToken,
    ListTokens,
    RevokeToken,
    SetSecret,
    ListSecrets,
    RemoveSecret,
    TakeSecrets,
    Audit,
    ListJobs,
    ApplyJob,
    GetJob,
    DeleteJob,
    PauseJob,
    ResumeJob,
    TriggerJob,
    BackfillJob,
    NextOfJob,
    ExplainJob,
    ExplainRun,
    ListRuns,
    GetRun,
    CancelRun,
    RetryRun,
    LogsOfRun,
    KnownRuns,
    SchedulerStats,
    ListDeliveries,
}

impl Op {
    /// Whether it takes more than others: what a cell says of all its containers, and whole files.
    pub(super) fn is_bulk(self) -> bool {
        matches!(self, Self::Report | Self::Records | Self::Plan)
    }

    /// What it is to those who decide who may.
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::SetDomain
            | Self::Desire
            | Self::UpdateDesired
            | Self::RemoveDesired
            | Self::CreateTask
            | Self::DeleteTask
            | Self::CancelTask
            | Self::ExecInLrp
            | Self::ExecInTask
            | Self::ApplyJob
            | Self::DeleteJob
            | Self::PauseJob
            | Self::ResumeJob
            | Self::TriggerJob
            | Self::BackfillJob
            | Self::CancelRun
            | Self::RetryRun => Kind::Change,
            Self::ListDomains
            | Self::ListDesired
            | Self::GetDesired
            | Self::ListActual
            | Self::ListTasks
            | Self::GetTask
            | Self::Events
            | Self::Endpoints
            | Self::ExplainProcess
            | Self::ExplainLrp
            | Self::ExplainTask
            | Self::LogsOfLrp
            | Self::LogsOfTask
            | Self::ListJobs
            | Self::GetJob
            | Self::NextOfJob
            | Self::ExplainJob
            | Self::ExplainRun
            | Self::ListRuns
            | Self::GetRun
            | Self::LogsOfRun
            | Self::KnownRuns
            | Self::ListDeliveries => Kind::Read,
            Self::SchedulerStats => Kind::Figures,
            Self::ListCells | Self::ExplainCell => Kind::ReadCells,
            Self::Evacuate => Kind::CommandCells,
            Self::Present | Self::Leave | Self::Report | Self::Records => Kind::SpeakForCell,
            Self::Plan => Kind::Plan,
            Self::OpenApi => Kind::Describe,
            Self::Join => Kind::Join,
            Self::Renew => Kind::Renew,
            Self::CreateToken | Self::ListTokens | Self::RevokeToken => Kind::Tokens,
            Self::ListSecrets => Kind::ReadSecrets,
            Self::SetSecret | Self::RemoveSecret => Kind::ChangeSecrets,
            Self::TakeSecrets => Kind::TakeSecrets,
            Self::Audit => Kind::Audit,
        }
    }

    /// Whether it is noted who does it: all that changes something.
    pub(super) fn is_noted(self) -> bool {
        self.kind().is_change() && self != Self::ListTokens
    }
}

const fn route(
    method: Verb,
    path: &'static str,
    does: Op,
    gives: Gives,
    about: &'static str,
) -> Route<Op> {
    Route { method, path, does, query: &[], about, takes: None, gives }
}

const fn with(mut route: Route<Op>, query: &'static [&'static str]) -> Route<Op> {
    route.query = query;
    route
}

const fn taking(mut route: Route<Op>, schema: &'static str) -> Route<Op> {
    route.takes = Some(schema);
    route
}

const LOG: &[&str] = &["follow", "tail", "format"];

#[rustfmt::skip]
pub(super) const ROUTES: &[Route<Op>] = {
    use Gives::{Anything, Events, Log, Made, Many, New, Nothing, One};
    use Verb::{Delete, Get, Patch, Post, Put};
    &[
        with(taking(route(Put, "/v1/domains/{domain}", Op::SetDomain, One("DomainView"), "Says that all that is desired in a domain is up to date"), "DomainUpdate"), &["ttl"]),
        route(Get, "/v1/domains", Op::ListDomains, Many("DomainView"), "Lists the domains and whether they are fresh"),
        taking(route(Post, "/v1/desired-lrps", Op::Desire, Made("DesiredLrp"), "Desires a long-running process"), "DesiredLrp"),
        with(route(Get, "/v1/desired-lrps", Op::ListDesired, Many("DesiredLrp"), "Lists what is desired"), &["domain"]),
        route(Get, "/v1/desired-lrps/{process_guid}", Op::GetDesired, One("DesiredLrp"), "Shows a desired process"),
        taking(route(Patch, "/v1/desired-lrps/{process_guid}", Op::UpdateDesired, One("DesiredLrp"), "Changes what can change without a restart"), "DesiredUpdate"),
        route(Delete, "/v1/desired-lrps/{process_guid}", Op::RemoveDesired, Nothing, "Desires a process no longer; its instances are stopped"),
        with(route(Get, "/v1/actual-lrps", Op::ListActual, Many("ActualLrp"), "Lists instances: one for each index, or with `all` evacuating twins too"), &["process_guid", "cell_id", "domain", "index", "all"]),
        taking(route(Post, "/v1/tasks", Op::CreateTask, Made("Task"), "Desires a task"), "TaskDefinition"),
        with(route(Get, "/v1/tasks", Op::ListTasks, Many("Task"), "Lists tasks"), &["domain", "cell_id", "state"]),
        route(Get, "/v1/tasks/{task_guid}", Op::GetTask, One("Task"), "Shows a task"),
        route(Delete, "/v1/tasks/{task_guid}", Op::DeleteTask, Nothing, "Deletes a completed task"),
        route(Post, "/v1/tasks/{task_guid}/cancel", Op::CancelTask, One("Task"), "Cancels a task that is not completed"),
        route(Get, "/v1/cells", Op::ListCells, Many("CellView"), "Lists cells"),
        route(Post, "/v1/cells/{cell_id}/evacuate", Op::Evacuate, Nothing, "Tells a cell to move its work elsewhere"),
        taking(route(Put, "/v1/cells/{cell_id}", Op::Present, One("Welcome"), "For cells: says that a cell is there"), "CellPresence"),
        route(Delete, "/v1/cells/{cell_id}", Op::Leave, Nothing, "For cells: says that a cell is gone for good"),
        taking(route(Post, "/v1/cells/{cell_id}/reports", Op::Report, Many("ReportAnswer"), "For cells: tells what became of containers; each report is answered on its own"), "Reports"),
        taking(route(Post, "/v1/cells/{cell_id}/records", Op::Records, One("CellRecords"), "For cells: asks what the board knows about containers"), "RecordsWanted"),
        taking(route(Post, "/v1/cells/{cell_id}/join", Op::Join, One("CellCertificate"), "For cells: gets the first certificate, by a token that counts once"), "CertificateWanted"),
        taking(route(Post, "/v1/cells/{cell_id}/certificate", Op::Renew, One("CellCertificate"), "For cells: gets the next certificate, by the one before"), "CertificateWanted"),
        taking(route(Post, "/v1/cells/{cell_id}/secrets", Op::TakeSecrets, Many("SecretGiven"), "For cells: gets the secrets that a container placed there refers to"), "SecretsWanted"),
        with(route(Get, "/v1/events", Op::Events, Events, "Streams what changes; resumes after the id in `Last-Event-ID` or `after`"), &["after"]),
        route(Get, "/v1/endpoints/{process_guid}", Op::Endpoints, Many("Endpoint"), "Lists where running instances listen"),
        taking(route(Post, "/v1/plan", Op::Plan, One("Plan"), "Says what applying something would come to, and changes nothing"), "Wishes"),
        route(Get, "/v1/explain/lrp/{process_guid}", Op::ExplainProcess, One("Explanation"), "Says why the instances of a process are as they are"),
        route(Get, "/v1/explain/lrp/{process_guid}/{index}", Op::ExplainLrp, One("Explanation"), "Says why an instance is as it is"),
        route(Get, "/v1/explain/task/{task_guid}", Op::ExplainTask, One("Explanation"), "Says why a task is as it is"),
        route(Get, "/v1/explain/cell/{cell_id}", Op::ExplainCell, One("Explanation"), "Says why a cell is as it is"),
        with(route(Get, "/v1/logs/lrp/{process_guid}/{index}", Op::LogsOfLrp, Log, "What an instance wrote"), LOG),
        with(route(Get, "/v1/logs/task/{task_guid}", Op::LogsOfTask, Log, "What a task wrote"), LOG),
        route(Post, "/v1/actual-lrps/{process_guid}/{index}/exec", Op::ExecInLrp, Log, "Runs a program in the container of an instance: frames of a kind (1 byte) and a length (4) go both ways"),
        route(Post, "/v1/tasks/{task_guid}/exec", Op::ExecInTask, Log, "Runs a program in the container of a task: frames of a kind (1 byte) and a length (4) go both ways"),
        taking(route(Post, "/v1/tokens", Op::CreateToken, Made("TokenMade"), "Makes a token; it is shown this once"), "TokenWanted"),
        route(Get, "/v1/tokens", Op::ListTokens, Many("TokenView"), "Lists the tokens that have not expired"),
        route(Delete, "/v1/tokens/{token_id}", Op::RevokeToken, Nothing, "Revokes a token"),
        taking(route(Put, "/v1/secrets/{domain}/{secret}", Op::SetSecret, One("SecretView"), "Sets a secret; nobody is told it again but the work that refers to it"), "SecretValue"),
        with(route(Get, "/v1/secrets", Op::ListSecrets, Many("SecretView"), "Lists which secrets there are"), &["domain"]),
        route(Delete, "/v1/secrets/{domain}/{secret}", Op::RemoveSecret, Nothing, "Removes a secret"),
        with(route(Get, "/v1/audit", Op::Audit, One("AuditPage"), "Shows who changed what while this host led"), &["since", "after", "limit"]),
        with(route(Get, "/v1/jobs", Op::ListJobs, Many("JobView"), "Lists jobs, with their next and last runs"), &["domain", "tag"]),
        with(taking(route(Post, "/v1/jobs", Op::ApplyJob, Made("JobApplied"), "Makes a job, or changes it to what is sent"), "JobDefinition"), &["dry_run"]),
        route(Get, "/v1/jobs/{job_id}", Op::GetJob, One("JobView"), "Shows a job"),
        with(route(Delete, "/v1/jobs/{job_id}", Op::DeleteJob, Nothing, "Schedules nothing more; the job is gone once its last run has ended"), &["cancel_runs"]),
        taking(route(Post, "/v1/jobs/{job_id}/pause", Op::PauseJob, One("JobView"), "Schedules nothing until it is resumed"), "PauseWanted"),
        route(Post, "/v1/jobs/{job_id}/resume", Op::ResumeJob, One("JobView"), "Goes on with a job that is paused"),
        taking(route(Post, "/v1/jobs/{job_id}/trigger", Op::TriggerJob, New("RunView"), "Has a job run once, now"), "TriggerWanted"),
        taking(route(Post, "/v1/jobs/{job_id}/backfill", Op::BackfillJob, One("Backfilled"), "Has a job run for moments that are past"), "BackfillWanted"),
        with(route(Get, "/v1/jobs/{job_id}/next", Op::NextOfJob, One("NextMoments"), "Tells when a job is due next"), &["n"]),
        with(route(Get, "/v1/explain/job/{job_id}", Op::ExplainJob, One("Explanation"), "Says why a job did or did not run"), &["at"]),
        route(Get, "/v1/explain/run/{run_id}", Op::ExplainRun, One("Explanation"), "Says why a run is as it is"),
        with(route(Get, "/v1/runs", Op::ListRuns, Many("RunView"), "Lists runs, the latest due first"), &["job", "state", "active", "domain", "limit", "before"]),
        route(Get, "/v1/runs/{run_id}", Op::GetRun, One("RunView"), "Shows a run, with every decision about it"),
        taking(route(Post, "/v1/runs/{run_id}/cancel", Op::CancelRun, One("RunView"), "Ends a run, whatever it does"), "CancelWanted"),
        route(Post, "/v1/runs/{run_id}/retry", Op::RetryRun, New("RunView"), "Has an ended run done once more, as a new run"),
        with(route(Get, "/v1/runs/{run_id}/logs", Op::LogsOfRun, Log, "What an attempt of a run wrote; without `attempt`, its last"), &["attempt", "follow", "tail", "format"]),
        with(route(Get, "/v1/hosts/known-runs", Op::KnownRuns, Many("KnownRun"), "For hosts that clear up: tells which of these runs, with commas between them, there are"), &["run_ids"]),
        route(Get, "/v1/scheduler/stats", Op::SchedulerStats, One("SchedulerStats"), "Tells what runs came to and took since this host leads"),
        with(route(Get, "/v1/webhooks/deliveries", Op::ListDeliveries, Many("WebhookDelivery"), "Lists the messages that jobs sent, the newest first"), &["job", "run"]),
        route(Get, "/v1/openapi.json", Op::OpenApi, Anything, "This API in OpenAPI 3.1"),
    ]
};
