//! How a run is written. There are many, so what every run has stands in a place of its own instead of under a name, what
//! few have is left out, and times are counted from the moment of the run. What its key says is not said again.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::RunId;
use super::metrics::RunMetrics;
use super::name::update_id;
use super::record::{Entry, Noted, Run, StopKind, Trigger};
use super::state::RunState;
use super::update::UpdateKind;
use crate::board::Domain;
use crate::seams::Timestamp;

/// Milliseconds after the moment of the run.
type After = i64;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row<'a>(
    Cow<'a, str>,
    u64,
    /// None for a moment of the schedule.
    Option<Cow<'a, Trigger>>,
    Timestamp,
    /// When it is due, and when it was made.
    After,
    After,
    u64,
    RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<Box<More<'a>>>,
);

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct More<'a> {
    #[serde(rename = "b", skip_serializing_if = "Option::is_none")]
    previous: Option<RunState>,
    #[serde(rename = "n", skip_serializing_if = "is_default")]
    attempt: u32,
    #[serde(rename = "l", skip_serializing_if = "is_default")]
    place: Cow<'a, str>,
    #[serde(rename = "h", skip_serializing_if = "is_default")]
    log_hosts: Cow<'a, [String]>,
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    started: Option<After>,
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    retry: Option<After>,
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    completed: Option<After>,
    #[serde(rename = "x", skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(rename = "w", skip_serializing_if = "is_default")]
    reason: Cow<'a, str>,
    #[serde(rename = "k", skip_serializing_if = "is_default")]
    skipped: bool,
    #[serde(rename = "q", skip_serializing_if = "Option::is_none")]
    cancel: Option<StopKind>,
    #[serde(rename = "t", skip_serializing_if = "Vec::is_empty")]
    timeline: Vec<Line<'a>>,
    #[serde(rename = "m", skip_serializing_if = "Option::is_none")]
    metrics: Option<Figures>,
    #[serde(rename = "p", skip_serializing_if = "is_default")]
    parameters: Cow<'a, BTreeMap<String, String>>,
    /// Only where it is not the one that state and attempt tell; empty if there is none.
    #[serde(rename = "u", skip_serializing_if = "Option::is_none")]
    update_id: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Line<'a> {
    State(After, u32, RunState, Cow<'a, str>),
    Other(Cow<'a, Entry>),
}

/// In the order of [`RunMetrics`]: times, counts, exit code, and whether it went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Figures([u64; 7], [u32; 8], Option<i32>, bool);

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl<'a> Row<'a> {
    pub(crate) fn of(run: &'a Run) -> Self {
        let moment = run.scheduled_at;
        let after = |at: Timestamp| at.0.saturating_sub(moment.0);
        let line = |entry: &'a Entry| match &entry.noted {
            Noted::State { to, why } => {
                Line::State(after(entry.at), entry.attempt, *to, Cow::Borrowed(why))
            }
            Noted::Revision { .. }
            | Noted::Waits { .. }
            | Noted::Skipped { .. }
            | Noted::Constraint { .. }
            | Noted::ConstraintError { .. }
            | Noted::Action { .. }
            | Noted::Adopted { .. }
            | Noted::Cancel { .. }
            | Noted::Ignored { .. } => Line::Other(Cow::Borrowed(entry)),
        };
        let told = last_update(&run.run_id, run.state, run.attempt);
        let hex = || run.update_id.map_or_else(String::new, |id| format!("{id:032x}"));
        let more = More {
            previous: run.previous_state,
            attempt: run.attempt,
            place: run.place.as_str().into(),
            log_hosts: Cow::Borrowed(&run.log_hosts),
            started: run.started_at.map(after),
            retry: run.retry_at.map(after),
            completed: run.completed_at.map(after),
            exit_code: run.exit_code,
            reason: run.reason.as_str().into(),
            skipped: run.skipped,
            cancel: run.cancel,
            timeline: run.timeline.iter().map(line).collect(),
            metrics: run.metrics.as_deref().map(Figures::of),
            parameters: Cow::Borrowed(&run.parameters),
            update_id: (told != run.update_id).then(hex),
        };
        Self(
            run.domain.as_str().into(),
            run.revision,
            (run.trigger != Trigger::Schedule).then_some(Cow::Borrowed(&run.trigger)),
            moment,
            after(run.due_at),
            after(run.created_at),
            run.version,
            run.state,
            (more != More::default()).then(|| Box::new(more)),
        )
    }

    /// The run that is written so, by its key; or what is wrong with it.
    pub(crate) fn at(self, run_id: RunId) -> Result<Run, String> {
        let Self(domain, revision, trigger, moment, due, created, version, state, more) = self;
        let more = more.map_or_else(More::default, |more| *more);
        let at = |after: After| Timestamp(moment.0.saturating_add(after));
        let line = |line: Line<'_>| match line {
            Line::State(after, attempt, to, why) => {
                let why = Cow::Owned(why.into_owned());
                Entry { at: at(after), attempt, noted: Noted::State { to, why } }
            }
            Line::Other(entry) => entry.into_owned(),
        };
        let update_id = match more.update_id {
            None => last_update(&run_id, state, more.attempt),
            Some(hex) if hex.is_empty() => None,
            Some(hex) => {
                let id = u128::from_str_radix(&hex, 16);
                Some(id.map_err(|_| format!("`{hex}` is not the id of an update"))?)
            }
        };
        Ok(Run {
            run_id,
            domain: Domain::new(domain),
            revision,
            trigger: trigger.map_or(Trigger::Schedule, Cow::into_owned),
            scheduled_at: moment,
            due_at: at(due),
            parameters: more.parameters.into_owned(),
            state,
            previous_state: more.previous,
            attempt: more.attempt,
            place: more.place.into_owned(),
            log_hosts: more.log_hosts.into_owned(),
            created_at: at(created),
            started_at: more.started.map(at),
            retry_at: more.retry.map(at),
            completed_at: more.completed.map(at),
            exit_code: more.exit_code,
            reason: more.reason.into_owned(),
            skipped: more.skipped,
            cancel: more.cancel,
            timeline: more.timeline.into_iter().map(line).collect(),
            metrics: more.metrics.map(|figures| Box::new(figures.metrics())),
            update_id,
            version,
        })
    }
}

