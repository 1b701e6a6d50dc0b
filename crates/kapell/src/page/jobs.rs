//! `/jobs`

use kapell_api::v1::JobView;
use kapell_core::seams::Timestamp;

use super::counts::MOST_ROWS;
use super::parts::spoken;
use super::run_parts::{moment, run_state};
use super::table::Column::{Always, Extra};
use super::table::{empty, end, section};
use super::{Html, html};
use crate::http::{Desk, list_jobs};

pub(super) fn render(desk: &dyn Desk, now: Timestamp) -> Html {
    let jobs = list_jobs(desk, now, |_, _| true);
    let mut out = Html::default();
    html!(out; "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a></nav><h1>Jobs</h1>\n");
    table(&mut out, &jobs, now);
    out
}

fn table(out: &mut Html, jobs: &[JobView], now: Timestamp) {
    if jobs.is_empty() {
        return empty(out, "Jobs", &spoken("There is none. Try: `kapell job apply -f FILE`"));
    }
    let columns = [
        Always("Job"),
        Always("State"),
        Extra("Schedule"),
        Always("Next run"),
        Always("Last run"),
        Extra("Active"),
        Extra("Domain"),
    ];
    section(out, "jobs", "All jobs", &columns);
    for view in jobs.iter().take(MOST_ROWS) {
        row(out, view, now);
    }
    end(out, jobs.len().saturating_sub(MOST_ROWS), "kapell job list");
}

fn row(out: &mut Html, view: &JobView, now: Timestamp) {
    let (job, zone) = (&view.job, view.definition.timezone.as_str());
    html!(out;
        "<tr><th scope=\"row\" class=\"name\"><a href=\"/job/" (job.job_id) "\">" (job.job_id) "</a></th><td>" {state(view)}
        "</td><td class=\"extra\"><code>" (view.definition.schedule.join("; ")) "</code></td><td class=\"number\">"
    );
    if let Some(at) = view.next_at {
        html!(out; {moment(at, zone, now)});
    }
    html!(out; "</td><td>");
    if let Some(last) = &view.last_run {
        html!(out; "<a href=\"/run/" (last.run_id) "\">" {run_state(last.state, last.skipped)} "</a> " {moment(last.scheduled_at, zone, now)});
    }
    html!(out;
        "</td><td class=\"number extra\">" (view.active_runs) "</td><td class=\"extra\">" (job.domain) "</td></tr>\n"
    );
}

/// Whether it is scheduled.
pub(super) fn state(view: &JobView) -> Html {
    let (class, text) = if view.job.removed {
        ("bad", "removed")
    } else if view.job.paused.is_some() {
        ("waiting", "paused")
    } else if view.definition.suspend {
        ("waiting", "suspended")
    } else {
        ("good", "on")
    };
    let mut out = Html::default();
    html!(out; "<span class=\"state " (class) "\">" (text) "</span>");
    out
}
