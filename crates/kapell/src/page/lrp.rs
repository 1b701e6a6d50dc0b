//! `/lrp/{process_guid}`

use kapell_core::board::{ActualLrp, DesiredLrp, LrpKey, ProcessGuid, shown};
use kapell_core::seams::Timestamp;

use super::counts::MOST_ROWS;
use super::parts::{action, age, fact, lrp_state, names, span};
use super::{Html, html};
use crate::http::{Desk, Subject, explain};

pub(super) fn render(desk: &dyn Desk, guid: &ProcessGuid, now: Timestamp) -> Option<Html> {
    let mut found: (Option<DesiredLrp>, Vec<ActualLrp>) = (None, Vec::new());
    desk.look(guid.as_str(), &mut |records| {
        let mut both: Vec<ActualLrp> =
            records.instances_of(guid).chain(records.evacuating_of(guid)).cloned().collect();
        both.sort_by_key(|lrp| (lrp.index, lrp.evacuating));
        found = (records.desired.get(guid).cloned(), both);
    });
    let (desired, lrps) = found;
    if desired.is_none() && lrps.is_empty() {
        return None;
    }
    let mut out = Html::default();
    html!(out; "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a></nav><h1>" (guid) "</h1>\n");
    match &desired {
        Some(desired) => facts(&mut out, desired, now),
        None => html!(out; "<p class=\"notice\">Nobody desires it any more.</p>\n"),
    }
    let indices = missing(desired.as_ref(), &lrps);
    html!(out;
        "<section aria-labelledby=\"instances\"><h2 id=\"instances\">Instances</h2>\n"
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"instances\"><table><thead><tr>"
        "<th scope=\"col\">Index</th><th scope=\"col\">State</th><th scope=\"col\">Why</th><th scope=\"col\">Since</th>"
        "<th scope=\"col\">Cell</th><th scope=\"col\">Address</th><th scope=\"col\">Crashes</th><th scope=\"col\">Log</th>"
        "</tr></thead><tbody>\n"
    );
    for lrp in lrps.iter().take(MOST_ROWS) {
        row(&mut out, desk, lrp, &lrps, now);
    }
    for index in indices.into_iter().take(MOST_ROWS) {
        let why = why(desk, LrpKey { process_guid: guid.clone(), index }, now);
        html!(out; "<tr><th scope=\"row\">" (index) "</th><td><span class=\"state waiting\">MISSING</span></td><td>" {why} "</td><td></td><td></td><td></td><td></td><td></td></tr>\n");
    }
    html!(out; "</tbody></table></div>");
    let more = lrps.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        html!(out; "<p class=\"quiet\">and " (more) " more: <code>kapell lrp show " (guid) "</code></p>");
    }
    html!(out; "</section>\n");
    Some(out)
}

/// Desired indices of which there is nothing.
fn missing(desired: Option<&DesiredLrp>, lrps: &[ActualLrp]) -> Vec<u32> {
    let there: std::collections::BTreeSet<u32> = lrps.iter().map(|lrp| lrp.index).collect();
    let wanted = desired.map_or(0, |desired| desired.instances);
    (0..wanted).filter(|index| !there.contains(index)).take(MOST_ROWS).collect()
}

fn facts(out: &mut Html, desired: &DesiredLrp, now: Timestamp) {
    html!(out; "<dl class=\"facts\">\n");
    fact(out, "Domain", desired.domain.as_str());
    fact(out, "Instances", &desired.instances.to_string());
    fact(out, "Runs", &action(&desired.action));
    fact(out, "Memory", &format!("{} MB", desired.memory_mb));
    fact(out, "Disk", &format!("{} MB", desired.disk_mb));
    fact(out, "Root", desired.rootfs.as_deref().unwrap_or("the cell's own"));
    let ports: Vec<String> = desired.ports.iter().map(ToString::to_string).collect();
    fact(out, "Ports", &ports.join(", "));
    fact(out, "Environment", &names(&desired.env));
    fact(out, "Annotation", &desired.annotation);
    fact(out, "Version", &desired.version.to_string());
    if let Some(at) = desired.updated_at {
        html!(out; "<div><dt>Changed</dt><dd>" {age(at, now)} " ago</dd></div>\n");
    }
    html!(out; "</dl>\n");
}

fn row(out: &mut Html, desk: &dyn Desk, lrp: &ActualLrp, all: &[ActualLrp], now: Timestamp) {
    let cell = lrp.cell_id.as_ref().map(ToString::to_string).unwrap_or_default();
    html!(out;
        "<tr><th scope=\"row\">" (lrp.index) "</th><td>" {lrp_state(lrp.state, lrp.evacuating)} "</td><td>"
    );
    let twin =
        |evacuating| all.iter().find(|it| it.index == lrp.index && it.evacuating == evacuating);
    if shown(twin(false), twin(true)).is_some_and(|it| it.evacuating == lrp.evacuating) {
        html!(out; {why(desk, lrp.key(), now)});
    }
    html!(out; "</td><td>" {age(lrp.since, now)} "</td><td>" (cell) "</td><td>");
    if let Some(net) = &lrp.net {
        for port in &net.ports {
            html!(out; "<code>" (net.address) ":" (port.host_port) "</code> ");
        }
        if net.ports.is_empty() {
            html!(out; "<code>" (net.address) "</code>");
        }
    }
    html!(out;
        "</td><td class=\"number\">" (lrp.crash_count) "</td><td><a href=\"/lrp/" (lrp.process_guid) "/" (lrp.index)
        "/log\">Log<span class=\"hidden\"> of " (lrp.key()) "</span></a></td></tr>\n"
    );
}

fn why(desk: &dyn Desk, key: LrpKey, now: Timestamp) -> Html {
    let mut out = Html::default();
    let Some(why) = explain(desk, &Subject::Lrp(key), now) else { return out };
    html!(out; "<details><summary>" (why.summary) "</summary><ul>");
    for fact in &why.facts {
        html!(out; "<li>" (fact) "</li>");
    }
    if let Some(at) = why.next_try_at.filter(|at| *at > now) {
        html!(out; "<li>next try in " (span(at.0 - now.0)) "</li>");
    }
    html!(out; "</ul></details>");
    out
}
