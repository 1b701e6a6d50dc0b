//! Why something is as it is, for people.

use std::collections::BTreeSet;
use std::time::Duration;

use super::actual::{ActualLrp, ActualState, LrpKey};
use super::cell::CellPresence;
use super::crash;
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::ids::CellId;
use super::settings::Settings;
use super::task::{Task, TaskState};
use crate::seams::Timestamp;

/// An answer to "why?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// One sentence.
    pub summary: String,
    /// What it follows from, one a line.
    pub facts: Vec<String>,
    /// When the board tries again by itself.
    pub next_try_at: Option<Timestamp>,
}

/// All that is known of one index of a process.
#[derive(Debug, Clone, Copy)]
pub struct InstanceFacts<'a> {
    pub key: &'a LrpKey,
    pub desired: Option<&'a DesiredLrp>,
    pub instance: Option<&'a ActualLrp>,
    pub evacuating: Option<&'a ActualLrp>,
    /// Of the domain of the instance or, where there is none, of the DesiredLRP.
    pub domain: Option<&'a Freshness>,
    pub present: &'a BTreeSet<CellId>,
}

/// All that is known of a cell.
#[derive(Debug, Clone, Copy)]
pub struct CellFacts<'a> {
    pub cell_id: &'a CellId,
    /// What it last said of itself, if it is present.
    pub presence: Option<&'a CellPresence>,
    /// It is known from records only, and this leader still gives it time to report.
    pub awaited: bool,
    pub heard_ago: Option<Duration>,
    /// Instances and tasks that the board has on it.
    pub lrps: u32,
    pub tasks: u32,
}

/// Explains one index of a process.
pub fn instance(about: &InstanceFacts<'_>, now: Timestamp, settings: &Settings) -> Explained {
    let key = about.key;
    let wanted = about.desired.is_some_and(|desired| match about.instance.or(about.evacuating) {
        Some(lrp) => desired.wants_this(lrp),
        None => desired.wants(key.index),
    });
    let mut facts = vec![desired_fact(about)];
    facts.extend(domain_fact(about, now));
    if let Some(twin) = about.evacuating {
        facts.push(twin_fact(twin, now));
    }
    let Some(lrp) = about.instance else {
        let (summary, next_try_at) = if wanted {
            let summary =
                format!("{key} is desired and not there: the next convergence creates it");
            (summary, Some(now.after(settings.converge_every)))
        } else {
            (format!("{key} is neither desired nor there"), None)
        };
        return Explained { summary, facts, next_try_at };
    };
    facts.push(format!("it is {} for {}", lrp.state.name(), span(now.since(lrp.since))));
    facts.extend(cell_fact(lrp.cell_id.as_ref(), about.present));
    facts.extend(crash_fact(lrp, settings));
    facts.extend(lrp.placement_error.as_ref().map(|error| format!("last placement: {error}")));
    let restart = crash::restart_at(lrp, settings);
    let next_try_at = match lrp.state {
        ActualState::Unclaimed => {
            wanted.then(|| now.max(lrp.since.after(settings.stale_unclaimed)))
        }
        ActualState::Claimed | ActualState::Running => None,
        ActualState::Crashed => restart.filter(|_| wanted),
    };
    let summary = format!("{key} {}", instance_summary(lrp, about, wanted, now, settings));
    Explained { summary, facts, next_try_at }
}

fn instance_summary(
    lrp: &ActualLrp,
    about: &InstanceFacts<'_>,
    wanted: bool,
    now: Timestamp,
    settings: &Settings,
) -> String {
    let cell = lrp.cell_id.as_ref().map_or("-", CellId::as_str);
    let gone = lrp.cell_id.as_ref().is_some_and(|cell| !about.present.contains(cell));
    match lrp.state {
        ActualState::Claimed | ActualState::Running if gone => {
            format!("is on cell `{cell}`, which is gone: it is about to be started elsewhere")
        }
        ActualState::Claimed | ActualState::Running if !wanted => {
            format!("is on cell `{cell}` and not desired any more: {}", retirement(about, now))
        }
        ActualState::Claimed => format!("is being started on cell `{cell}`"),
        ActualState::Running => format!("runs on cell `{cell}`"),
        ActualState::Unclaimed | ActualState::Crashed if !wanted => {
            format!("is not desired any more: {}", retirement(about, now))
        }
        ActualState::Unclaimed => match &lrp.placement_error {
            Some(error) => format!("waits for a cell: {error}"),
            None => "waits for a cell: it is being placed".to_owned(),
        },
        ActualState::Crashed => match crash::restart_at(lrp, settings) {
            None => format!(
                "crashed {} and is not restarted any more: delete and desire it again",
                counted(lrp.crash_count, "time")
            ),
            Some(at) if at <= now => "crashed and is about to be restarted".to_owned(),
            Some(at) => format!(
                "crashed {} and is restarted in {}",
                counted(lrp.crash_count, "time"),
                span(at.since(now))
            ),
        },
    }
}

