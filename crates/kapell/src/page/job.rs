//! `/job/{job_id}`

use kapell_api::v1::JobView;
use kapell_core::board::JobId;
use kapell_core::job::{Parameter, PauseCause, Payload};
use kapell_core::schedule::Schedule;
use kapell_core::seams::Timestamp;

use super::jobs::state;
use super::parts::{code_fact, fact, names, reasons, spoken};
use super::run_parts::{button, moment, rows};
use super::table::Column::{Always, Extra};
use super::table::{end, section};
use super::{Html, deliveries, gantt, html};
use crate::http::{Desk, RunsWanted, Scheduler, coming, explain_job, job, list_runs};

/// So many of its last runs and next moments are shown.
const RUNS: usize = 50;
const MOMENTS: u32 = 5;

pub(super) fn render(
    desk: &dyn Desk,
    scheduler: Option<&dyn Scheduler>,
    job_id: &JobId,
    now: Timestamp,
) -> Option<Html> {
    let view = job(desk, job_id, now)?;
    let mut out = Html::default();
    html!(out;
        "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a> / <a href=\"/jobs\">Jobs</a></nav><h1>Job " (job_id) "</h1>\n"
    );
    tools(&mut out, &view, now);
    if let Some(why) = explain_job(desk, job_id, None, now) {
        html!(out; "<section><h2>Why</h2><p>" {spoken(&why.summary)} "</p><details data-key=\"why\"><summary>Every decision</summary><ul>");
        reasons(&mut out, &why);
        html!(out; "</ul></details></section>\n");
    }
    next(&mut out, &view, now);
    if view.definition.manual && !view.job.removed {
        manual(&mut out, &view);
    }
    let wanted = RunsWanted { job: Some(job_id.clone()), limit: RUNS, ..RunsWanted::default() };
    let runs = list_runs(desk, &wanted, |_| true);
    if !runs.is_empty() {
        html!(out; "<section><h2>Last runs</h2>\n");
        gantt::render(&mut out, &runs, now);
        html!(out; "</section>\n");
    }
    let columns =
        [Always("Run"), Always("State"), Always("Scheduled"), Extra("Took"), Extra("Why")];
    section(&mut out, "runs", "Runs", &columns);
    rows(&mut out, &runs, now);
    end(&mut out, 0, "");
    deliveries::render(&mut out, scheduler, now, |it| it.job_id == *job_id);
    figures(&mut out, scheduler, job_id);
    facts(&mut out, &view, now);
    Some(out)
}

/// What its actions have counted or set.
fn figures(out: &mut Html, scheduler: Option<&dyn Scheduler>, job_id: &JobId) {
    let figures = scheduler.map(|it| it.metrics(job_id)).unwrap_or_default();
    if figures.is_empty() {
        return;
    }
    html!(out; "<section><h2>Figures</h2><dl class=\"facts\">\n");
    for (name, value) in figures {
        html!(out; "<div><dt>" (name) "</dt><dd>" (value) "</dd></div>\n");
    }
    html!(out; "</dl></section>\n");
}

/// How it stands, and what can be done about it.
fn tools(out: &mut Html, view: &JobView, now: Timestamp) {
    let id = &view.job.job_id;
    html!(out; "<div class=\"tools\"><span>" {state(view)} " in domain " (view.job.domain) "</span> ");
    if !view.job.removed {
        if view.job.paused.is_some() {
            button(out, &format!("/job/{id}/resume"), "Resume");
        } else {
            html!(out;
                "<form method=\"post\" action=\"/job/" (id) "/pause\" class=\"inline\" data-key=\"pause\"><label>Note <input name=\"note\" maxlength=\"200\"></label> <button>Pause</button></form>"
            );
        }
    }
    html!(out; "</div>\n");
    if let Some(pause) = &view.job.paused {
        let by = match &pause.cause {
            PauseCause::Person { who } => format!("Paused by {who}"),
            PauseCause::Failures { run_id } => format!("Paused after {run_id} failed"),
        };
        html!(out; "<p class=\"notice\">" (by) ", " {moment(pause.at, &view.definition.timezone, now)} ". " (pause.note) "</p>\n");
    }
}

