//! `/`

use kapell_api::v1::CellView;
use kapell_core::board::{Freshness, ProcessGuid, Resources, Task};
use kapell_core::seams::Timestamp;

use super::attention::Site;
use super::counts::{Counts, MOST_ROWS, Process};
use super::parts::{age, share, span, spoken, task_state};
use super::table::Column::{Always, Extra};
use super::table::{empty, end, section};
use super::{Html, attention, events, html};
use crate::http::Desk;

pub(super) async fn render(desk: &dyn Desk, now: Timestamp) -> Html {
    let recent = events::recent(desk).await;
    let counts = Counts::of(desk, now);
    let cells = desk.cells();
    let mut out = Html::default();
    html!(out; "<h1>Overview</h1>\n");
    let site = Site { no_cell: cells.is_empty(), read_only: desk.read_only() };
    attention::render(&mut out, &counts, &site, now);
    if counts.processes.is_empty() && counts.latest_tasks.is_empty() {
        welcome(&mut out);
    }
    tiles(&mut out, &counts, &cells);
    processes(&mut out, &counts);
    tasks(&mut out, &counts, now);
    cells_table(&mut out, &cells, &counts);
    domains(&mut out, &counts.domains, now);
    events::render(&mut out, &recent);
    out
}

fn welcome(out: &mut Html) {
    html!(out;
        "<section class=\"welcome\"><h2>Nothing runs here yet</h2>\n<p>Try one of these; this page shows at once what comes of it.</p>\n"
        "<pre tabindex=\"0\">kapell task run --wait -- echo hello\nkapell apply -f examples/lrp.yaml\nkapell logs -f clock/0</pre></section>\n"
    );
}

fn tiles(out: &mut Html, counts: &Counts, cells: &[CellView]) {
    let [unclaimed, claimed, running, crashed] = counts.lrps;
    let [pending, tasks_running, completed, resolving] = counts.tasks;
    let succeeded = (completed + resolving).saturating_sub(counts.failed_tasks);
    let present = cells.iter().filter(|cell| cell.state == "present").count();
    let instances = [
        ("good", running, "running"),
        ("starting", claimed, "starting"),
        ("waiting", unclaimed, "waiting"),
        ("bad", crashed, "crashed"),
    ];
    let tasks = [
        ("starting", tasks_running, "running"),
        ("waiting", pending, "pending"),
        ("good", succeeded, "succeeded"),
        ("bad", counts.failed_tasks, "failed"),
    ];
    html!(out; "<ul class=\"tiles\" aria-label=\"Counts\">\n");
    tile(out, "Instances", &instances);
    tile(out, "Tasks", &tasks);
    tile(
        out,
        "Cells",
        &[("good", present, "present"), ("waiting", cells.len() - present, "other")],
    );
    html!(out; "</ul>\n");
}

fn tile(out: &mut Html, title: &'static str, numbers: &[(&'static str, usize, &'static str)]) {
    html!(out; "<li class=\"tile\"><h2>" (title) "</h2><p>");
    for (class, count, what) in numbers {
        let class = if *count == 0 { &"none" } else { class };
        html!(out; "<span class=\"count " (class) "\"><strong>" (count) "</strong> " (what) "</span> ");
    }
    html!(out; "</p></li>\n");
}

fn processes(out: &mut Html, counts: &Counts) {
    const TITLE: &str = "Long-running processes";
    if counts.processes.is_empty() {
        return empty(out, TITLE, &spoken("None is desired. Try: `kapell apply -f FILE`"));
    }
    let columns = [Always("Process"), Extra("Domain"), Always("Running"), Always("State")];
    section(out, "lrps", TITLE, &columns);
    for (guid, process) in counts.processes.iter().take(MOST_ROWS) {
        row(out, guid, process);
    }
    end(out, counts.processes.len().saturating_sub(MOST_ROWS), "kapell lrp list");
}

fn row(out: &mut Html, guid: &ProcessGuid, process: &Process) {
    let [unclaimed, claimed, running, crashed] = process.states;
    html!(out; "<tr><th scope=\"row\" class=\"name\"><a href=\"/lrp/" (guid) "\">" (guid) "</a></th><td class=\"extra\">" (process.domain) "</td><td class=\"number\">" (running));
    if let Some(desired) = process.desired {
        html!(out; "/" (desired));
    }
    html!(out; "</td><td>");
    let there: u32 = process.states.iter().sum();
    let missing = process.desired.map_or(0, |desired| desired.saturating_sub(there));
    for (count, class, what) in [
        (crashed, "bad", "crashed"),
        (unclaimed, "waiting", "waiting"),
        (missing, "waiting", "missing"),
        (claimed, "starting", "starting"),
        (process.evacuating, "starting", "evacuating"),
    ] {
        if count > 0 {
            html!(out; "<span class=\"state " (class) "\">" (count) " " (what) "</span> ");
        }
    }
    match process.desired {
        None => html!(out; "<span class=\"state waiting\">not desired any more</span>"),
        Some(0) => html!(out; "<span class=\"state starting\">scaled to none</span>"),
        Some(desired) if running >= desired => {
            html!(out; "<span class=\"state good\">all running</span>");
        }
        Some(_) => {}
    }
    html!(out; "</td></tr>\n");
}

