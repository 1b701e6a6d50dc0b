//! How runs were written before they were packed, and are still read: what every run has stands in a place of its own instead
//! of under a name, what few have is left out, and times are counted from the moment of the run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arcstr::ArcStr;
use serde::Deserialize;

use super::id::RunId;
use super::metrics::RunMetrics;
use super::name::{UpdateId, told_update};
use super::record::{Entry, Noted, Rare, Rarely, Run, StopKind, Trigger};
use super::state::RunState;
use crate::board::Domain;
use crate::seams::Timestamp;

/// Milliseconds after the moment of the run.
type After = i64;

#[derive(Debug, Deserialize)]
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
    #[serde(default)] Option<Box<More<'a>>>,
);

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct More<'a> {
    #[serde(rename = "b")]
    previous: Option<RunState>,
    #[serde(rename = "n")]
    attempt: u32,
    #[serde(rename = "l")]
    place: Cow<'a, str>,
    #[serde(rename = "h")]
    log_hosts: Cow<'a, [ArcStr]>,
    #[serde(rename = "s")]
    started: Option<After>,
    #[serde(rename = "r")]
    retry: Option<After>,
    #[serde(rename = "c")]
    completed: Option<After>,
    #[serde(rename = "x")]
    exit_code: Option<i32>,
    #[serde(rename = "w")]
    reason: Cow<'a, str>,
    #[serde(rename = "k")]
    skipped: bool,
    #[serde(rename = "q")]
    cancel: Option<StopKind>,
    #[serde(rename = "t")]
    timeline: Vec<Line<'a>>,
    #[serde(rename = "m")]
    metrics: Option<Figures>,
    #[serde(rename = "p")]
    parameters: Cow<'a, BTreeMap<String, String>>,
    /// Only where it is not the one that state and attempt tell; empty if there is none.
    #[serde(rename = "u")]
    update_id: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Line<'a> {
    State(After, u32, RunState, Cow<'a, str>),
    Other(Cow<'a, Entry>),
}

/// In the order of [`RunMetrics`]: times, counts, exit code, and whether it went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct Figures([u64; 7], [u32; 8], Option<i32>, bool);

impl Row<'_> {
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
            None => told_update(&run_id, state, more.attempt),
            Some(hex) if hex.is_empty() => None,
            Some(hex) => {
                let id = u128::from_str_radix(&hex, 16);
                Some(UpdateId::new(id.map_err(|_| format!("`{hex}` is not the id of an update"))?))
            }
        };
        Ok(Run {
            run_id,
            domain: Domain::new(domain),
            revision,
            trigger: trigger.map_or(Trigger::Schedule, Cow::into_owned),
            scheduled_at: moment,
            due_at: at(due),
            state,
            previous_state: more.previous,
            attempt: more.attempt,
            place: more.place.into(),
            created_at: at(created),
            started_at: more.started.map(at),
            timeline: more.timeline.into_iter().map(line).collect(),
            update_id,
            version,
            rare: Rarely::from(Rare {
                parameters: more.parameters.into_owned(),
                log_hosts: more.log_hosts.into_owned(),
                retry_at: more.retry.map(at),
                completed_at: more.completed.map(at),
                exit_code: more.exit_code,
                reason: more.reason.into_owned(),
                skipped: more.skipped,
                cancel: more.cancel,
                metrics: more.metrics.map(|figures| Box::new(figures.metrics())),
            }),
        })
    }
}

impl Figures {
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
