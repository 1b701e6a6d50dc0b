//! `/`

use std::time::Duration;

use kapell_api::v1::CellView;
use kapell_core::board::{Event, Freshness, ProcessGuid, Resources, Task};
use kapell_core::seams::Timestamp;
use kapell_node::board::{EventId, Next};
use tokio::time::timeout;

use super::counts::{Counts, MOST_ROWS, Process};
use super::parts::{age, span, task_state};
use super::{Html, html};
use crate::http::Desk;

const RECENT: u64 = 15;

pub(super) async fn render(desk: &dyn Desk, now: Timestamp) -> Html {
    let events = recent(desk).await;
    let counts = Counts::of(desk);
    let cells = desk.cells();
    let mut out = Html::default();
    html!(out; "<h1>Overview</h1>\n");
    tiles(&mut out, &counts, &cells);
    processes(&mut out, &counts);
    tasks(&mut out, &counts, now);
    cells_table(&mut out, &cells, &counts);
    domains(&mut out, &counts.domains, now);
    recent_events(&mut out, &events);
    out
}

fn tiles(out: &mut Html, counts: &Counts, cells: &[CellView]) {
    let [unclaimed, claimed, running, crashed] = counts.lrps;
    let [pending, tasks_running, completed, resolving] = counts.tasks;
    let present = cells.iter().filter(|cell| cell.state == "present").count();
    html!(out; "<ul class=\"tiles\" aria-label=\"Counts\">\n");
    tile(out, "good", running, "instances running");
    tile(out, "starting", claimed, "starting");
    tile(out, "waiting", unclaimed, "waiting for a cell");
    tile(out, "bad", crashed, "crashed");
    tile(out, "starting", tasks_running, "tasks running");
    tile(out, "waiting", pending, "tasks pending");
    tile(
        out,
        "good",
        (completed + resolving).saturating_sub(counts.failed_tasks),
        "tasks succeeded",
    );
    tile(out, "bad", counts.failed_tasks, "tasks failed");
    tile(out, "good", present, "cells present");
    html!(out; "</ul>\n");
}

fn tile(out: &mut Html, class: &'static str, count: usize, what: &'static str) {
    let class = if count == 0 { "none" } else { class };
    html!(out; "<li class=\"tile " (class) "\"><strong>" (count) "</strong> " (what) "</li>\n");
}

/// Begins a section with a table, or says that it is empty.
fn section(out: &mut Html, id: &'static str, title: &'static str, columns: &[&'static str]) {
    html!(out; "<section aria-labelledby=\"" (id) "\"><h2 id=\"" (id) "\">" (title) "</h2>\n");
    html!(out; "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"" (id) "\"><table><thead><tr>");
    for column in columns {
        html!(out; "<th scope=\"col\">" (column) "</th>");
    }
    html!(out; "</tr></thead><tbody>\n");
}

fn empty(out: &mut Html, id: &'static str, title: &'static str, text: &'static str) {
    html!(out; "<section aria-labelledby=\"" (id) "\"><h2 id=\"" (id) "\">" (title) "</h2><p class=\"quiet\">" (text) "</p></section>\n");
}

fn end(out: &mut Html, more: usize, command: &'static str) {
    html!(out; "</tbody></table></div>");
    if more > 0 {
        html!(out; "<p class=\"quiet\">and " (more) " more: <code>" (command) "</code></p>");
    }
    html!(out; "</section>\n");
}

fn processes(out: &mut Html, counts: &Counts) {
    let title = "Long-running processes";
    if counts.processes.is_empty() {
        return empty(out, "lrps", title, "None is desired. Try: kapell apply -f FILE");
    }
    section(out, "lrps", title, &["Process", "Domain", "Running", "State"]);
    for (guid, process) in counts.processes.iter().take(MOST_ROWS) {
        row(out, guid, process);
    }
    end(out, counts.processes.len().saturating_sub(MOST_ROWS), "kapell lrp list");
}

fn row(out: &mut Html, guid: &ProcessGuid, process: &Process) {
    let [unclaimed, claimed, running, crashed] = process.states;
    html!(out; "<tr><th scope=\"row\"><a href=\"/lrp/" (guid) "\">" (guid) "</a></th><td>" (process.domain) "</td><td class=\"number\">" (running));
    if let Some(desired) = process.desired {
        html!(out; " / " (desired));
    }
    html!(out; "</td><td>");
    for (count, class, what) in [
        (crashed, "bad", "crashed"),
        (unclaimed, "waiting", "waiting"),
        (claimed, "starting", "starting"),
    ] {
        if count > 0 {
            html!(out; "<span class=\"state " (class) "\">" (count) " " (what) "</span> ");
        }
    }
    match process.desired {
        None => html!(out; "<span class=\"state waiting\">not desired any more</span>"),
        Some(desired) if running >= desired => {
            html!(out; "<span class=\"state good\">all running</span>");
        }
        Some(_) => {}
    }
    html!(out; "</td></tr>\n");
}

fn tasks(out: &mut Html, counts: &Counts, now: Timestamp) {
    if counts.latest_tasks.is_empty() {
        return empty(out, "tasks", "Tasks", "There is none. Try: kapell task run -- echo hello");
    }
    section(out, "tasks", "Tasks", &["Task", "Domain", "State", "Since", "Cell", "Why"]);
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
        "<tr><th scope=\"row\"><a href=\"/task/" (task.guid()) "\">" (task.guid()) "</a></th><td>" (task.definition.domain)
        "</td><td>" {task_state(task.state, task.failed)} "</td><td>" {age(task.since, now)} "</td><td>" (cell)
        "</td><td>" (why.map_or("", String::as_str)) "</td></tr>\n"
    );
}

