//! Version 1. What is desired and what is there are the types of `kapell_core::board`.

mod jobs;

use std::collections::BTreeSet;
use std::fmt;

use kapell_core::access::{Purpose, TokenId};
use kapell_core::audit::AuditRecord;
use kapell_core::board::explain::Input;
use kapell_core::board::request::{Refusal, Report};
use kapell_core::board::{
    ActualLrp, CellId, CellPresence, CellState, DesiredLrp, Domain, EnvVar, Event, InstanceGuid,
    LrpKey, NetInfo, SecretName, Task, TaskDefinition, TaskGuid,
};
use kapell_core::exec::Size;
use kapell_core::seams::Timestamp;
use kapell_core::seat::Epoch;
use kapell_core::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use jobs::{
    BackfillWanted, Backfilled, BackfilledRun, CancelWanted, JobApplied, JobView, KnownRun,
    NextMoment, NextMoments, PauseWanted, Percentiles, RunBrief, RunLive, RunStats, RunTimer,
    RunView, SchedulerStats, TriggerWanted, WebhookDelivery, When,
};

/// The epoch of the leader, in every request of a host to a cell.
pub const EPOCH: &str = "kapell-epoch";
/// The id of the last event that a list has seen, for resuming `/v1/events` without a gap.
pub const EVENT_ID: &str = "kapell-event-id";

/// How every refusal reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    pub code: String,
    pub message: String,
    #[serde(default)]
    pub details: Value,
}

/// `PUT /v1/domains/{domain}`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainUpdate {
    /// How long the domain is fresh; without it, and with 0, for ever. Only one of the two may be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// The same in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// A time to live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a duration is a text as `2m` or a whole number of seconds")]
pub enum Ttl {
    Seconds(u64),
    /// As `90s` or `2m`.
    Text(String),
}

/// An item of `GET /v1/domains`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainView {
    pub domain: String,
    pub fresh: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// `POST /v1/cells/{cell_id}/join` and `POST /v1/cells/{cell_id}/certificate`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateWanted {
    /// A certificate signing request in PEM. Of it, only the public key counts.
    pub csr: String,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCertificate {
    /// In PEM.
    pub certificate: String,
    /// Of the cluster's authority, in PEM.
    pub ca: String,
    /// When the next one is to be asked for.
    pub renew_in_ms: u64,
}

/// `PUT /v1/secrets/{domain}/{secret}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretValue {
    pub value: Secret,
}

/// An item of `GET /v1/secrets`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretView {
    pub domain: Domain,
    pub name: SecretName,
    /// Grows with every change.
    pub version: u64,
    pub changed_at: Timestamp,
}

/// An item of the answer to `POST /v1/cells/{cell_id}/secrets`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretGiven {
    pub name: SecretName,
    pub value: Secret,
}

/// `POST /v1/tokens`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenWanted {
    pub role: Purpose,
    /// Without it, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<BTreeSet<Domain>>,
    /// What people call whoever bears it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How long it counts.
    pub ttl_ms: u64,
    /// The only cell that may join by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<CellId>,
}

/// The answer to it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenMade {
    /// A secret. It is not told again.
    pub token: String,
    #[serde(flatten)]
    pub about: TokenView,
}

impl fmt::Debug for TokenMade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenMade").field("about", &self.about).finish_non_exhaustive()
    }
}

/// An item of `GET /v1/tokens`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenView {
    pub id: TokenId,
    pub role: Purpose,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<BTreeSet<Domain>>,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<CellId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// `valid`, `revoked` or `used`.
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The cell that joined by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<CellId>,
}

/// `GET /v1/audit`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditPage {
    /// The oldest first.
    pub records: Vec<AuditRecord>,
    /// What to give as `after` for what follows.
    pub next: String,
    /// There was no more when it was asked for.
    pub is_last: bool,
}

/// An item of `GET /v1/cells`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellView {
    #[serde(flatten)]
    pub presence: CellPresence,
    /// `present`; `evacuating`; `awaited`: known from records, not heard of since this leader began.
    pub state: String,
    /// How long ago it was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_ms_ago: Option<u64>,
    /// Instances and tasks that the board has on it.
    pub lrps: u32,
    pub tasks: u32,
}

