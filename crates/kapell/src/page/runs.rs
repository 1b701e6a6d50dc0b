//! `/runs`

use std::time::Duration;

use kapell_api::v1::RunView;
use kapell_core::board::JobId;
use kapell_core::run::RunState;
use kapell_core::seams::Timestamp;

use super::counts::MOST_ROWS;
use super::parts::spoken;
use super::run_parts::rows;
use super::table::Column::{Always, Extra};
use super::table::{empty, end, section};
use super::{Html, gantt, html};
use crate::http::{Desk, RunsWanted, list_runs, state_named};

/// The stretches of time that can be looked at.
const SPANS: [(&str, u64, &str); 5] = [
    ("24h", 86_400, "last day"),
    ("1h", 3_600, "last hour"),
    ("6h", 21_600, "last 6 hours"),
    ("7d", 604_800, "last week"),
    ("all", 0, "all that is kept"),
];

/// Which runs somebody wants to see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Filter {
    pub(super) job: Option<JobId>,
    pub(super) state: Option<RunState>,
    /// One of the spans, by its place.
    pub(super) span: usize,
}

impl Filter {
    /// Reads what stands after the `?`. What says nothing is left out.
    pub(super) fn read(pairs: impl Iterator<Item = (String, String)>) -> Self {
        let mut filter = Self::default();
        for (name, value) in pairs {
            match name.as_str() {
                "job" => filter.job = Some(JobId::from(value.trim())).filter(JobId::is_valid),
                "state" => filter.state = state_named(&value),
                "span" => {
                    let place = SPANS.iter().position(|(span, ..)| *span == value);
                    filter.span = place.unwrap_or_default();
                }
                _ => {}
            }
        }
        filter
    }

    /// As it stands in an address.
    pub(super) fn query(&self) -> String {
        let job = self.job.as_ref().map_or("", JobId::as_str);
        let state = self.state.map_or("", RunState::name);
        format!("?job={job}&state={state}&span={}", SPANS[self.span].0)
    }
}

pub(super) fn render(desk: &dyn Desk, filter: &Filter, now: Timestamp) -> Html {
    let wanted = RunsWanted {
        job: filter.job.clone(),
        state: filter.state,
        limit: MOST_ROWS,
        ..RunsWanted::default()
    };
    let (_, seconds, _) = SPANS[filter.span];
    let since = now.before(Duration::from_secs(seconds));
    let mut runs: Vec<RunView> = list_runs(desk, &wanted, |_| true);
    let reaches = |view: &RunView| view.run.completed_at.unwrap_or(now) >= since;
    runs.retain(|view| seconds == 0 || reaches(view));
    let mut out = Html::default();
    html!(out; "<nav class=\"path\" aria-label=\"Path\"><a href=\"/\">Overview</a> / <a href=\"/jobs\">Jobs</a></nav><h1>Runs</h1>\n");
    form(&mut out, filter);
    if runs.is_empty() {
        empty(&mut out, "Runs", &spoken("There is none of these. Try: `kapell job trigger JOB`"));
        return out;
    }
    gantt::render(&mut out, &runs, now);
    let columns =
        [Always("Run"), Always("State"), Always("Scheduled"), Extra("Took"), Extra("Why")];
    section(&mut out, "runs", "The same as a list", &columns);
    rows(&mut out, &runs, now);
    end(&mut out, 0, "");
    if runs.len() == MOST_ROWS {
        html!(out; "<p class=\"quiet\">Only the latest " (MOST_ROWS) " are shown: <code>kapell run list -n 1000</code></p>\n");
    }
    out
}

fn form(out: &mut Html, filter: &Filter) {
    let job = filter.job.as_ref().map_or("", JobId::as_str);
    html!(out;
        "<form method=\"get\" action=\"/runs\" class=\"tools\" data-key=\"filter\"><label>Job <input name=\"job\" value=\"" (job)
        "\"></label> <label>State <select name=\"state\"><option value=\"\">any</option>"
    );
    for state in RunState::ALL {
        html!(out; "<option");
        if filter.state == Some(state) {
            html!(out; " selected");
        }
        html!(out; ">" (state.name()) "</option>");
    }
    html!(out; "</select></label> <label>Time <select name=\"span\">");
    for (place, (span, _, text)) in SPANS.iter().enumerate() {
        html!(out; "<option value=\"" (span) "\"");
        if filter.span == place {
            html!(out; " selected");
        }
        html!(out; ">" (text) "</option>");
    }
    html!(out; "</select></label> <button>Show</button></form>\n");
}
