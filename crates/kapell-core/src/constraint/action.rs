//! An action as it was read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::Verdict;
use super::fields::{Value, Values};
use super::rule::{Place, Target};
use crate::board::{JobId, SecretName};
use crate::job::Length;
use crate::run::StopKind;

/// How long one call of a notification may take, and how often it is made.
const CALL: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 6;
/// Where PagerDuty takes events.
const PAGERDUTY: &str = "https://events.pagerduty.com/v2/enqueue";
const SUMMARY: &str =
    "{{ job.name }}: {{ constraint.name }}: {{ constraint.message }} ({{ run.id }})";

/// An action of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionSpec {
    /// As the documentation spells it.
    pub name: &'static str,
    pub deed: Deed,
    /// Whether the run fails if this does.
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    Retry,
    Fail,
    Skip,
    Proceed,
    Delay {
        time: Length,
    },
    Log {
        message: String,
        level: Level,
    },
    KickOffJob {
        job: JobId,
        parameters: BTreeMap<String, String>,
    },
    /// All other runs of a job, or of the run's own.
    KillAllInstances {
        job: Option<JobId>,
        stop: StopKind,
    },
    KillLatestInstance {
        job: Option<JobId>,
        stop: StopKind,
    },
    SkipNextInstance {
        job: Option<JobId>,
        count: u32,
    },
    Notify(Box<Notify>),
    Metric {
        metric: String,
        value: f64,
        kind: MetricKind,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// The value is set.
    Gauge,
    /// The value is added.
    Counter,
}

/// A message to somebody outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Notify {
    pub target: Target,
    /// Keys of the body whose value is a secret.
    pub secret_fields: Vec<(&'static str, SecretName)>,
    /// How long the run waits for it to be taken; nothing: it waits for its place in the queue only.
    pub wait: Option<Duration>,
}

impl ActionSpec {
    pub(super) const fn plain(name: &'static str, deed: Deed) -> Self {
        Self { name, deed, required: true }
    }

    /// What it says about the run, whatever else is done; [`Deed::Delay`] says so more softly.
    pub const fn verdict(&self) -> Option<Verdict> {
        match self.deed {
            Deed::Retry => Some(Verdict::Retry),
            Deed::Fail => Some(Verdict::Fail),
            Deed::Skip => Some(Verdict::Skip),
            Deed::Proceed => Some(Verdict::Proceed),
            Deed::Delay { .. }
            | Deed::Log { .. }
            | Deed::KickOffJob { .. }
            | Deed::KillAllInstances { .. }
            | Deed::KillLatestInstance { .. }
            | Deed::SkipNextInstance { .. }
            | Deed::Notify(_)
            | Deed::Metric { .. } => None,
        }
    }

    pub const fn delays(&self) -> bool {
        matches!(self.deed, Deed::Delay { .. })
    }
}

impl Deed {
    /// The default of `maxExpectedRunTime`.
    pub(super) fn late() -> Self {
        Self::Log { message: "{{ constraint.message }}".to_owned(), level: Level::Warn }
    }

    /// What a configuration means; all fields that must be there are.
    pub(super) fn of(name: &str, values: &Values) -> Option<Self> {
        let stop = match values.text("stop").as_deref() {
            Some("at_once") => StopKind::AtOnce,
            _ => StopKind::Graceful,
        };
        match name {
            "retry" => Some(Self::Retry),
            "fail" => Some(Self::Fail),
            "skip" => Some(Self::Skip),
            "proceed" => Some(Self::Proceed),
            "delay" => Some(Self::Delay { time: values.length("time")? }),
            "log" => Some(Self::log(values)),
            "kickOffJob" => {
                let parameters = match values.0.get("parameters") {
                    Some(Value::Parameters(parameters)) => parameters.clone(),
                    _ => BTreeMap::new(),
                };
                Some(Self::KickOffJob { job: values.job("job")?, parameters })
            }
            "killAllInstances" => Some(Self::KillAllInstances { job: values.job("job"), stop }),
            "killLatestInstance" => Some(Self::KillLatestInstance { job: values.job("job"), stop }),
            "skipNextInstance" => {
                let count = values.count("count").unwrap_or(1);
                Some(Self::SkipNextInstance { job: values.job("job"), count })
            }
            "webhook" => Some(Self::notify(values, None, Vec::new())),
            "slack" => Some(Self::slack(values)),
            "pagerduty" => Self::pagerduty(values),
            "metric" => {
                let Some(Value::Number(value)) =
                    values.0.get("value").or(Some(&Value::Number(1.0)))
                else {
                    return None;
                };
                let kind = match values.text("kind").as_deref() {
                    Some("gauge") => MetricKind::Gauge,
                    _ => MetricKind::Counter,
                };
                Some(Self::Metric { metric: values.text("metric")?, value: *value, kind })
            }
            _ => None,
        }
    }

    fn log(values: &Values) -> Self {
        let message = values.text("message");
        let message =
            message.unwrap_or_else(|| "{{ constraint.name }}: {{ constraint.message }}".to_owned());
        let level = match values.text("level").as_deref() {
            Some("debug") => Level::Debug,
            Some("info") => Level::Info,
            Some("error") => Level::Error,
            _ => Level::Warn,
        };
        Self::Log { message, level }
    }

    fn notify(
        values: &Values,
        body: Option<Json>,
        secret_fields: Vec<(&'static str, SecretName)>,
    ) -> Self {
        let timeout = values.length("timeout").map_or(CALL, Length::get);
        let mut target = Target::of(values, timeout, ATTEMPTS);
        target.body = body.or(target.body);
        let wait = values.length("wait").map(Length::get).filter(|wait| !wait.is_zero());
        Self::Notify(Box::new(Notify { target, secret_fields, wait }))
    }

    fn slack(values: &Values) -> Self {
        let text = values.text("text").unwrap_or_else(|| SUMMARY.to_owned());
        let mut body = json!({ "text": text });
        if let Some(channel) = values.text("channel") {
            body["channel"] = channel.into();
        }
        Self::notify(values, Some(body), Vec::new())
    }

    fn pagerduty(values: &Values) -> Option<Self> {
        let action = values.text("event_action").unwrap_or_else(|| "trigger".to_owned());
        let dedup_key = values
            .text("dedup_key")
            .unwrap_or_else(|| "{{ job.id }}/{{ constraint.name }}".to_owned());
        let mut body = json!({ "routing_key": "", "event_action": action, "dedup_key": dedup_key });
        if action == "trigger" {
            body["payload"] = json!({
                "summary": values.text("summary").unwrap_or_else(|| SUMMARY.to_owned()),
                "severity": values.text("severity").unwrap_or_else(|| "error".to_owned()),
                "source": "kapell",
                "component": "{{ job.id }}",
                "timestamp": "{{ now }}",
                "custom_details": { "run": "{{ run.id }}", "attempt": "{{ run.attempt }}" },
            });
        }
        let secret_fields = vec![("routing_key", values.secret("routing_key_secret")?)];
        let Self::Notify(mut notify) = Self::notify(values, Some(body), secret_fields) else {
            return None;
        };
        if notify.target.place == Place::Url(String::new()) {
            notify.target.place = Place::Url(PAGERDUTY.to_owned());
        }
        Some(Self::Notify(notify))
    }
}
