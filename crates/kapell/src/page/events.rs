//! What happened lately.

use std::time::Duration;

use kapell_core::board::{ActualLrp, DesiredLrp, Event, Freshness, Task};
use kapell_core::job::Job;
use kapell_core::run::Run;
use kapell_node::board::{EventId, Next};
use tokio::time::timeout;

use super::parts::spoken;
use super::table::Column::{Always, Extra};
use super::table::{empty, end, section};
use super::{Html, html};
use crate::http::Desk;

const RECENT: u64 = 15;

pub(super) struct Recent {
    id: EventId,
    name: String,
    about: String,
}

/// The last events that are kept, newest first.
pub(super) async fn recent(desk: &dyn Desk) -> Vec<Recent> {
    let last = desk.last_event();
    let from = EventId { number: last.number.saturating_sub(RECENT), ..last };
    let mut watcher = desk.events(Some(from));
    let mut found = Vec::new();
    // All of them are there already; whoever was dropped meanwhile gives none.
    while let Ok(Some(next)) = timeout(Duration::from_millis(50), watcher.next()).await {
        let id = match next {
            Next::Gap(id) => id,
            Next::Event(id, event) => {
                found.push(Recent { id, name: name(&event), about: subject(&event) });
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

fn name(event: &Event) -> String {
    let name = event.name().replace("desired_lrp", "process").replace("actual_lrp", "instance");
    name.replace('_', " ")
}

fn subject(event: &Event) -> String {
    let newest = |it: Option<String>, was: Option<String>| it.or(was).unwrap_or_default();
    match event {
        Event::DesiredLrp(change) => {
            let name = |it: &DesiredLrp| it.process_guid.to_string();
            newest(change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::ActualLrp(change) => {
            let name = |it: &ActualLrp| format!("{} {}", it.key(), it.state.name());
            newest(change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::ActualLrpCrashed(crash) => {
            let (guid, index, count) = (&crash.process_guid, crash.index, crash.crash_count);
            format!("{guid}/{index} on {}, crash {count}: {}", crash.cell_id, crash.reason)
        }
        Event::Task(change) => {
            let name = |it: &Task| format!("{} {}", it.guid(), it.state.name());
            newest(change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::Domain(change) => {
            let name = |it: &Freshness| it.domain.to_string();
            newest(change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::Job(change) => {
            let name = |it: &Job| it.job_id.to_string();
            newest(change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::Run(change) => {
            let name = |it: &Run| format!("{} {}", it.run_id, it.state.name());
            newest(change.after.as_deref().map(name), change.before.as_deref().map(name))
        }
        Event::Cell { cell_id, .. } => cell_id.to_string(),
    }
}

pub(super) fn render(out: &mut Html, events: &[Recent]) {
    const TITLE: &str = "Recent events";
    if events.is_empty() {
        return empty(out, TITLE, &spoken("Nothing happened since this host leads."));
    }
    section(out, "events", TITLE, &[Always("Event"), Always("About"), Extra("Id")]);
    for Recent { id, name, about } in events {
        html!(out; "<tr><td class=\"number\">" (name) "</td><td class=\"about\">" (about) "</td><td class=\"extra quiet number\">" (id.epoch) "-" (id.number) "</td></tr>\n");
    }
    end(out, 0, "");
}
