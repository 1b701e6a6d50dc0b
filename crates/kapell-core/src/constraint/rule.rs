//! A constraint as it was read.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Verdict;
use super::action::{ActionSpec, Deed};
pub use super::fields::Header;
use super::fields::{Value, Values};
use super::judge::{self, Finding};
use super::outgoing::Method;
use super::window::Window;
use crate::board::{JobId, SecretName};
use crate::job::Length;

/// How long a check may take, where its configuration does not say.
const TIMEOUT: Duration = Duration::from_secs(30);

/// When a constraint is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the work.
    Before,
    /// When the work has ended.
    After,
}

impl Phase {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// What follows if nobody can say whether a constraint is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    #[default]
    Block,
    Allow,
    Retry,
}

/// A constraint, and what is to be done about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// As the documentation spells it.
    pub name: &'static str,
    pub rule: Rule,
    pub on_violation: Vec<ActionSpec>,
    pub on_met: Vec<ActionSpec>,
    pub on_error: OnError,
    /// Whether it is looked at again for a further attempt.
    pub recheck_on_retry: bool,
    /// How long the check may take.
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    PreRunHook(Target),
    PostRunHook(Target),
    MaxExpectedRunTime { limit: Length },
    MaxAllowedRunTime { limit: Length },
    RequirePreviousSuccess(PreviousSuccess),
    TimeWindow(Window),
    OtherJob(OtherJob),
    HttpHealthCheck(Health),
    ResourceAvailable(Room),
}

/// Whom to call, and with what.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub place: Place,
    pub method: Method,
    pub headers: Vec<(String, Header)>,
    /// What is said, with templates; without it, what is known of the run.
    pub body: Option<Json>,
    /// The secret that the message is signed with.
    pub secret: Option<SecretName>,
    /// How long an answer may take.
    pub timeout: Duration,
    pub max_attempts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Url(String),
    /// The URL itself is a secret.
    Secret(SecretName),
}

/// The run before must have gone well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousSuccess {
    /// It is met if there was none.
    pub allow_first: bool,
}

/// What is asked about another job: what its name says must be so, or must not with `negate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherJob {
    pub job: JobId,
    pub question: OtherQuestion,
    pub negate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherQuestion {
    Running,
    CompletedWithin { within: Length, success: bool },
    ScheduledWithin { within: Length },
}

/// A place that must answer well.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    pub target: Target,
    /// None: 200 to 299.
    pub statuses: Vec<u16>,
}

/// What must be free on some cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub memory_mb: u32,
    pub disk_mb: u32,
    pub containers: u32,
    /// How many cells must have it.
    pub cells: u32,
    pub zone: Option<String>,
    pub tags: Vec<String>,
}

impl Target {
    pub(super) fn of(values: &Values, timeout: Duration, max_attempts: u32) -> Self {
        let place = match values.secret("url_secret") {
            Some(secret) => Place::Secret(secret),
            None => Place::Url(values.text("url").unwrap_or_default()),
        };
        let headers = match values.0.get("headers") {
            Some(Value::Headers(headers)) => headers.clone(),
            _ => Vec::new(),
        };
        let body = match values.0.get("body") {
            Some(Value::Json(body)) => Some(body.clone()),
            _ => None,
        };
        let method = match values.text("method").as_deref() {
            Some("get") => Method::Get,
            Some("head") => Method::Head,
            Some("put") => Method::Put,
            _ => Method::Post,
        };
        let max_attempts = values.count("max_attempts").unwrap_or(max_attempts);
        Self {
            place,
            method,
            headers,
            body,
            secret: values.secret("secret"),
            timeout,
            max_attempts,
        }
    }

    /// The secrets that it needs.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretName> {
        let place = match &self.place {
            Place::Url(_) => None,
            Place::Secret(name) => Some(name),
        };
        let headers = self.headers.iter().filter_map(|(_, header)| match header {
            Header::Text(_) => None,
            Header::Secret(name) => Some(name),
        });
        place.into_iter().chain(&self.secret).chain(headers)
    }

    /// What a hook that was answered is.
    pub fn judge(&self, status: u16) -> Finding {
        judge::hook(status)
    }
}

