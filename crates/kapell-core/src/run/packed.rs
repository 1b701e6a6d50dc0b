//! How a run is written. There are many, and stores keep them in memory, so each is as few bytes as it needs: numbers of
//! seven bits a byte, times counted from the moment of the run, and nothing of what few runs have or its key says.

use std::collections::BTreeMap;

use arcstr::ArcStr;

use super::id::RunId;
use super::metrics::RunMetrics;
use super::name::{UpdateId, told_update};
use super::pack::{Pack, Unpack};
use super::record::{Rare, Run, StopKind, Trigger};
use super::timeline::Timeline;
use crate::board::Domain;
use crate::seams::Timestamp;

// What a run has that most have not, in this order. Fixed for ever: more are added at the end.
const TRIGGER: u64 = 1;
const PREVIOUS: u64 = 1 << 1;
const ATTEMPT: u64 = 1 << 2;
const PLACE: u64 = 1 << 3;
const LOG_HOSTS: u64 = 1 << 4;
const STARTED: u64 = 1 << 5;
const RETRY: u64 = 1 << 6;
const COMPLETED: u64 = 1 << 7;
const EXIT_CODE: u64 = 1 << 8;
const REASON: u64 = 1 << 9;
const SKIPPED: u64 = 1 << 10;
const CANCEL: u64 = 1 << 11;
const AT_ONCE: u64 = 1 << 12;
const TIMELINE: u64 = 1 << 13;
const METRICS: u64 = 1 << 14;
const PARAMETERS: u64 = 1 << 15;
const UPDATE_ID: u64 = 1 << 16;
/// Its last update is the one that state and attempt tell, as that of almost every run: the id is not written.
const LAST_UPDATE: u64 = 1 << 17;
/// All of them.
const KNOWN: u64 = (1 << 18) - 1;

fn has(run: &Run) -> u64 {
    let told = run.update_id.is_some()
        && run.update_id == told_update(&run.run_id, run.state, run.attempt);
    let there = [
        (TRIGGER, run.trigger != Trigger::Schedule),
        (PREVIOUS, run.previous_state.is_some()),
        (ATTEMPT, run.attempt != 0),
        (PLACE, !run.place.is_empty()),
        (LOG_HOSTS, !run.log_hosts.is_empty()),
        (STARTED, run.started_at.is_some()),
        (RETRY, run.retry_at.is_some()),
        (COMPLETED, run.completed_at.is_some()),
        (EXIT_CODE, run.exit_code.is_some()),
        (REASON, !run.reason.is_empty()),
        (SKIPPED, run.skipped),
        (CANCEL, run.cancel.is_some()),
        (AT_ONCE, run.cancel == Some(StopKind::AtOnce)),
        (TIMELINE, !run.timeline.is_empty()),
        (METRICS, run.metrics.is_some()),
        (PARAMETERS, !run.parameters.is_empty()),
        (UPDATE_ID, run.update_id.is_some() && !told),
        (LAST_UPDATE, told),
    ];
    there.iter().filter(|(_, is)| *is).fold(0, |has, (bit, _)| has | bit)
}

/// Writes a run at the end of some bytes.
pub(crate) fn write(run: &Run, bytes: &mut Vec<u8>) {
    let mut to = Pack::onto(bytes);
    let after = |at: Timestamp| at.0.wrapping_sub(run.scheduled_at.0);
    to.text(run.domain.as_str());
    to.number(run.revision);
    to.signed(run.scheduled_at.0);
    to.signed(after(run.due_at));
    to.signed(after(run.created_at));
    to.number(run.version);
    to.state(run.state);
    let has = has(run);
    to.number(has);
    if has & TRIGGER != 0 {
        write_trigger(&run.trigger, &mut to);
    }
    if let Some(previous) = run.previous_state {
        to.state(previous);
    }
    if has & ATTEMPT != 0 {
        to.number(run.attempt.into());
    }
    if has & PLACE != 0 {
        to.text(&run.place);
    }
    if has & LOG_HOSTS != 0 {
        to.number(run.log_hosts.len() as u64);
        run.log_hosts.iter().for_each(|host| to.text(host));
    }
    for at in [run.started_at, run.retry_at, run.completed_at].into_iter().flatten() {
        to.signed(after(at));
    }
    if let Some(code) = run.exit_code {
        to.signed(code.into());
    }
    if has & REASON != 0 {
        to.text(&run.reason);
    }
    if has & TIMELINE != 0 {
        to.bytes(run.timeline.as_bytes());
    }
    if let Some(metrics) = &run.metrics {
        write_metrics(metrics, &mut to);
    }
    if has & PARAMETERS != 0 {
        to.number(run.parameters.len() as u64);
        for (name, value) in &run.parameters {
            to.text(name);
            to.text(value);
        }
    }
    if let Some(id) = run.update_id.filter(|_| has & UPDATE_ID != 0) {
        to.bytes(&id.get().to_be_bytes());
    }
}