/// An item of `GET /v1/endpoints/{process_guid}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub index: u32,
    pub instance_guid: InstanceGuid,
    pub cell_id: String,
    pub evacuating: bool,
    /// Whether it is to be sent work; older hosts do not say.
    #[serde(default = "yes")]
    pub ready: bool,
    #[serde(flatten)]
    pub net: NetInfo,
}

const fn yes() -> bool {
    true
}

/// One event of `GET /v1/events`: its id is that of the stream, `{epoch}-{number}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventView {
    pub id: String,
    /// As [`Event::name`], or `gap`: events between the one asked for and the next are not kept any more; read again what you watch.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
}

/// `GET /v1/explain/lrp/{process_guid}`, `GET /v1/explain/lrp/{process_guid}/{index}`, `GET /v1/explain/task/{task_guid}`, `GET /v1/explain/cell/{cell_id}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    pub subject: String,
    /// One sentence.
    pub summary: String,
    /// The rule that applies, by its name.
    #[serde(default)]
    pub rule: String,
    /// What it follows from, one fact a line.
    pub facts: Vec<String>,
    /// The values that the rule goes by.
    #[serde(default)]
    pub inputs: Vec<Input>,
    /// What would change it, the most likely first.
    #[serde(default)]
    pub remedies: Vec<String>,
    /// When the board tries again by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_at: Option<Timestamp>,
}

/// `POST /v1/plan`, answered with a [`Plan`].
pub use kapell_core::board::plan::{Plan, Wishes};

// Between cells and the board.

/// The answer to `PUT /v1/cells/{cell_id}`, whose body is a [`CellPresence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub epoch: Epoch,
    /// Say so again before this is over.
    pub ttl_ms: u64,
}

/// `POST /v1/cells/{cell_id}/reports`: each is decided and answered on its own, in order.
pub type Reports = Vec<Report>;

/// The answer to one report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportAnswer {
    /// What stands there now, for reports about instances.
    Done(Option<Box<ActualLrp>>),
    Refused(Refusal),
    /// Nothing was decided: ask again.
    Busy,
}

/// `POST /v1/cells/{cell_id}/records`: what the cell has containers for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordsWanted {
    pub lrps: Vec<LrpKey>,
    pub tasks: Vec<TaskGuid>,
}

/// Every record that was asked for or that names the cell. Absent: there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CellRecords {
    pub epoch: Epoch,
    pub instances: Vec<ActualLrp>,
    pub evacuating: Vec<ActualLrp>,
    pub tasks: Vec<Task>,
}

// From the leader to a cell; each bears [`EPOCH`].

/// `POST /v1/cell/work`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Work {
    pub lrps: Vec<LrpWork>,
    pub tasks: Vec<TaskWork>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LrpWork {
    pub index: u32,
    pub desired: DesiredLrp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWork {
    pub definition: TaskDefinition,
    pub instance_guid: InstanceGuid,
}

/// What a cell could not take, and why; all else it has reserved.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkAnswer {
    pub refused_lrps: Vec<(LrpKey, String)>,
    pub refused_tasks: Vec<(TaskGuid, String)>,
}

/// `POST /v1/cell/stop`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub key: LrpKey,
    pub instance_guid: InstanceGuid,
}

/// `POST /v1/cell/cancel`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    pub task_guid: TaskGuid,
    pub instance_guid: InstanceGuid,
    /// Without its time to stop, or without what is left of it.
    #[serde(default)]
    pub at_once: bool,
}

/// What to run beside the processes of a container: the first frame of `POST …/exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecWanted {
    pub path: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Besides the environment of the container's process.
    #[serde(default)]
    pub env: Vec<EnvVar>,
    /// It is to have a terminal that is so large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<Size>,
}

/// How it ended: the last frame of the answer to `POST …/exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecEnd {
    /// What it returned, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Neither: what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// `GET /v1/cell/state`
pub type State = CellState;

/// The query of `GET /v1/logs/lrp/{process_guid}/{index}` and `GET /v1/logs/task/{task_guid}`. A cell answers at
/// `/v1/cell/logs/…` likewise, always with frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Go on until the container is gone.
    pub follow: bool,
    /// Begin with so many last lines; without it, with the first that is kept.
    pub tail: Option<u64>,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// What was written, as it was.
    #[default]
    Raw,
    /// `kapell_core::log` frames.
    Frames,
    /// Server-sent events `{"at", "stream", "text"}`.
    Events,
}
