//! `/run/{run_id}`

use kapell_api::v1::{RunLive, RunView};
use kapell_core::job::explain;
use kapell_core::job::when;
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;

use super::parts::{fact, span, spoken};
use super::run_parts::{button, moment, run_state, trigger};
use super::table::Column::{Always, Extra};
use super::table::{end, section};
use super::{Html, deliveries, gantt, html};
use crate::http::{Desk, Scheduler, whole_run};

pub(super) async fn render(
    desk: &dyn Desk,
    scheduler: Option<&dyn Scheduler>,
    run_id: &RunId,
    now: Timestamp,
) -> Option<Html> {
    let view = whole_run(desk, scheduler, run_id).await?;
    let it = &view.run;
    let mut out = Html::default();
    html!(out;
        "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a> / <a href=\"/jobs\">Jobs</a> / <a href=\"/job/" (view.job_id) "\">" (view.job_id)
        "</a></nav><h1>Run " (run_id) "</h1>\n<div class=\"tools\"><span>" {run_state(it.state, it.skipped)} "</span> <span id=\"attempt\" data-attempt=\"" (it.attempt) "\"></span><a href=\"/run/" (run_id) "/log\">Log</a> "
    );
    if it.state.is_final() {
        button(&mut out, &format!("/run/{run_id}/retry"), "Run again");
    } else {
        button(&mut out, &format!("/run/{run_id}/cancel"), "Cancel");
    }
    html!(out; "</div>\n");
    if !it.reason.is_empty() {
        html!(out; "<p class=\"reason\">" {spoken(&it.reason)} "</p>\n");
    }
    if let Some(live) = &view.live {
        stands(&mut out, &view, live, now);
    }
    gantt::render(&mut out, std::slice::from_ref(&view), now);
    timeline(&mut out, &view);
    deliveries::render(&mut out, scheduler, now, |it| it.run_id == *run_id);
    facts(&mut out, &view, now);
    Some(out)
}

/// What a run under way does now, and what happens to it next.
fn stands(out: &mut Html, view: &RunView, live: &RunLive, now: Timestamp) {
    html!(out;
        "<p class=\"notice\">" (view.run.state.name()) " since " {moment(live.since, &view.timezone, now)} ": " (view.run.state.meaning()) "."
    );
    if let Some(doing) = &live.doing {
        html!(out; " Now: " {spoken(&doing.what)} ", since " {moment(doing.since, &view.timezone, now)} ".");
    }
    if let Some(timer) = &live.timer {
        html!(out; " Next: <code>" (timer.what) "</code> " {moment(timer.at, &view.timezone, now)} ".");
    }
    html!(out; "</p>\n");
}

/// Every decision about it, the oldest first.
fn timeline(out: &mut Html, view: &RunView) {
    let columns = [Always("At"), Always("What"), Always("Why"), Extra("Attempt")];
    section(out, "timeline", "Timeline", &columns);
    for decision in explain::of_run(&view.run, None) {
        let at = when::show(decision.at, &view.timezone);
        entry(out, &at, decision.about.name(), &decision.text, decision.attempt);
    }
    end(out, 0, "");
}

fn entry(out: &mut Html, at: &str, what: &str, why: &str, attempt: u32) {
    html!(out;
        "<tr><th scope=\"row\" class=\"number\">" (at) "</th><td>" (what) "</td><td class=\"about\">" {spoken(why)} "</td><td class=\"number extra\">" (attempt) "</td></tr>\n"
    );
}

fn facts(out: &mut Html, view: &RunView, now: Timestamp) {
    let run = &view.run;
    html!(out; "<section><h2>Facts</h2><dl class=\"facts\">\n");
    fact(out, "Triggered by", &trigger(&run.trigger));
    fact(out, "Attempt", &run.attempt.to_string());
    let beats = view.live.as_ref().and_then(|live| live.heartbeats);
    fact(out, "Heartbeats", &beats.map(|beats| beats.to_string()).unwrap_or_default());
    fact(out, "Exit code", &run.exit_code.map(|code| code.to_string()).unwrap_or_default());
    fact(out, "Revision of its job", &run.revision.to_string());
    for (name, value) in &run.parameters {
        html!(out; "<div><dt>Parameter " (name) "</dt><dd>" (value) "</dd></div>\n");
    }
    let times = [
        ("Scheduled", Some(run.scheduled_at)),
        ("Due", Some(run.due_at).filter(|at| *at != run.scheduled_at)),
        ("Started", run.started_at),
        ("Next attempt", run.retry_at),
        ("Ended", run.completed_at),
    ];
    for (name, at) in times.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        html!(out; "<div><dt>" (name) "</dt><dd>" {moment(at, &view.timezone, now)} "</dd></div>\n");
    }
    if let Some(started) = run.started_at {
        fact(out, "Took", &span(run.completed_at.unwrap_or(now).0 - started.0));
    }
    html!(out; "</dl></section>\n");
}
