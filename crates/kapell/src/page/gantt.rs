//! Runs as bars over time: drawn here, so that no script is needed to see it.

use std::collections::BTreeMap;

use kapell_api::v1::RunView;
use kapell_core::board::JobId;
use kapell_core::job::when;
use kapell_core::run::Run;
use kapell_core::seams::Timestamp;

use super::run_parts::class;
use super::{Html, html};

/// Measures of the drawing.
const WIDTH: i64 = 1_000;
const NAMES: i64 = 190;
const LANE: i64 = 22;
const BAR: i64 = 14;
const AXIS: i64 = 20;
/// What is shorter is still seen.
const LEAST: i64 = 3;
const TICKS: i64 = 5;

/// The time that is drawn.
#[derive(Debug, Clone, Copy)]
struct Scale {
    from: i64,
    to: i64,
}

impl Scale {
    fn of(runs: &[RunView], now: Timestamp) -> Self {
        let from = runs.iter().map(|view| view.run.due_at.0).min().unwrap_or(now.0);
        let to = runs.iter().map(|view| end(&view.run, now)).max().unwrap_or(now.0);
        Self { from, to: to.max(from + 1_000) }
    }

    /// Where a time is drawn.
    fn x(self, at: i64) -> i64 {
        let (room, all) = (i128::from(WIDTH - NAMES), i128::from(self.to) - i128::from(self.from));
        let passed = i128::from(at.clamp(self.from, self.to)) - i128::from(self.from);
        NAMES + i64::try_from(passed * room / all.max(1)).unwrap_or(0)
    }
}

fn end(run: &Run, now: Timestamp) -> i64 {
    run.completed_at.unwrap_or(now).0.max(run.due_at.0)
}

/// Draws runs, a row each job; those that overlap are below each other.
pub(super) fn render(out: &mut Html, runs: &[RunView], now: Timestamp) {
    let scale = Scale::of(runs, now);
    let mut jobs: BTreeMap<&JobId, Vec<&RunView>> = BTreeMap::new();
    for view in runs {
        jobs.entry(&view.job_id).or_default().push(view);
    }
    let lanes: Vec<(&JobId, Vec<Vec<&RunView>>)> =
        jobs.into_iter().map(|(job, runs)| (job, stack(runs, scale, now))).collect();
    let rows: usize = lanes.iter().map(|(_, lanes)| lanes.len()).sum();
    let height = AXIS + LANE * i64::try_from(rows).unwrap_or(0);
    html!(out;
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs over time\"><svg class=\"gantt\" viewBox=\"0 0 " (WIDTH) " " (height)
        "\" role=\"group\" aria-label=\"Runs over time, in UTC\">\n"
    );
    axis(out, scale, height);
    let mut y = AXIS;
    for (job, lanes) in &lanes {
        html!(out; "<a href=\"/job/" (job) "\"><text class=\"name\" x=\"4\" y=\"" (y + BAR) "\">" (short(job.as_str())) "</text></a>\n");
        for lane in lanes {
            for view in lane {
                bar(out, view, scale, y, now);
            }
            y += LANE;
        }
    }
    html!(out; "</svg></div>\n");
}

/// Puts runs into as few lanes as it takes for none to cover another.
fn stack(mut runs: Vec<&RunView>, scale: Scale, now: Timestamp) -> Vec<Vec<&RunView>> {
    runs.sort_by_key(|view| (view.run.due_at, &view.run.run_id));
    let mut lanes: Vec<(i64, Vec<&RunView>)> = Vec::new();
    for view in runs {
        let (from, to) = reach(&view.run, scale, now);
        match lanes.iter_mut().find(|(free, _)| *free <= from) {
            Some((free, lane)) => {
                *free = to;
                lane.push(view);
            }
            None => lanes.push((to, vec![view])),
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// From where to where a run is drawn.
fn reach(run: &Run, scale: Scale, now: Timestamp) -> (i64, i64) {
    let from = scale.x(run.due_at.0);
    (from, scale.x(end(run, now)).max(from + LEAST))
}

fn bar(out: &mut Html, view: &RunView, scale: Scale, y: i64, now: Timestamp) {
    let run = &view.run;
    let (from, to) = reach(run, scale, now);
    let top = y + (LANE - BAR) / 2;
    let started = run.started_at.map_or(to, |at| scale.x(at.0).clamp(from, to));
    html!(out; "<a href=\"/run/" (run.run_id) "\"><title>" (run.run_id) " " (run.state.name()) ", " (when::show(run.due_at, &view.timezone)) " " (run.reason) "</title>");
    if started > from {
        html!(out; "<rect class=\"bar wait\" x=\"" (from) "\" y=\"" (top) "\" width=\"" (started - from) "\" height=\"" (BAR) "\"/>");
    }
    let from = started.min(to - LEAST);
    html!(out; "<rect class=\"bar " (class(run.state)) "\" x=\"" (from) "\" y=\"" (top) "\" width=\"" (to - from) "\" height=\"" (BAR) "\"/></a>\n");
}

fn axis(out: &mut Html, scale: Scale, height: i64) {
    for tick in 0..TICKS {
        let at = scale.from + (scale.to - scale.from) / TICKS * tick;
        let x = scale.x(at);
        let pattern = if scale.to - scale.from > 86_400_000 { "%m-%d %H:%M" } else { "%H:%M:%S" };
        let text = jiff::Timestamp::from_millisecond(at).map(|at| at.strftime(pattern).to_string());
        html!(out;
            "<line class=\"tick\" x1=\"" (x) "\" y1=\"0\" x2=\"" (x) "\" y2=\"" (height) "\"/><text class=\"tick\" x=\"" (x + 3) "\" y=\"12\">"
            (text.unwrap_or_default()) "</text>\n"
        );
    }
}

/// As much of a name as there is room for.
fn short(name: &str) -> String {
    const MOST: usize = 24;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}
