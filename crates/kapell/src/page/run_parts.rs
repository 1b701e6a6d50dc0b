//! What pages show of jobs and runs.

use kapell_api::v1::RunView;
use kapell_core::job::when;
use kapell_core::run::{RunState, Trigger};
use kapell_core::seams::Timestamp;

use super::parts::span;
use super::{Html, html};

/// How good or bad a state is.
pub(super) const fn class(state: RunState) -> &'static str {
    match state {
        RunState::Completed => "good",
        RunState::Failed | RunState::Orphaned => "bad",
        RunState::Running | RunState::Terminating | RunState::ContainerCreating => "starting",
        RunState::PreRun
        | RunState::Pending
        | RunState::ConditionPending
        | RunState::ConditionRunning
        | RunState::ActionPending
        | RunState::ActionRunning
        | RunState::Retrying
        | RunState::Cancelled => "waiting",
    }
}

pub(super) fn run_state(state: RunState, skipped: bool) -> Html {
    let mut out = Html::default();
    html!(out; "<span class=\"state " (class(state)) "\">" (state.name()));
    if skipped {
        html!(out; " (skipped)");
    }
    html!(out; "</span>");
    out
}

/// A time by the clock of a job, and how far away it is.
pub(super) fn moment(at: Timestamp, timezone: &str, now: Timestamp) -> Html {
    let mut out = Html::default();
    let exact = jiff::Timestamp::from_millisecond(at.0)
        .map(|it| it.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default();
    let apart = span(i64::try_from(at.0.abs_diff(now.0)).unwrap_or(i64::MAX));
    html!(out; "<time datetime=\"" (exact) "\">" (when::show(at, timezone)) "</time> <small>");
    if at > now {
        html!(out; "in " (apart));
    } else {
        html!(out; (apart) " ago");
    }
    html!(out; "</small>");
    out
}

pub(super) fn trigger(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Schedule => "the schedule".to_owned(),
        Trigger::CatchUp => "catch-up".to_owned(),
        Trigger::Manual { who } => format!("{who}, by hand"),
        Trigger::Backfill { who } => format!("{who}, as a backfill"),
        Trigger::Retry { of, who } => format!("{who}, as a retry of {of}"),
        Trigger::Action { of, .. } => format!("an action of {of}"),
    }
}

/// The rows of a table of runs: run, state, when, how long, why.
pub(super) fn rows(out: &mut Html, runs: &[RunView], now: Timestamp) {
    for view in runs {
        let run = &view.run;
        let took = run.started_at.map(|at| span(run.completed_at.unwrap_or(now).0 - at.0));
        html!(out;
            "<tr><th scope=\"row\" class=\"name\"><a href=\"/run/" (run.run_id) "\">" (run.run_id) "</a></th><td>"
            {run_state(run.state, run.skipped)} "</td><td class=\"number\">" {moment(run.scheduled_at, &view.timezone, now)}
            "</td><td class=\"number extra\">" (took.unwrap_or_default()) "</td><td class=\"extra about\">" (run.reason) "</td></tr>\n"
        );
    }
}

/// A button that has something done.
pub(super) fn button(out: &mut Html, action: &str, text: &'static str) {
    html!(out; "<form method=\"post\" action=\"" (action) "\"><button>" (text) "</button></form> ");
}
