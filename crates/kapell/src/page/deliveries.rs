//! The messages that a job or a run sent to others.

use kapell_api::v1::WebhookDelivery;
use kapell_core::seams::Timestamp;

use super::parts::span;
use super::table::Column::{Always, Extra};
use super::table::{end, section};
use super::{Html, html};
use crate::http::Scheduler;

/// So many are shown.
const MOST: usize = 20;

/// Those that `of` takes, the newest first; nothing if there are none.
pub(super) fn render(
    out: &mut Html,
    scheduler: Option<&dyn Scheduler>,
    now: Timestamp,
    of: impl Fn(&WebhookDelivery) -> bool,
) {
    let mut all = scheduler.map(Scheduler::deliveries).unwrap_or_default();
    all.retain(of);
    if all.is_empty() {
        return;
    }
    let columns = [
        Always("Message"),
        Always("State"),
        Always("To"),
        Extra("Run"),
        Extra("Tries"),
        Extra("Asked"),
        Extra("Why"),
    ];
    section(out, "deliveries", "Messages", &columns);
    for it in all.iter().take(MOST) {
        row(out, it, now);
    }
    end(out, all.len().saturating_sub(MOST), "kapell job deliveries");
}

fn row(out: &mut Html, it: &WebhookDelivery, now: Timestamp) {
    let class = match it.state.as_str() {
        "delivered" => "good",
        "given_up" => "bad",
        _ => "waiting",
    };
    let status = it.status.map(|status| format!(" {status}")).unwrap_or_default();
    html!(out;
        "<tr><th scope=\"row\">" (it.what) "</th><td><span class=\"state " (class) "\">" (it.state.replace('_', " ")) "</span>" (status)
        "</td><td class=\"about\">" (it.place) "</td><td class=\"extra\"><a href=\"/run/" (it.run_id) "\">" (it.run_id)
        "</a></td><td class=\"number extra\">" (it.attempts) "</td><td class=\"number extra\">" (span(now.0 - it.asked_at.0))
        " ago</td><td class=\"about extra\">" (it.why) "</td></tr>\n"
    );
}