fn next(out: &mut Html, view: &JobView, now: Timestamp) {
    let Ok(schedule) = Schedule::of(&view.definition) else { return };
    let next = coming(&view.definition, &schedule, now, MOMENTS);
    if next.moments.is_empty() {
        return;
    }
    html!(out; "<section><h2>Next moments</h2><ol>");
    for it in &next.moments {
        html!(out; "<li>" {moment(it.due_at, &next.timezone, now)});
        if let Some(calendar) = &it.excluded {
            html!(out; " <span class=\"state waiting\">excluded</span> " (calendar));
        }
        if let Some(change) = &it.clock_change {
            html!(out; " <small>" (change) "</small>");
        }
        html!(out; "</li>");
    }
    html!(out; "</ol></section>\n");
}

/// A form for a run with other values.
fn manual(out: &mut Html, view: &JobView) {
    html!(out;
        "<section><h2>Run it now</h2><form method=\"post\" action=\"/job/" (view.job.job_id) "/trigger\" class=\"card\" data-key=\"trigger\">\n"
    );
    for parameter in &view.definition.parameters {
        field(out, parameter);
    }
    html!(out; "<button>Run now</button></form></section>\n");
}

fn field(out: &mut Html, parameter: &Parameter) {
    let Parameter { name, default, options, changeable, about } = parameter;
    let value = default.as_deref().unwrap_or_default();
    html!(out; "<label>" (name) " <small>" (about) "</small> ");
    if !changeable {
        html!(out; "<output>" (value) "</output></label>\n");
        return;
    }
    if options.is_empty() {
        html!(out; "<input name=\"param." (name) "\" value=\"" (value) "\"");
        if default.is_none() {
            html!(out; " required");
        }
        html!(out; "></label>\n");
        return;
    }
    html!(out; "<select name=\"param." (name) "\">");
    for option in options {
        html!(out; "<option value=\"" (option) "\"");
        if option == value {
            html!(out; " selected");
        }
        html!(out; ">" (option) "</option>");
    }
    html!(out; "</select></label>\n");
}

fn facts(out: &mut Html, view: &JobView, now: Timestamp) {
    let definition = &view.definition;
    html!(out; "<section><h2>Definition</h2><dl class=\"facts\">\n");
    match definition.payload() {
        Some(Payload::Command(command)) => {
            let args = command.args.iter().flatten().map(String::as_str);
            let words: Vec<&str> = std::iter::once(command.command.as_str()).chain(args).collect();
            code_fact(out, "Runs", &words.join(" "));
            fact(out, "Environment", &names(&command.env));
        }
        Some(Payload::Task(_)) => fact(out, "Runs", "a task on a cell"),
        Some(Payload::Kubernetes(kubernetes)) => fact(out, "Runs", &kubernetes.tell()),
        Some(Payload::Workflow(workflow)) => match (&workflow.file, &workflow.text) {
            (Some(file), _) => code_fact(out, "Runs the workflow", file),
            (None, text) => {
                code_fact(out, "Runs the workflow", text.as_deref().unwrap_or_default());
            }
        },
        None => {}
    }
    fact(out, "Name", &definition.name);
    fact(out, "Schedule", &definition.schedule.join("; "));
    fact(out, "Time zone", &definition.timezone);
    fact(out, "Overlap", definition.overlap.name());
    fact(out, "At once", &definition.max_concurrent_runs.to_string());
    fact(out, "Catch-up", definition.catch_up.policy.name());
    fact(out, "Tags", &definition.tags.join(", "));
    fact(out, "Revision", &view.job.revision.to_string());
    html!(out; "<div><dt>Changed</dt><dd>" {moment(view.job.updated_at, &definition.timezone, now)} "</dd></div>\n</dl></section>\n");
}