impl Rule {
    /// What a configuration means; all fields that must be there are.
    pub(super) fn of(name: &str, values: &Values) -> Option<Self> {
        let timeout = timeout(values);
        let job = || values.job("job");
        let limit = || values.length("limit");
        let negate = values.flag("negate").unwrap_or(false);
        let other = |question| Some(Self::OtherJob(OtherJob { job: job()?, question, negate }));
        match name {
            "preRunHook" => Some(Self::PreRunHook(Target::of(values, timeout, 3))),
            "postRunHook" => Some(Self::PostRunHook(Target::of(values, timeout, 3))),
            "maxExpectedRunTime" => Some(Self::MaxExpectedRunTime { limit: limit()? }),
            "maxAllowedRunTime" => Some(Self::MaxAllowedRunTime { limit: limit()? }),
            "requirePreviousSuccess" => {
                let allow_first = values.flag("allow_first").unwrap_or(true);
                Some(Self::RequirePreviousSuccess(PreviousSuccess { allow_first }))
            }
            "time_window" => Some(Self::TimeWindow(Window::of(values))),
            "other_job_running" => other(OtherQuestion::Running),
            "other_job_completed_recently" => {
                let success = values.flag("success").unwrap_or(true);
                other(OtherQuestion::CompletedWithin { within: values.length("within")?, success })
            }
            "other_job_scheduled_soon" => {
                other(OtherQuestion::ScheduledWithin { within: values.length("within")? })
            }
            "http_health_check" => {
                let statuses = match values.0.get("statuses") {
                    Some(Value::Statuses(statuses)) => statuses.clone(),
                    _ => Vec::new(),
                };
                let mut target = Target::of(values, timeout, 1);
                if target.method != Method::Head {
                    target.method = Method::Get;
                }
                Some(Self::HttpHealthCheck(Health { target, statuses }))
            }
            "resource_available" => Some(Self::ResourceAvailable(Room {
                memory_mb: values.count("memory_mb").unwrap_or(0),
                disk_mb: values.count("disk_mb").unwrap_or(0),
                containers: values.count("containers").unwrap_or(1),
                cells: values.count("cells").unwrap_or(1),
                zone: values.text("zone"),
                tags: match values.0.get("tags") {
                    Some(Value::Texts(tags)) => tags.clone(),
                    _ => Vec::new(),
                },
            })),
            _ => None,
        }
    }

    pub const fn phase(&self) -> Phase {
        match self {
            Self::PostRunHook(_)
            | Self::MaxExpectedRunTime { .. }
            | Self::MaxAllowedRunTime { .. } => Phase::After,
            Self::PreRunHook(_)
            | Self::RequirePreviousSuccess(_)
            | Self::TimeWindow(_)
            | Self::OtherJob(_)
            | Self::HttpHealthCheck(_)
            | Self::ResourceAvailable(_) => Phase::Before,
        }
    }

    /// What becomes of a run if this is violated and no action says otherwise.
    ///
    /// Work that ran too long is work that failed, so it is tried again like any other if the job has retries.
    pub const fn default_word(&self) -> Verdict {
        match self {
            Self::MaxExpectedRunTime { .. } => Verdict::Proceed,
            Self::MaxAllowedRunTime { .. } => Verdict::Retry,
            Self::PreRunHook(_)
            | Self::PostRunHook(_)
            | Self::RequirePreviousSuccess(_)
            | Self::TimeWindow(_)
            | Self::OtherJob(_)
            | Self::HttpHealthCheck(_)
            | Self::ResourceAvailable(_) => Verdict::Fail,
        }
    }

    /// What a limit says about how long the work ran; nothing of other constraints.
    pub fn judge_run_time(&self, took: Duration) -> Option<Finding> {
        match self {
            Self::MaxExpectedRunTime { limit } => {
                Some(judge::run_time(took, *limit, "maxExpectedRunTime"))
            }
            Self::MaxAllowedRunTime { limit } => {
                Some(judge::run_time(took, *limit, "maxAllowedRunTime"))
            }
            Self::PreRunHook(_)
            | Self::PostRunHook(_)
            | Self::RequirePreviousSuccess(_)
            | Self::TimeWindow(_)
            | Self::OtherJob(_)
            | Self::HttpHealthCheck(_)
            | Self::ResourceAvailable(_) => None,
        }
    }

    /// What is done where a job does not say: whoever is late is mentioned.
    pub(super) fn default_actions(&self) -> Vec<ActionSpec> {
        match self {
            Self::MaxExpectedRunTime { .. } => vec![ActionSpec::plain("log", Deed::late())],
            Self::MaxAllowedRunTime { .. }
            | Self::PreRunHook(_)
            | Self::PostRunHook(_)
            | Self::RequirePreviousSuccess(_)
            | Self::TimeWindow(_)
            | Self::OtherJob(_)
            | Self::HttpHealthCheck(_)
            | Self::ResourceAvailable(_) => Vec::new(),
        }
    }

    /// How long the check may take in all: a place that does not answer in time is ill, so that is told first.
    pub(super) fn patience(&self, timeout: Duration) -> Duration {
        match self {
            Self::HttpHealthCheck(_) => timeout + Duration::from_secs(1),
            Self::PreRunHook(_)
            | Self::PostRunHook(_)
            | Self::MaxExpectedRunTime { .. }
            | Self::MaxAllowedRunTime { .. }
            | Self::RequirePreviousSuccess(_)
            | Self::TimeWindow(_)
            | Self::OtherJob(_)
            | Self::ResourceAvailable(_) => timeout,
        }
    }
}

/// The longest `timeout` of a check: all runs share the places in which they are checked.
pub(super) const LONGEST_TIMEOUT: Length = Length::new(Duration::from_secs(600));

pub(super) fn timeout(values: &Values) -> Duration {
    let given = values.length("timeout").map(|given| given.min(LONGEST_TIMEOUT));
    given.map_or(TIMEOUT, Length::get)
}
