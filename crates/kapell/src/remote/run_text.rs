//! Runs as people read them.

use kapell_core::job::when;
use kapell_core::run::{Noted, Run, RunState, Trigger};
use kapell_core::seams::Timestamp;

use super::table::{Cell, coloured};
use super::text::long;
use crate::logger::style::Colour;

pub(crate) fn run_state(state: RunState, skipped: bool) -> Cell {
    let colour = match state {
        RunState::Completed if skipped => Colour::Dim,
        RunState::Completed => Colour::Green,
        RunState::Failed | RunState::Orphaned => Colour::Red,
        RunState::Running | RunState::Terminating => Colour::Blue,
        RunState::PreRun
        | RunState::Pending
        | RunState::ConditionPending
        | RunState::ConditionRunning
        | RunState::ActionPending
        | RunState::ActionRunning
        | RunState::ContainerCreating
        | RunState::Retrying
        | RunState::Cancelled => Colour::Yellow,
    };
    let skipped = if skipped { " (skipped)" } else { "" };
    coloured(format!("{}{skipped}", state.name()), colour)
}

/// `2026-11-16 02:30:00 CET, 3m12s ago`
pub(crate) fn moment(at: Timestamp, timezone: &str, now: Timestamp) -> String {
    format!("{}, {}", when::show(at, timezone), relative(at, now))
}

/// `in 3m12s`, `3m12s ago`
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let apart = long(at.0.abs_diff(now.0));
    if at > now { format!("in {apart}") } else { format!("{apart} ago") }
}

pub(crate) fn trigger(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Schedule => "schedule".to_owned(),
        Trigger::CatchUp => "catch-up".to_owned(),
        Trigger::Manual { who } => format!("{who}, by hand"),
        Trigger::Backfill { who } => format!("{who}, as a backfill"),
        Trigger::Retry { of, who } => format!("{who}, as a retry of {of}"),
        Trigger::Action { of, .. } => format!("an action of {of}"),
    }
}

/// How long its work took, or takes.
pub(crate) fn duration(run: &Run, now: Timestamp) -> String {
    let Some(started) = run.started_at else { return "-".to_owned() };
    let end = run.completed_at.unwrap_or(now);
    long(u64::try_from(end.0.saturating_sub(started.0)).unwrap_or(0))
}

/// One line of a timeline: what happened, and why.
pub(crate) fn noted(noted: &Noted) -> (String, String) {
    let met = |met: bool| if met { "met" } else { "violated" };
    let done = |ok: bool| if ok { "done" } else { "failed" };
    match noted {
        Noted::State { to, why } => (to.name().to_owned(), why.clone().into_owned()),
        Noted::Revision { revision } => {
            ("revision".to_owned(), format!("goes by revision {revision} of its job from now on"))
        }
        Noted::Waits { why } => ("waits".to_owned(), why.clone()),
        Noted::Skipped { why, .. } => ("skipped".to_owned(), why.clone()),
        Noted::Constraint { name, met: is_met, message } => {
            (format!("constraint {name}"), said(met(*is_met), message))
        }
        Noted::ConstraintError { name, message } => {
            (format!("constraint {name}"), said("could not be checked", message))
        }
        Noted::Action { name, ok, message } => (format!("action {name}"), said(done(*ok), message)),
        Noted::Adopted { evidence } => ("adopted".to_owned(), evidence.clone()),
        Noted::Cancel { why } => ("cancel".to_owned(), why.clone()),
        Noted::Ignored { what } => ("ignored".to_owned(), what.clone()),
    }
}

fn said(what: &str, message: &str) -> String {
    if message.is_empty() { what.to_owned() } else { format!("{what}: {message}") }
}
