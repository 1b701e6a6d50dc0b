//! What somebody should look at, and why: the first thing that the overview shows.

use std::collections::BTreeMap;
use std::time::Duration;

use kapell_core::board::{ActualLrp, ActualState, ProcessGuid, Task, TaskState};
use kapell_core::seams::Timestamp;
use kapell_node::board::ReadOnly;

use super::counts::Counts;
use super::parts::{age, spoken};
use super::{Html, html};

/// How many are shown.
const MOST: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    Crashed,
    Unplaced,
    Restarted,
}

/// Instances of a process that have the same trouble.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Complaint {
    trouble: Trouble,
    process: ProcessGuid,
    reason: String,
}

#[derive(Debug, Clone)]
pub(super) struct Affected {
    instances: u32,
    /// The lowest index.
    first: u32,
    since: Timestamp,
    most_crashes: u32,
    /// Figures of the reason, which differ from one instance to the next.
    figures: String,
}

pub(super) type Complaints = BTreeMap<Complaint, Affected>;

/// Notes what is wrong with an instance; its crashes are old once it has run for `calm`.
pub(super) fn note(complaints: &mut Complaints, lrp: &ActualLrp, calm: Duration, now: Timestamp) {
    let crashed = lrp.crash_reason.as_ref().filter(|_| lrp.crash_count > 0);
    let found = match (lrp.state, &lrp.placement_error) {
        (ActualState::Crashed, _) => {
            Some((Trouble::Crashed, lrp.crash_reason.clone().unwrap_or_default()))
        }
        (ActualState::Unclaimed, Some(error)) => Some((Trouble::Unplaced, error.clone())),
        (ActualState::Running, _) if now.since(lrp.since) > calm => None,
        (ActualState::Unclaimed | ActualState::Claimed | ActualState::Running, _) => {
            crashed.map(|reason| (Trouble::Restarted, reason.clone()))
        }
    };
    let Some((trouble, reason)) = found else { return };
    let (reason, figures) = match (trouble, reason.find(" (")) {
        (Trouble::Unplaced, Some(at)) => (reason[..at].to_owned(), reason[at..].to_owned()),
        (Trouble::Unplaced | Trouble::Crashed | Trouble::Restarted, _) => (reason, String::new()),
    };
    let key = Complaint { trouble, process: lrp.process_guid.clone(), reason };
    let affected = complaints.entry(key).or_insert_with(|| Affected {
        instances: 0,
        first: lrp.index,
        since: lrp.since,
        most_crashes: 0,
        figures,
    });
    affected.instances += 1;
    affected.first = affected.first.min(lrp.index);
    affected.since = affected.since.min(lrp.since);
    affected.most_crashes = affected.most_crashes.max(lrp.crash_count);
}

/// What is wrong with the platform itself.
#[derive(Debug, Default)]
pub(super) struct Site {
    pub(super) no_cell: bool,
    pub(super) read_only: Option<ReadOnly>,
}

pub(super) fn render(out: &mut Html, counts: &Counts, site: &Site, now: Timestamp) {
    let tasks: Vec<&Task> = counts.latest_tasks.iter().filter(|task| troubled(task)).collect();
    let all = counts.complaints.len()
        + tasks.len()
        + usize::from(site.no_cell)
        + usize::from(site.read_only.is_some());
    if all == 0 {
        return calm(out, counts);
    }
    html!(out; "<section class=\"attention\"><h2 id=\"attention\">Needs attention</h2>\n<ul aria-labelledby=\"attention\">\n");
    if let Some(ReadOnly { why, since }) = &site.read_only {
        html!(out; "<li class=\"bad\"><p class=\"head\"><span class=\"state bad\">read-only</span> for " {age(*since, now)} "</p><p class=\"reason\">The store does not take writes: " {spoken(why)} "</p><p class=\"quiet\">What runs goes on; nothing can be changed until writes are taken again, which is tried all the time.</p></li>\n");
    }
    if site.no_cell {
        html!(out; "<li class=\"bad\"><p class=\"head\"><span class=\"state bad\">no cell</span></p><p class=\"reason\">No cell is present, so nothing can run. Start one: <code>kapell cell</code></p></li>\n");
    }
    for (complaint, affected) in counts.complaints.iter().take(MOST) {
        instances(out, complaint, affected, now);
    }
    for task in tasks.iter().take(MOST.saturating_sub(counts.complaints.len())) {
        of_task(out, task, now);
    }
    html!(out; "</ul>\n");
    let more = (counts.complaints.len() + tasks.len()).saturating_sub(MOST);
    if more > 0 {
        html!(out; "<p class=\"quiet\">and " (more) " more: <code>kapell lrp list</code>, <code>kapell task list</code></p>\n");
    }
    html!(out; "</section>\n");
}

fn calm(out: &mut Html, counts: &Counts) {
    let [unclaimed, claimed, running, _] = counts.lrps;
    if unclaimed + claimed + running > 0 {
        html!(out; "<p class=\"calm\">Nothing needs attention.</p>\n");
    }
}

fn troubled(task: &Task) -> bool {
    task.failed || (task.state == TaskState::Pending && task.placement_error.is_some())
}

fn instances(out: &mut Html, complaint: &Complaint, affected: &Affected, now: Timestamp) {
    let (class, what) = match complaint.trouble {
        Trouble::Crashed => ("bad", "crashed"),
        Trouble::Unplaced => ("waiting", "cannot be placed"),
        Trouble::Restarted => ("waiting", "restarted after a crash"),
    };
    let guid = &complaint.process;
    html!(out;
        "<li class=\"" (class) "\"><p class=\"head\"><span class=\"state " (class) "\">" (affected.instances) " " (what)
        "</span> <a class=\"name\" href=\"/lrp/" (guid) "\">" (guid) "</a> <span class=\"quiet\">for " {age(affected.since, now)}
    );
    if affected.most_crashes > 1 {
        html!(out; ", " (affected.most_crashes) " crashes");
    }
    html!(out; "</span>");
    if complaint.trouble != Trouble::Unplaced {
        html!(out; " <a href=\"/lrp/" (guid) "/" (affected.first) "/log\">Log<span class=\"hidden\"> of " (guid) "/" (affected.first) "</span></a>");
    }
    let reason = format!("{}{}", complaint.reason, affected.figures);
    html!(out; "</p><p class=\"reason\">" {spoken(&reason)} "</p></li>\n");
}

fn of_task(out: &mut Html, task: &Task, now: Timestamp) {
    let (class, what) =
        if task.failed { ("bad", "task failed") } else { ("waiting", "task waits") };
    let reason =
        if task.failed { Some(&task.failure_reason) } else { task.placement_error.as_ref() };
    let guid = task.guid();
    html!(out;
        "<li class=\"" (class) "\"><p class=\"head\"><span class=\"state " (class) "\">" (what) "</span> <a class=\"name\" href=\"/task/"
        (guid) "\">" (guid) "</a> <span class=\"quiet\">for " {age(task.since, now)} "</span>"
    );
    if task.cell_id.is_some() {
        html!(out; " <a href=\"/task/" (guid) "/log\">Log<span class=\"hidden\"> of task " (guid) "</span></a>");
    }
    html!(out; "</p><p class=\"reason\">" {spoken(reason.map_or("", String::as_str))} "</p></li>\n");
}