fn retirement(about: &InstanceFacts<'_>, now: Timestamp) -> &'static str {
    let given_up = about.desired.is_some_and(|desired| desired.retiring);
    if given_up || about.domain.is_some_and(|domain| domain.is_fresh(now)) {
        "it is about to be stopped"
    } else {
        "convergence leaves it until its domain is fresh"
    }
}

fn desired_fact(about: &InstanceFacts<'_>) -> String {
    let key = about.key;
    match about.desired {
        None => format!("there is no desired LRP `{}`", key.process_guid),
        Some(lrp) if lrp.removing => {
            format!("`{}` was deleted, and what is left of it is being stopped", key.process_guid)
        }
        Some(lrp) if about.instance.is_some_and(|it| it.incarnation != lrp.incarnation) => {
            format!("it belongs to an earlier `{}`, which was deleted", key.process_guid)
        }
        Some(lrp) if key.index < lrp.instances => {
            let instances = counted(lrp.instances, "instance");
            format!("desired: {instances}, index {} is one of them", key.index)
        }
        Some(lrp) => {
            let instances = counted(lrp.instances, "instance");
            format!("desired: only {instances}, index {} is beyond", key.index)
        }
    }
}

fn domain_fact(about: &InstanceFacts<'_>, now: Timestamp) -> Option<String> {
    let domain = about
        .instance
        .map(|lrp| &lrp.domain)
        .or_else(|| about.desired.map(|desired| &desired.domain))?;
    let state = match about.domain {
        None => "was never set: it is not fresh".to_owned(),
        Some(fresh) => match fresh.expires_at {
            None => "is fresh for ever".to_owned(),
            Some(at) if now < at => format!("is fresh for another {}", span(at.since(now))),
            Some(at) => format!("has not been fresh for {}", span(now.since(at))),
        },
    };
    Some(format!("domain `{domain}` {state}"))
}

fn twin_fact(twin: &ActualLrp, now: Timestamp) -> String {
    let cell = twin.cell_id.as_ref().map_or("-", CellId::as_str);
    let end = twin
        .expires_at
        .map_or_else(String::new, |at| format!(", for {} at most", span(at.since(now))));
    format!("cell `{cell}` is being evacuated and still runs it{end}")
}

fn cell_fact(cell: Option<&CellId>, present: &BTreeSet<CellId>) -> Option<String> {
    cell.map(|cell| {
        let state = if present.contains(cell) { "present" } else { "gone" };
        format!("cell `{cell}` is {state}")
    })
}

fn crash_fact(lrp: &ActualLrp, settings: &Settings) -> Option<String> {
    (lrp.crash_count > 0).then(|| {
        let reason = lrp.crash_reason.as_deref().unwrap_or("unknown");
        let end = if lrp.crash_count > settings.most_crashes { ", too often to go on" } else { "" };
        format!("it crashed {}{end}, last: {reason}", counted(lrp.crash_count, "time"))
    })
}

/// Explains a task.
pub fn task(
    task: &Task,
    present: &BTreeSet<CellId>,
    now: Timestamp,
    settings: &Settings,
) -> Explained {
    let guid = task.guid();
    let mut facts =
        vec![format!("it is {} for {}", task.state.name(), span(now.since(task.since)))];
    facts.extend(cell_fact(task.cell_id.as_ref(), present));
    facts.extend(task.placement_error.as_ref().map(|error| format!("last placement: {error}")));
    facts.extend(task.exit_code.map(|code| format!("its process ended with status {code}")));
    let callback = &task.definition.completion_callback_url;
    if !callback.is_empty() {
        facts.push(format!("its completion is told to {callback}"));
    }
    let cell = task.cell_id.as_ref().map_or("-", CellId::as_str);
    let outcome = if task.failed {
        format!("failed: {}", task.failure_reason)
    } else {
        "succeeded".to_owned()
    };
    let summary = match task.state {
        TaskState::Pending => match &task.placement_error {
            Some(error) => format!("task `{guid}` waits for a cell: {error}"),
            None => format!("task `{guid}` waits for a cell: it is being placed"),
        },
        TaskState::Running => format!("task `{guid}` runs on cell `{cell}`"),
        TaskState::Completed => format!("task `{guid}` {outcome}"),
        TaskState::Resolving => format!("task `{guid}` {outcome}; it is being resolved"),
    };
    let again = now.max(task.since.after(settings.kick_task));
    let next_try_at = match task.state {
        TaskState::Pending | TaskState::Resolving => Some(again),
        TaskState::Running => None,
        TaskState::Completed => (!callback.is_empty()).then_some(again),
    };
    if let Some(at) = task.first_completed_at {
        let end = at.after(settings.completed_task);
        facts.push(format!("its record is deleted in {}", span(end.since(now))));
    }
    Explained { summary, facts, next_try_at }
}

/// Explains a cell.
pub fn cell(about: &CellFacts<'_>) -> Explained {
    let id = about.cell_id;
    let mut facts = vec![format!(
        "the board has {} and {} on it",
        counted(about.lrps, "instance"),
        counted(about.tasks, "task")
    )];
    facts.extend(about.heard_ago.map(|ago| format!("it was last heard of {} ago", span(ago))));
    let summary = match about.presence {
        None if about.awaited => {
            format!("cell `{id}` is known from records and has not reported to this leader yet")
        }
        None => format!("cell `{id}` is not present"),
        Some(presence) if presence.evacuating => {
            format!("cell `{id}` is being evacuated: it takes no new work")
        }
        Some(_) => format!("cell `{id}` is present and takes work"),
    };
    if let Some(presence) = about.presence {
        let all = presence.capacity;
        facts.push(format!(
            "it has {} MB of memory, {} MB of disk, room for {} containers",
            all.memory_mb, all.disk_mb, all.containers
        ));
        facts.push(format!("it is reached at {}", presence.url));
        if !presence.zone.is_empty() {
            facts.push(format!("it is in zone `{}`", presence.zone));
        }
        if !presence.placement_tags.is_empty() {
            let tags = presence.placement_tags.join(", ");
            facts.push(format!("it takes only work with the placement tags {tags}"));
        }
    }
    Explained { summary, facts, next_try_at: None }
}

fn counted(number: u32, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A length of time as people say it.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        172_800.. => format!("{} days", seconds / 86_400),
    }
}