fn tasks(out: &mut Html, counts: &Counts, now: Timestamp) {
    if counts.latest_tasks.is_empty() {
        let text = "There is none. Try: `kapell task run -- echo hello`";
        return empty(out, "Tasks", &spoken(text));
    }
    let columns = [
        Always("Task"),
        Extra("Domain"),
        Always("State"),
        Always("Since"),
        Extra("Cell"),
        Extra("Why"),
    ];
    section(out, "tasks", "Tasks", &columns);
    for task in &counts.latest_tasks {
        task_row(out, task, now);
    }
    let all: usize = counts.tasks.iter().sum();
    end(out, all - counts.latest_tasks.len(), "kapell task list");
}

fn task_row(out: &mut Html, task: &Task, now: Timestamp) {
    let why = if task.failed { Some(&task.failure_reason) } else { task.placement_error.as_ref() };
    let cell = task.cell_id.as_ref().map(ToString::to_string).unwrap_or_default();
    html!(out;
        "<tr><th scope=\"row\" class=\"name\"><a href=\"/task/" (task.guid()) "\">" (task.guid()) "</a></th><td class=\"extra\">" (task.definition.domain)
        "</td><td>" {task_state(task.state, task.failed)} "</td><td class=\"number\">" {age(task.since, now)} "</td><td class=\"extra\">" (cell)
        "</td><td class=\"extra\">" {spoken(why.map_or("", String::as_str))} "</td></tr>\n"
    );
}

fn cells_table(out: &mut Html, cells: &[CellView], counts: &Counts) {
    if cells.is_empty() {
        return empty(out, "Cells", &spoken("None is present."));
    }
    let columns = [
        Always("Cell"),
        Always("State"),
        Extra("Zone"),
        Always("Memory"),
        Extra("Disk"),
        Extra("Containers"),
        Extra("LRPs"),
        Extra("Tasks"),
        Extra("Heard of"),
    ];
    section(out, "cells", "Cells", &columns);
    for cell in cells.iter().take(MOST_ROWS) {
        let id = &cell.presence.cell_id;
        let class = match cell.state.as_str() {
            "present" => "good",
            "evacuating" => "starting",
            _ => "waiting",
        };
        let heard = cell.heard_ms_ago.and_then(|ms| i64::try_from(ms).ok());
        html!(out;
            "<tr><th scope=\"row\">" (id) "</th><td><span class=\"state " (class) "\">" (cell.state) "</span></td><td class=\"extra\">" (cell.presence.zone) "</td>"
        );
        let used = counts.used.get(id).copied().unwrap_or_default();
        bars(out, used, cell.presence.capacity);
        html!(out;
            "<td class=\"number extra\">" (cell.lrps) "</td><td class=\"number extra\">" (cell.tasks) "</td><td class=\"number extra\">"
            (heard.map(|ms| span(ms) + " ago").unwrap_or_default()) "</td></tr>\n"
        );
    }
    end(out, cells.len().saturating_sub(MOST_ROWS), "kapell cells");
}

fn bars(out: &mut Html, used: Resources, all: Resources) {
    for (used, all, unit, what, class) in [
        (used.memory_mb, all.memory_mb, "MB", "Memory", "bar"),
        (used.disk_mb, all.disk_mb, "MB", "Disk", "bar extra"),
        (used.containers, all.containers, "", "Containers", "bar extra"),
    ] {
        let high = u64::from(all) * 9 / 10;
        html!(out;
            "<td class=\"" (class) "\"><meter aria-label=\"" (what) " used\" min=\"0\" max=\"" (all.max(1)) "\" high=\"" (high) "\" value=\"" (used.min(all))
            "\"></meter> <small>" (share(used, all, unit)) "</small></td>"
        );
    }
}

fn domains(out: &mut Html, domains: &[Freshness], now: Timestamp) {
    if domains.is_empty() {
        let text = "None was declared fresh: what is not desired any more stays.";
        return empty(out, "Domains", &spoken(text));
    }
    section(out, "domains", "Domains", &[Always("Domain"), Always("Fresh"), Always("For")]);
    for each in domains.iter().take(MOST_ROWS) {
        let (class, fresh) = if each.is_fresh(now) { ("good", "fresh") } else { ("bad", "stale") };
        let left = match each.expires_at {
            None => "ever".to_owned(),
            Some(until) if until > now => span(until.0 - now.0),
            Some(until) => format!("ended {} ago", span(now.0 - until.0)),
        };
        html!(out; "<tr><th scope=\"row\" class=\"name\">" (each.domain) "</th><td><span class=\"state " (class) "\">" (fresh) "</span></td><td>" (left) "</td></tr>\n");
    }
    end(out, domains.len().saturating_sub(MOST_ROWS), "kapell domain list");
}
