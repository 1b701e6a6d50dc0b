//! Why a run is as it is: every decision about it, with its reason.

use super::{About, Decision};
use crate::job::definition::JobDefinition;
use crate::run::{Entry, Noted, Run, RunState, SkippedBy, Trigger};

/// Every decision about a run that is kept, in order. With the definition that it goes by, also what was decided in its
/// favour: that it was in time, and that none was in its way.
pub fn of_run(run: &Run, definition: Option<&JobDefinition>) -> Vec<Decision> {
    let mut decisions = vec![made(run)];
    let off = run.due_at.since(run.scheduled_at);
    if run.trigger == Trigger::Schedule && !off.is_zero() {
        let text = format!("put off by {:.1} s (jitter)", off.as_secs_f64());
        decisions.push(Decision::new(run.created_at, About::Jitter, text));
    }
    let mut before: Option<Entry> = None;
    let mut waited = false;
    for entry in &run.timeline {
        let Entry { at, attempt, noted } = &entry;
        if is_way(before.as_ref(), &entry) {
            continue;
        }
        if let Noted::State { to: RunState::ConditionPending | RunState::ContainerCreating, .. } =
            noted
            && *attempt == 0
            && is_pending(before.as_ref())
            && let Some(definition) = definition
        {
            decisions.extend(in_time(run, &entry, definition));
            decisions.push(Decision::new(*at, About::Overlap, place(definition, waited)));
        }
        waited |= matches!(noted, Noted::Waits { .. });
        let (about, text) = said(noted);
        decisions.push(Decision { at: *at, attempt: *attempt, about, text });
        before = Some(entry);
    }
    decisions
}

fn made(run: &Run) -> Decision {
    let (about, text) = match &run.trigger {
        Trigger::Schedule => (About::Due, "a run was made for it".to_owned()),
        Trigger::CatchUp => {
            (About::CatchUp, "it was missed, and a run was made for it later (catch_up)".to_owned())
        }
        Trigger::Manual { who } => (About::Due, format!("asked for by {who}")),
        Trigger::Backfill { who } => (About::Due, format!("asked for by {who} (backfill)")),
        Trigger::Retry { of, who } => {
            (About::Due, format!("another try of `{of}`, asked for by {who}"))
        }
        Trigger::Action { of, .. } => (About::Action, format!("kicked off by run `{of}`")),
    };
    Decision::new(run.created_at, about, text)
}

/// Whether a state is nothing but the way of a run that is skipped to its end.
fn is_way(before: Option<&Entry>, entry: &Entry) -> bool {
    let Some(Entry { at, noted: Noted::Skipped { why, .. }, .. }) = before else { return false };
    match &entry.noted {
        Noted::State { to, why: said } => entry.at == *at && said == why && !to.is_final(),
        Noted::Revision { .. }
        | Noted::Waits { .. }
        | Noted::Skipped { .. }
        | Noted::Constraint { .. }
        | Noted::ConstraintError { .. }
        | Noted::Action { .. }
        | Noted::Adopted { .. }
        | Noted::Cancel { .. }
        | Noted::Ignored { .. } => false,
    }
}

fn is_pending(before: Option<&Entry>) -> bool {
    before.is_some_and(|entry| {
        matches!(entry.noted, Noted::State { to: RunState::Pending, .. } | Noted::Waits { .. })
    })
}

fn in_time(run: &Run, entry: &Entry, definition: &JobDefinition) -> Option<Decision> {
    let deadline = definition.starting_deadline?;
    let moment = if run.run_id.is_asked_for() { run.due_at } else { run.scheduled_at };
    let late = entry.at.since(moment).as_secs_f64();
    let text =
        format!("{late:.1} s after its moment, and {deadline} are allowed (starting_deadline)");
    Some(Decision::new(entry.at, About::Deadline, text))
}

fn place(definition: &JobDefinition, waited: bool) -> String {
    let (overlap, most) = (definition.overlap.name(), definition.max_concurrent_runs);
    let begins = if waited { "its turn has come" } else { "no other run is in its way" };
    let group = definition.group.as_ref();
    let group = group.map(|it| format!(", at most {} of group `{}`", it.limit, it.name));
    let group = group.unwrap_or_default();
    match definition.overlap {
        crate::job::Overlap::Allow => format!("{begins} (overlap: {overlap}{group})"),
        crate::job::Overlap::Skip
        | crate::job::Overlap::Queue
        | crate::job::Overlap::QueueOne
        | crate::job::Overlap::CancelOther
        | crate::job::Overlap::TerminateOther => {
            format!("{begins} (overlap: {overlap}, at most {most} at once{group})")
        }
    }
}

fn said(noted: &Noted) -> (About, String) {
    match noted {
        Noted::State { to, why } => (About::State, format!("{}: {why}", to.name())),
        Noted::Revision { revision } => {
            (About::State, format!("it goes by revision {revision} of its job"))
        }
        Noted::Waits { why } => (About::Overlap, format!("it waits: {why}")),
        Noted::Skipped { by, why } => (skipped(*by), format!("it is skipped: {why}")),
        Noted::Constraint { name, met, message } => {
            let is = if *met { "is met" } else { "is not met" };
            (About::Constraint, format!("`{name}` {is}: {message}"))
        }
        Noted::ConstraintError { name, message } => {
            (About::Constraint, format!("`{name}` could not be checked: {message}"))
        }
        Noted::Action { name, ok: true, message } => {
            (About::Action, format!("`{name}` was taken: {message}"))
        }
        Noted::Action { name, ok: false, message } => {
            (About::Action, format!("`{name}` failed: {message}"))
        }
        Noted::Adopted { evidence } => {
            (About::Adoption, format!("another leader took it over: {evidence}"))
        }
        Noted::Cancel { why } => (About::Cancel, why.clone()),
        Noted::Ignored { what } => (About::State, format!("ignored: {what}")),
    }
}

const fn skipped(by: SkippedBy) -> About {
    match by {
        SkippedBy::Schedule => About::Due,
        SkippedBy::Deadline => About::Deadline,
        SkippedBy::Overlap => About::Overlap,
        SkippedBy::Constraint => About::Constraint,
        SkippedBy::CatchUp => About::CatchUp,
        SkippedBy::Action => About::Skip,
    }
}

/// How a run stands.
pub fn outcome(run: &Run) -> String {
    let why = if run.reason.is_empty() { String::new() } else { format!(": {}", run.reason) };
    match run.state {
        RunState::Completed if run.skipped => format!("was skipped{why}"),
        RunState::Completed => "succeeded".to_owned(),
        RunState::Failed => format!("failed{why}"),
        RunState::Cancelled => format!("was cancelled{why}"),
        RunState::Orphaned => format!("was given up{why}"),
        RunState::PreRun => "waits for its time".to_owned(),
        RunState::Pending => format!("waits for its turn{why}"),
        RunState::Retrying => format!("waits for its next attempt{why}"),
        RunState::ConditionPending | RunState::ConditionRunning => {
            format!("has its constraints checked{why}")
        }
        RunState::ActionPending | RunState::ActionRunning => format!("has actions taken{why}"),
        RunState::ContainerCreating | RunState::Running | RunState::Terminating => {
            format!("is under way ({})", run.state.name())
        }
    }
}