fn cells_table(out: &mut Html, cells: &[CellView], counts: &Counts) {
    if cells.is_empty() {
        return empty(out, "cells", "Cells", "No cell is present, so nothing can run.");
    }
    let columns =
        ["Cell", "State", "Zone", "Memory", "Disk", "Containers", "LRPs", "Tasks", "Heard of"];
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
            "<tr><th scope=\"row\">" (id) "</th><td><span class=\"state " (class) "\">" (cell.state) "</span></td><td>" (cell.presence.zone) "</td>"
        );
        let used = counts.used.get(id).copied().unwrap_or_default();
        bars(out, used, cell.presence.capacity);
        html!(out;
            "<td class=\"number\">" (cell.lrps) "</td><td class=\"number\">" (cell.tasks) "</td><td>"
            (heard.map(|ms| span(ms) + " ago").unwrap_or_default()) "</td></tr>\n"
        );
    }
    end(out, cells.len().saturating_sub(MOST_ROWS), "kapell cells");
}

fn bars(out: &mut Html, used: Resources, all: Resources) {
    for (used, all, unit, what) in [
        (used.memory_mb, all.memory_mb, " MB", "Memory"),
        (used.disk_mb, all.disk_mb, " MB", "Disk"),
        (used.containers, all.containers, "", "Containers"),
    ] {
        let high = u64::from(all) * 9 / 10;
        html!(out;
            "<td><meter aria-label=\"" (what) " used\" min=\"0\" max=\"" (all.max(1)) "\" high=\"" (high) "\" value=\"" (used.min(all))
            "\"></meter> <small>" (used) " / " (all) (unit) "</small></td>"
        );
    }
}

fn domains(out: &mut Html, domains: &[Freshness], now: Timestamp) {
    if domains.is_empty() {
        return empty(
            out,
            "domains",
            "Domains",
            "None was declared fresh: what is not desired any more stays.",
        );
    }
    section(out, "domains", "Domains", &["Domain", "Fresh", "For"]);
    for each in domains.iter().take(MOST_ROWS) {
        let (class, fresh) = if each.is_fresh(now) { ("good", "fresh") } else { ("bad", "stale") };
        let left = match each.expires_at {
            None => "ever".to_owned(),
            Some(until) if until > now => span(until.0 - now.0),
            Some(until) => format!("not since {}", span(now.0 - until.0)),
        };
        html!(out; "<tr><th scope=\"row\">" (each.domain) "</th><td><span class=\"state " (class) "\">" (fresh) "</span></td><td>" (left) "</td></tr>\n");
    }
    end(out, domains.len().saturating_sub(MOST_ROWS), "kapell domain list");
}

/// The last events that are kept, newest first.
async fn recent(desk: &dyn Desk) -> Vec<(EventId, String, String)> {
    let last = desk.last_event();
    let from = EventId { number: last.number.saturating_sub(RECENT), ..last };
    let mut watcher = desk.events(Some(from));
    let mut found = Vec::new();
    // All of them are there already; whoever was dropped meanwhile gives none.
    while let Ok(Some(next)) = timeout(Duration::from_millis(50), watcher.next()).await {
        let id = match next {
            Next::Gap(id) => id,
            Next::Event(id, event) => {
                found.push((id, event.name().replace('_', " "), subject(&event)));
                id
            }
        };
        if id >= last {
            break;
        }
    }
    found.reverse();
    found
}

fn subject(event: &Event) -> String {
    let newest = |it: &Option<String>, was: Option<String>| it.clone().or(was).unwrap_or_default();
    match event {
        Event::DesiredLrp(change) => {
            let name = |it: &kapell_core::board::DesiredLrp| it.process_guid.to_string();
            newest(&change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::ActualLrp(change) => {
            let name =
                |it: &kapell_core::board::ActualLrp| format!("{} {}", it.key(), it.state.name());
            newest(&change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::Task(change) => {
            let name = |it: &Task| format!("{} {}", it.guid(), it.state.name());
            newest(&change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::Domain(change) => {
            let name = |it: &Freshness| it.domain.to_string();
            newest(&change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::Cell { cell_id, .. } => cell_id.to_string(),
    }
}

fn recent_events(out: &mut Html, events: &[(EventId, String, String)]) {
    if events.is_empty() {
        return empty(out, "events", "Recent events", "Nothing happened since this host leads.");
    }
    section(out, "events", "Recent events", &["Event", "About", "Id"]);
    for (id, name, about) in events {
        html!(out; "<tr><th scope=\"row\">" (name) "</th><td>" (about) "</td><td class=\"quiet\">" (id.epoch) "-" (id.number) "</td></tr>\n");
    }
    end(out, 0, "");
}