/// The update that brought a run there: its record is of the next attempt after a retry.
fn last_update(run_id: &RunId, state: RunState, attempt: u32) -> Option<u128> {
    let (attempt, kind) = match state {
        RunState::ContainerCreating => (attempt, UpdateKind::Intent),
        RunState::Running => (attempt, UpdateKind::Started),
        RunState::Retrying => (attempt.checked_sub(1)?, UpdateKind::Retry),
        RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Orphaned => {
            (attempt, UpdateKind::Ended)
        }
        RunState::PreRun
        | RunState::Pending
        | RunState::ConditionPending
        | RunState::ConditionRunning
        | RunState::ActionPending
        | RunState::ActionRunning
        | RunState::Terminating => return None,
    };
    Some(update_id(run_id, attempt, kind))
}

impl Figures {
    fn of(metrics: &RunMetrics) -> Self {
        let RunMetrics {
            pre_run_ms,
            constraint_check_ms,
            pod_start_latency_ms,
            execution_ms,
            termination_ms,
            retry_wait_ms,
            total_ms,
            constraints_checked,
            constraints_violated,
            actions_executed,
            actions_failed,
            retry_attempt,
            max_retries,
            kubernetes_api_calls,
            pod_exit_code,
            heartbeats_sent,
            success,
        } = *metrics;
        let times = [
            pre_run_ms,
            constraint_check_ms,
            pod_start_latency_ms,
            execution_ms,
            termination_ms,
            retry_wait_ms,
            total_ms,
        ];
        let counts = [
            constraints_checked,
            constraints_violated,
            actions_executed,
            actions_failed,
            retry_attempt,
            max_retries,
            kubernetes_api_calls,
            heartbeats_sent,
        ];
        Self(times, counts, pod_exit_code, success)
    }

    fn metrics(self) -> RunMetrics {
        let Self(times, counts, pod_exit_code, success) = self;
        let [pre_run, check, pod_start, execution, termination, retry_wait, total] = times;
        let [checked, violated, executed, failed, retry_attempt, max_retries, calls, beats] =
            counts;
        RunMetrics {
            pre_run_ms: pre_run,
            constraint_check_ms: check,
            pod_start_latency_ms: pod_start,
            execution_ms: execution,
            termination_ms: termination,
            retry_wait_ms: retry_wait,
            total_ms: total,
            constraints_checked: checked,
            constraints_violated: violated,
            actions_executed: executed,
            actions_failed: failed,
            retry_attempt,
            max_retries,
            kubernetes_api_calls: calls,
            pod_exit_code,
            heartbeats_sent: beats,
            success,
        }
    }
}
