//! `/lrp/{process_guid}`

use kapell_core::board::{ActualLrp, ActualState, DesiredLrp, LrpKey, ProcessGuid, shown};
use kapell_core::seams::Timestamp;

use super::counts::MOST_ROWS;
use super::parts::{
    action, age, code_fact, fact, lrp_state, megabytes, names, reasons, span, spoken,
};
use super::table::Column::Always;
use super::table::{end, section};
use super::{Html, html};
use crate::http::{Desk, Subject, explain};

pub(super) fn render(desk: &dyn Desk, guid: &ProcessGuid, now: Timestamp) -> Option<Html> {
    let mut found: (Option<DesiredLrp>, Vec<ActualLrp>) = (None, Vec::new());
    desk.look(guid.as_str(), &mut |records| {
        let mut both: Vec<ActualLrp> =
            records.instances_of(guid).chain(records.evacuating_of(guid)).cloned().collect();
        both.sort_by_key(|lrp| (lrp.index, lrp.evacuating));
        found = (records.desired_lrp(guid).cloned(), both);
    });
    let (desired, lrps) = found;
    if desired.is_none() && lrps.is_empty() {
        return None;
    }
    let mut out = Html::default();
    html!(out; "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a></nav><h1>" (guid) "</h1>\n");
    match &desired {
        Some(desired) => standing(&mut out, desired, &lrps),
        None => html!(out; "<p class=\"notice\">Nobody desires it any more.</p>\n"),
    }
    let columns = ["Index", "State", "Why", "Since", "Cell", "Address", "Crashes", "Log"];
    section(&mut out, "instances", "Instances", &columns.map(Always));
    // What is wrong is not cut off.
    let mut rows: Vec<&ActualLrp> = lrps.iter().collect();
    if rows.len() > MOST_ROWS {
        rows.sort_by_key(|lrp| (lrp.state == ActualState::Running, lrp.index, lrp.evacuating));
    }
    for lrp in rows.into_iter().take(MOST_ROWS) {
        row(&mut out, desk, lrp, &lrps, now);
    }
    for index in missing(desired.as_ref(), &lrps).into_iter().take(MOST_ROWS) {
        let why = why(desk, LrpKey { process_guid: guid.clone(), index }, now);
        html!(out; "<tr><th scope=\"row\">" (index) "</th><td><span class=\"state waiting\">MISSING</span></td><td data-label=\"Why\">" {why} "</td><td></td><td></td><td></td><td></td><td></td></tr>\n");
    }
    let command = format!("kapell lrp show {guid}");
    end(&mut out, lrps.len().saturating_sub(MOST_ROWS), &command);
    if let Some(desired) = &desired {
        facts(&mut out, desired, now);
    }
    Some(out)
}

/// How many of how many run.
fn standing(out: &mut Html, desired: &DesiredLrp, lrps: &[ActualLrp]) {
    let runs = lrps.iter().filter(|lrp| lrp.state == ActualState::Running);
    // What moves runs for as long as its twin does.
    let running = runs.map(|lrp| lrp.index).collect::<std::collections::BTreeSet<_>>().len();
    let enough = u32::try_from(running).is_ok_and(|running| running >= desired.instances);
    let class = if enough { "good" } else { "waiting" };
    html!(out; "<p><span class=\"state " (class) "\">" (running) "/" (desired.instances) " running</span> in domain " (desired.domain) "</p>\n");
}

/// Desired indices of which there is nothing.
fn missing(desired: Option<&DesiredLrp>, lrps: &[ActualLrp]) -> Vec<u32> {
    let there: std::collections::BTreeSet<u32> = lrps.iter().map(|lrp| lrp.index).collect();
    let wanted = desired.map_or(0, |desired| desired.instances);
    (0..wanted).filter(|index| !there.contains(index)).take(MOST_ROWS).collect()
}

fn facts(out: &mut Html, desired: &DesiredLrp, now: Timestamp) {
    html!(out; "<section><h2>Desired</h2><dl class=\"facts\">\n");
    code_fact(out, "Runs", &action(&desired.action));
    fact(out, "Domain", desired.domain.as_str());
    fact(out, "Instances", &desired.instances.to_string());
    fact(out, "Memory", &megabytes(desired.memory_mb));
    fact(out, "Disk", &megabytes(desired.disk_mb));
    fact(out, "Root", desired.rootfs.as_deref().unwrap_or("the cell's own"));
    let ports: Vec<String> = desired.ports.iter().map(ToString::to_string).collect();
    fact(out, "Ports", &ports.join(", "));
    fact(out, "Environment", &names(&desired.env));
    fact(out, "Annotation", &desired.annotation);
    fact(out, "Version", &desired.version.to_string());
    if let Some(at) = desired.updated_at {
        html!(out; "<div><dt>Changed</dt><dd>" {age(at, now)} " ago</dd></div>\n");
    }
    html!(out; "</dl></section>\n");
}

fn row(out: &mut Html, desk: &dyn Desk, lrp: &ActualLrp, all: &[ActualLrp], now: Timestamp) {
    let cell = lrp.cell_id.as_ref().map(ToString::to_string).unwrap_or_default();
    html!(out;
        "<tr><th scope=\"row\">" (lrp.index) "</th><td>" {lrp_state(lrp.state, lrp.evacuating)} "</td><td data-label=\"Why\">"
    );
    let twin =
        |evacuating| all.iter().find(|it| it.index == lrp.index && it.evacuating == evacuating);
    if shown(twin(false), twin(true)).is_some_and(|it| it.evacuating == lrp.evacuating) {
        html!(out; {why(desk, lrp.key(), now)});
    }
    if let Some(reason) = lrp.crash_reason.as_ref().filter(|_| lrp.state != ActualState::Running) {
        html!(out; "<p class=\"reason\">" {spoken(reason)} "</p>");
    }
    html!(out; "</td><td class=\"number\" data-label=\"Since\">" {age(lrp.since, now)} "</td><td data-label=\"Cell\">" (cell) "</td><td data-label=\"Address\">");
    if let Some(net) = &lrp.net {
        for port in &net.ports {
            html!(out; "<code>" (net.address) ":" (port.host_port) "</code> ");
        }
        if net.ports.is_empty() {
            html!(out; "<code>" (net.address) "</code>");
        }
    }
    html!(out;
        "</td><td class=\"number\" data-label=\"Crashes\">" (lrp.crash_count) "</td><td><a href=\"/lrp/" (lrp.process_guid) "/" (lrp.index)
        "/log\">Log<span class=\"hidden\"> of " (lrp.key()) "</span></a></td></tr>\n"
    );
}

fn why(desk: &dyn Desk, key: LrpKey, now: Timestamp) -> Html {
    let mut out = Html::default();
    let name = key.to_string();
    let Some(why) = explain(desk, &Subject::Lrp(key), now) else { return out };
    let summary = why.summary.strip_prefix(&format!("{name} ")).unwrap_or(&why.summary);
    html!(out; "<details data-key=\"" (name) "\"><summary>" {spoken(summary)} "</summary><ul>");
    reasons(&mut out, &why);
    if let Some(at) = why.next_try_at.filter(|at| *at > now) {
        html!(out; "<li>next try in " (span(at.0 - now.0)) "</li>");
    }
    html!(out; "</ul></details>");
    out
}
