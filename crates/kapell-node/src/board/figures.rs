//! Figures of a board, for those who watch its health.

use std::time::Duration;

use kapell_core::board::{ActualState, TaskState};

use super::handle::Board;
use super::meters::Meters;

/// One figure. Those with the same name differ in their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub name: &'static str,
    pub labels: Vec<(&'static str, String)>,
    pub value: f64,
    pub help: &'static str,
}

fn figure(name: &'static str, value: f64, help: &'static str) -> Figure {
    Figure { name, labels: Vec::new(), value, help }
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts that far")]
fn number(count: usize) -> f64 {
    count as f64
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

impl Board {
    /// How things stand. Names that end in `_total` or `_sum` only grow while this leader leads.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = self.counts();
        let (outer, inner) = self.waiting();
        for (lane, count) in [("outer", outer), ("inner", inner)] {
            figures.push(Figure {
                labels: vec![("lane", lane.to_owned())],
                ..figure("kapell_board_waiting", number(count), "Requests that wait.")
            });
        }
        figures.push(figure(
            "kapell_read_only",
            number(usize::from(self.read_only().is_some())),
            "1 while the store takes no writes, so that nothing can be changed.",
        ));
        let carried = self.starts().carried_count();
        figures.push(figure(
            "kapell_auction_carried",
            number(carried),
            "Work that could not be placed and is tried again.",
        ));
        figures.push(figure(
            "kapell_events_watchers",
            number(self.hub().watchers()),
            "Those who watch events.",
        ));
        figures.extend(self.totals());
        figures
    }

    fn counts(&self) -> Vec<Figure> {
        let mut lrps = [0_usize; ActualState::ALL.len()];
        let mut tasks = [0_usize; TaskState::ALL.len()];
        let (mut desired, mut evacuating, mut domains) = (0, 0, 0);
        self.look_at_all(|records| {
            for state in ActualState::ALL {
                lrps[state as usize] += records.count_as(state);
            }
            for state in TaskState::ALL {
                tasks[state as usize] += records.tasks_as(state).len();
            }
            desired += records.desired_lrps().count();
            evacuating += records.evacuating.len();
            domains += records.domains.len();
        });
        let aside = self.set_aside_count();
        let state = |name, help, state: &str, count| Figure {
            labels: vec![("state", state.to_lowercase())],
            ..figure(name, number(count), help)
        };
        let lrps = ActualState::ALL.into_iter().zip(lrps).map(|(it, count)| {
            state("kapell_actual_lrps", "Instances by state.", it.name(), count)
        });
        let tasks = TaskState::ALL
            .into_iter()
            .zip(tasks)
            .map(|(it, count)| state("kapell_tasks", "Tasks by state.", it.name(), count));
        let mut cells = [("present", 0), ("evacuating", 0), ("awaited", 0)];
        for view in self.cells() {
            for (name, count) in &mut cells {
                *count += usize::from(view.state == *name);
            }
        }
        let cells = cells
            .into_iter()
            .map(|(name, count)| state("kapell_cells", "Cells by state.", name, count));
        let rest = [
            ("kapell_desired_lrps", desired, "Processes that are desired."),
            ("kapell_evacuating_lrps", evacuating, "Instances on cells that are evacuated."),
            ("kapell_domains", domains, "Domains."),
            (
                "kapell_board_records_set_aside",
                aside,
                "What was found in the store and is no record.",
            ),
        ];
        let rest = rest.into_iter().map(|(name, count, help)| figure(name, number(count), help));
        lrps.chain(tasks).chain(cells).chain(rest).collect()
    }

    #[rustfmt::skip]
    fn totals(&self) -> Vec<Figure> {
        let meters = self.meters();
        let counted = [
            ("kapell_board_commits_total", &meters.commits, "Commits that landed."),
            ("kapell_board_commit_ops_total", &meters.commit_ops, "Changes in commits that landed."),
            ("kapell_board_commits_resent_total", &meters.resent, "Commits sent again, their outcome being unknown."),
            ("kapell_board_decided_total", &meters.decided, "Requests carried out."),
            ("kapell_board_refused_total", &meters.refused, "Requests refused."),
            ("kapell_board_busy_total", &meters.busy, "Requests turned away because too many waited."),
            ("kapell_convergence_passes_total", &meters.converged, "Passes of convergence."),
            ("kapell_cell_orders_total", &meters.orders_done, "Orders that cells took."),
            ("kapell_cell_orders_failed_total", &meters.orders_failed, "Orders that did not reach a cell."),
            ("kapell_callbacks_total", &meters.callbacks_done, "Completion callbacks that resolved a task."),
            ("kapell_callbacks_failed_total", &meters.callbacks_failed, "Completion callbacks given up for now."),
            ("kapell_callbacks_untold_total", &meters.callbacks_untold, "Tasks deleted for their age whose completion callback never worked."),
            ("kapell_auction_rounds_total", &meters.rounds, "Rounds of the auctioneer."),
            ("kapell_auction_placed_total", &meters.placed, "Work that cells took."),
            ("kapell_auction_failed_total", &meters.not_placed, "Work that fitted nowhere, once a try."),
            ("kapell_auction_refused_total", &meters.refused_by_cells, "Work that the chosen cell refused."),
        ];
        let timed = [
            ("kapell_board_commit_seconds_sum", &meters.commit_micros, "Time spent on commits that landed."),
            ("kapell_convergence_seconds_sum", &meters.converge_micros, "Time spent on convergence."),
        ];
        let count = |meter| number(usize::try_from(Meters::get(meter)).unwrap_or(usize::MAX));
        let counted = counted.map(|(name, meter, help)| figure(name, count(meter), help));
        let timed = timed.map(|(name, meter, help)| figure(name, seconds(Meters::get(meter)), help));
        counted.into_iter().chain(timed).collect()
    }
}
