//! Jobs and runs.

use std::collections::BTreeMap;

use kapell_core::board::JobId;
use kapell_core::job::{Job, JobDefinition};
use kapell_core::run::{Doing, Run, RunId, RunMetrics, RunState};
use kapell_core::seams::Timestamp;
use serde::{Deserialize, Serialize};

/// An item of `GET /v1/jobs`, and `GET /v1/jobs/{job_id}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobView {
    #[serde(flatten)]
    pub job: Job,
    pub definition: JobDefinition,
    /// When its next run begins, with jitter; none while it is paused or suspended, or if nothing is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Runs that have not ended.
    pub active_runs: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<RunBrief>,
}

/// What is shown of a run beside its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBrief {
    pub run_id: RunId,
    pub state: RunState,
    pub scheduled_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// It ended well without having done anything.
    #[serde(default)]
    pub skipped: bool,
}

impl RunBrief {
    pub fn of(run: &Run) -> Self {
        Self {
            run_id: run.run_id.clone(),
            state: run.state,
            scheduled_at: run.scheduled_at,
            started_at: run.started_at,
            completed_at: run.completed_at,
            reason: run.reason.clone(),
            skipped: run.skipped,
        }
    }
}

/// The answer to `POST /v1/jobs`, whose body is a [`JobDefinition`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobApplied {
    #[serde(flatten)]
    pub job: JobView,
    /// The names of the fields that changed; none if it was made or is the same.
    #[serde(default)]
    pub changed: Vec<String>,
}

/// `POST /v1/jobs/{job_id}/pause`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseWanted {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// `POST /v1/jobs/{job_id}/trigger`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerWanted {
    /// Those that are not given have their defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// `POST /v1/jobs/{job_id}/backfill`: the moments from `from` on and before `to`. A moment that has a run by a backfill of
/// the same parameters and key gets no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillWanted {
    pub from: When,
    pub to: When,
    /// Say which runs these would be, and make none.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Any text. Another one than before makes all runs anew.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// A time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a time is a number of milliseconds since 1970, or a text as `2026-11-16 02:30` in the time zone of the job"
)]
pub enum When {
    At(Timestamp),
    /// As [`kapell_core::job::when::read`] takes it.
    Text(String),
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfilled {
    pub timezone: String,
    /// The oldest moment first.
    pub runs: Vec<BackfilledRun>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfilledRun {
    pub run_id: RunId,
    pub scheduled_at: Timestamp,
    /// It was there already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub there: bool,
}

/// `GET /v1/jobs/{job_id}/next`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextMoments {
    pub timezone: String,
    /// What keeps these moments from becoming runs: a pause, a suspension, or an action that passes over the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    pub moments: Vec<NextMoment>,
}

/// One moment of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextMoment {
    pub at: Timestamp,
    /// With jitter.
    pub due_at: Timestamp,
    /// The calendar that excludes it: nothing runs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded: Option<String>,
    /// What a change of the clock does to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_change: Option<String>,
}

/// An item of `GET /v1/runs`, and `GET /v1/runs/{run_id}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    #[serde(flatten)]
    pub run: Run,
    pub job_id: JobId,
    /// Of its job.
    pub timezone: String,
    /// What its leader knows of a run under way beside what is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<RunLive>,
}

/// How a run under way stands. Its state and its reason are those of the run itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLive {
    /// When it came into its state.
    pub since: Timestamp,
    /// The constraints that are being looked at, or the action that is being taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Doing>,
    /// How often it gave a sign of life; not told in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeats: Option<u32>,
    /// What it waits for by the clock; not told in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<RunTimer>,
}

/// Something that happens to a run at a time, unless something else does before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimer {
    /// `due`, `starting_deadline`, `start_timeout`, `max_allowed_run_time` or `retry`.
    pub what: String,
    pub at: Timestamp,
}

/// `POST /v1/runs/{run_id}/cancel`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelWanted {
    /// SIGKILL without SIGTERM before it.
    #[serde(default)]
    pub at_once: bool,
}

/// `GET /v1/scheduler/stats`: since this host leads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SchedulerStats {
    /// Runs that have not ended, by the names of their states.
    pub active: BTreeMap<String, u64>,
    pub all: RunStats,
    pub jobs: BTreeMap<JobId, RunStats>,
    /// How long after their time runs began.
    pub lateness: Percentiles,
}

/// What runs came to and took.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunStats {
    /// Without those that were skipped.
    pub completed: u64,
    #[serde(default)]
    pub skipped: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub orphaned: u64,
    /// Attempts after the first.
    #[serde(default)]
    pub retries: u64,
    #[serde(default)]
    pub kubernetes_api_calls: u64,
    /// Of the runs that came so far, by phase: `pre_run`, `constraint_check`, `pod_start`, `execution`, `termination`, `retry_wait`, `total`.
    pub phases: BTreeMap<String, Percentiles>,
    /// Of the run that ended last.
    pub last: RunMetrics,
}

/// Half of all are not above the first, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
}

/// An item of `GET /v1/webhooks/deliveries`: a message and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookDelivery {
    /// As the receiver knows it.
    pub webhook_id: String,
    pub job_id: JobId,
    pub run_id: RunId,
    /// Of which constraint and action it is.
    pub what: String,
    /// Scheme, host and port of the receiver.
    pub place: String,
    pub asked_at: Timestamp,
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
    /// Of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `waiting`, `delivered`, `given_up` or `withdrawn`.
    pub state: String,
    /// Why it was not taken, the last time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// An item of `GET /v1/hosts/known-runs`: a run that there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRun {
    pub run_id: RunId,
    /// It has not ended.
    pub active: bool,
}
