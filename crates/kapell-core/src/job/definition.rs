//! What somebody wants to be run, and when.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::length::Length;
use super::task::TaskPayload;
use crate::board::{Domain, GroupName, JobId, Variable};
use crate::kubernetes::KubernetesPayload;

/// A job as it is applied. What is not said has the value that `default` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobDefinition {
    pub job_id: JobId,
    /// For people; without it, the id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default = "jobs")]
    pub domain: Domain,
    /// Lines of cron, `@hourly` and the like, `@every 5m`. None: it runs only when it is triggered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<String>,
    #[serde(default = "utc")]
    pub timezone: String,
    /// Every moment is put off by less than this, by as much for the same moment of the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Length>,
    /// Later than this after its moment a run does not begin any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline: Option<Length>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// How many of its runs there may be at once; with `overlap: allow`, as many as like.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub max_concurrent_runs: u32,
    /// Jobs of a group take turns, whatever each allows itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub catch_up: CatchUp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Calendar>,
    /// Nothing is scheduled while this is so; triggers count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suspend: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suspend_note: String,
    /// After so many failed runs in a row it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_after_failures: Option<u32>,
    /// What a run does, exactly one of the four: a program on the host that leads,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// a task on a cell, whose guid and domain are given to it,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskPayload>>,
    /// a workflow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowPayload>,
    /// or a Job of a Kubernetes cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Box<KubernetesPayload>>,
    /// Each `{name: {config, onViolation, onMet, on_error, recheck_on_retry}}`: read by [`crate::constraint`] alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Json>,
    /// Actions by name, for those lists that name one instead of writing it out: read by [`crate::constraint`] alone.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub actions: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// From the launch until the work runs; without it, five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<Length>,
    /// Work that runs longer is stopped, and the run has failed. Also the constraint `maxAllowedRunTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_allowed_run_time: Option<Length>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Whether a person may have it run now.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub manual: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub history: History,
}

/// What happens to a run that would be one too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    Allow,
    #[default]
    Skip,
    Queue,
    QueueOne,
    CancelOther,
    TerminateOther,
}

impl Overlap {
    pub const ALL: [Self; 6] = [
        Self::Allow,
        Self::Skip,
        Self::Queue,
        Self::QueueOne,
        Self::CancelOther,
        Self::TerminateOther,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::QueueOne => "queue_one",
            Self::CancelOther => "cancel_other",
            Self::TerminateOther => "terminate_other",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub name: GroupName,
    /// How many runs of all jobs of the group there may be at once; of several, the least counts.
    #[serde(default = "one")]
    pub limit: u32,
}

/// Which of the moments that passed while nobody could run them are made up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatchUp {
    #[serde(default)]
    pub policy: CatchUpPolicy,
    /// What is older is not made up for.
    #[serde(default = "an_hour")]
    pub window: Length,
}

impl Default for CatchUp {
    fn default() -> Self {
        Self { policy: CatchUpPolicy::default(), window: an_hour() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUpPolicy {
    None,
    #[default]
    Last,
    All,
}

impl CatchUpPolicy {
    pub const ALL: [Self; 3] = [Self::None, Self::Last, Self::All];

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
            Self::All => "all",
        }
    }
}

/// Days, by the time zone of the job, on which nothing is scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calendar {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `2026-12-24`, `12-24` (every year), `2026-12-24..2027-01-02`, `12-24..01-02`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<String>,
    /// `sat`, `sunday`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weekdays: Vec<String>,
    /// `22:00-06:00`: only then, on those days or, if there are none, on any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<String>,
}

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    Command(&'a Command),
    Task(&'a TaskPayload),
    Workflow(&'a WorkflowPayload),
    Kubernetes(&'a KubernetesPayload),
}

impl JobDefinition {
    /// What a run does; nothing of a definition that was not checked and has none or several.
    pub fn payload(&self) -> Option<Payload<'_>> {
        match (&self.command, &self.task, &self.workflow, &self.kubernetes) {
            (Some(command), None, None, None) => Some(Payload::Command(command)),
            (None, Some(task), None, None) => Some(Payload::Task(task)),
            (None, None, Some(workflow), None) => Some(Payload::Workflow(workflow)),
            (None, None, None, Some(kubernetes)) => Some(Payload::Kubernetes(kubernetes)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// With `args`, a program; without, text for `sh -c`.
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Between SIGTERM and SIGKILL; without it, ten seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace: Option<Length>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowPayload {
    /// A file on the host, or else the workflow itself in `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// As on the command line of `kapell process`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Attempts after the first one.
    pub max_retries: u32,
    #[serde(default = "ten_seconds")]
    pub initial_delay: Length,
    #[serde(default)]
    pub backoff_multiplier: Multiplier,
    #[serde(default = "five_minutes")]
    pub max_delay: Length,
    /// A delay is put off by up to so much of itself, in percent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jitter_percent: u8,
    /// What is tried again besides work that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<RetryOn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// Work that could not be created or did not start in time.
    Launch,
}

/// At least 1, and a number: checked when the job is stored.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Multiplier(pub f64);

impl Default for Multiplier {
    fn default() -> Self {
        Self(2.0)
    }
}

impl PartialEq for Multiplier {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Multiplier {}

/// A value that a run has, and that whoever triggers it may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Nothing else is taken, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Whoever triggers a run may change it.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub changeable: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// How many ended runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    #[serde(default = "fifty")]
    pub succeeded: u32,
    #[serde(default = "fifty")]
    pub failed: u32,
    /// Those that ended well without having done anything.
    #[serde(default = "fifty")]
    pub skipped: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<Length>,
}

impl Default for History {
    fn default() -> Self {
        Self { succeeded: fifty(), failed: fifty(), skipped: fifty(), max_age: None }
    }
}

fn jobs() -> Domain {
    Domain::new("jobs")
}

fn utc() -> String {
    "UTC".to_owned()
}

const fn one() -> u32 {
    1
}

const fn fifty() -> u32 {
    50
}

const fn yes() -> bool {
    true
}

const fn an_hour() -> Length {
    Length::new(Duration::from_secs(3_600))
}

const fn ten_seconds() -> Length {
    Length::new(Duration::from_secs(10))
}

const fn five_minutes() -> Length {
    Length::new(Duration::from_secs(300))
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_one(value: &u32) -> bool {
    *value == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_true(value: &bool) -> bool {
    *value
}