/// The run that is written so, by its key; none if nothing is written so.
pub(crate) fn read(run_id: RunId, bytes: &[u8]) -> Option<Run> {
    let from = &mut Unpack::of(bytes);
    let domain = Domain::new(from.text()?);
    let revision = from.number()?;
    let moment = from.signed()?;
    let after = |from: &mut Unpack<'_>| Some(Timestamp(moment.wrapping_add(from.signed()?)));
    let due_at = after(from)?;
    let created_at = after(from)?;
    let version = from.number()?;
    let state = from.state()?;
    let has = from.number()?;
    if has & !KNOWN != 0 {
        return None;
    }
    let has = |bit: u64| has & bit != 0;
    let mut rare = Rare { skipped: has(SKIPPED), ..Rare::default() };
    let trigger = if has(TRIGGER) { read_trigger(from)? } else { Trigger::Schedule };
    let previous_state = if has(PREVIOUS) { Some(from.state()?) } else { None };
    let attempt = if has(ATTEMPT) { from.small()? } else { 0 };
    let place = if has(PLACE) { from.text()?.into() } else { ArcStr::new() };
    if has(LOG_HOSTS) {
        rare.log_hosts = read_texts(from)?;
    }
    let started_at = if has(STARTED) { Some(after(from)?) } else { None };
    rare.retry_at = if has(RETRY) { Some(after(from)?) } else { None };
    rare.completed_at = if has(COMPLETED) { Some(after(from)?) } else { None };
    rare.exit_code = if has(EXIT_CODE) { Some(from.signed()?.try_into().ok()?) } else { None };
    if has(REASON) {
        from.text()?.clone_into(&mut rare.reason);
    }
    rare.cancel =
        has(CANCEL).then_some(if has(AT_ONCE) { StopKind::AtOnce } else { StopKind::Graceful });
    let timeline = Timeline::of_bytes(if has(TIMELINE) { from.bytes()? } else { &[] })?;
    rare.metrics = if has(METRICS) { Some(Box::new(read_metrics(from)?)) } else { None };
    if has(PARAMETERS) {
        rare.parameters = read_parameters(from)?;
    }
    let update_id = match (has(UPDATE_ID), has(LAST_UPDATE)) {
        (true, false) => Some(read_id(from)?),
        (false, true) => Some(told_update(&run_id, state, attempt)?),
        (false, false) => None,
        (true, true) => return None,
    };
    let scheduled_at = Timestamp(moment);
    let run = Run {
        run_id,
        domain,
        revision,
        trigger,
        scheduled_at,
        due_at,
        state,
        previous_state,
        attempt,
        place,
        created_at,
        started_at,
        timeline,
        update_id,
        version,
        rare: rare.into(),
    };
    from.is_empty().then_some(run)
}

fn write_trigger(trigger: &Trigger, to: &mut Pack<'_>) {
    match trigger {
        Trigger::Schedule => to.byte(0),
        Trigger::CatchUp => to.byte(1),
        Trigger::Manual { who } => {
            to.byte(2);
            to.text(who);
        }
        Trigger::Backfill { who } => {
            to.byte(3);
            to.text(who);
        }
        Trigger::Retry { of, who } => {
            to.byte(4);
            to.text(of.as_str());
            to.text(who);
        }
        Trigger::Action { of, depth } => {
            to.byte(5);
            to.text(of.as_str());
            to.number(u64::from(*depth));
        }
    }
}

fn read_trigger(from: &mut Unpack<'_>) -> Option<Trigger> {
    Some(match from.byte()? {
        0 => Trigger::Schedule,
        1 => Trigger::CatchUp,
        2 => Trigger::Manual { who: from.text()?.into() },
        3 => Trigger::Backfill { who: from.text()?.into() },
        4 => Trigger::Retry { of: RunId::parse(from.text()?)?, who: from.text()?.into() },
        5 => Trigger::Action { of: RunId::parse(from.text()?)?, depth: from.small()? },
        _ => return None,
    })
}

fn read_texts(from: &mut Unpack<'_>) -> Option<Vec<ArcStr>> {
    (0..from.number()?).map(|_| from.text().map(ArcStr::from)).collect()
}

fn read_parameters(from: &mut Unpack<'_>) -> Option<BTreeMap<String, String>> {
    (0..from.number()?).map(|_| Some((from.text()?.to_owned(), from.text()?.to_owned()))).collect()
}

fn read_id(from: &mut Unpack<'_>) -> Option<UpdateId> {
    from.bytes()?.try_into().ok().map(u128::from_be_bytes).map(UpdateId::new)
}

fn write_metrics(metrics: &RunMetrics, to: &mut Pack<'_>) {
    let times = [
        metrics.pre_run_ms,
        metrics.constraint_check_ms,
        metrics.pod_start_latency_ms,
        metrics.execution_ms,
        metrics.termination_ms,
        metrics.retry_wait_ms,
        metrics.total_ms,
    ];
    let counts = [
        metrics.constraints_checked,
        metrics.constraints_violated,
        metrics.actions_executed,
        metrics.actions_failed,
        metrics.retry_attempt,
        metrics.max_retries,
        metrics.kubernetes_api_calls,
        metrics.heartbeats_sent,
    ];
    times.into_iter().chain(counts.map(u64::from)).for_each(|figure| to.number(figure));
    to.byte(u8::from(metrics.success) | if metrics.pod_exit_code.is_some() { 2 } else { 0 });
    if let Some(code) = metrics.pod_exit_code {
        to.signed(code.into());
    }
}

fn read_metrics(from: &mut Unpack<'_>) -> Option<RunMetrics> {
    let mut metrics = RunMetrics {
        pre_run_ms: from.number()?,
        constraint_check_ms: from.number()?,
        pod_start_latency_ms: from.number()?,
        execution_ms: from.number()?,
        termination_ms: from.number()?,
        retry_wait_ms: from.number()?,
        total_ms: from.number()?,
        constraints_checked: from.small()?,
        constraints_violated: from.small()?,
        actions_executed: from.small()?,
        actions_failed: from.small()?,
        retry_attempt: from.small()?,
        max_retries: from.small()?,
        kubernetes_api_calls: from.small()?,
        heartbeats_sent: from.small()?,
        pod_exit_code: None,
        success: false,
    };
    let last = from.byte().filter(|last| *last < 4)?;
    metrics.success = last & 1 != 0;
    if last & 2 != 0 {
        metrics.pod_exit_code = Some(from.signed()?.try_into().ok()?);
    }
    Some(metrics)
}
