//! Work that moves from one cell to another.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::fleet::{Fleet, guids, guids_of_processes, pids};
use super::life::STAYS;
use super::site::ask;
use crate::leadership::cluster::Kind;

const IMPATIENT: &[(&str, &str)] = &[
    ("KAPELL_STALE_UNCLAIMED", "1s"),
    ("KAPELL_CONVERGE_EVERY", "1s"),
    ("KAPELL_CELL_POLL_EVACUATING", "1s"),
];

#[test]
fn an_evacuated_cell_gives_its_instances_away_and_none_is_missing_meanwhile() {
    const INSTANCES: usize = 6;
    let mut fleet = Fleet::with(Kind::File, 1, IMPATIENT).expect("no server is needed");
    fleet.desire("web", 6, STAYS);
    let before = guids(&fleet.all_run("web", INSTANCES));
    fleet.add_cell();
    evacuate_without_a_gap(&mut fleet, INSTANCES, |fleet| all_on_the_other(fleet, INSTANCES));
    let after = fleet.all_run("web", INSTANCES);
    assert!(guids(&after).is_disjoint(&before));
    assert_eq!(guids_of_processes(&fleet.work()).len(), INSTANCES, "none runs twice");
    assert!(fleet.shims(0).is_empty());
    assert!(after.iter().all(|lrp| lrp["crash_count"] == 0), "moving is no crash: {after:?}");
    fleet.kapell(&["explain", "cell/cell-0"]).expect(0).stdout_has("cell `cell-0` is gone");
    fleet.kapell(&["explain", "cell/none"]).expect(1).stderr_has("no cell `none`");
}

fn all_on_the_other(fleet: &Fleet, count: usize) {
    fleet.until("all to run on the other cell", || {
        let all = fleet.instances("web");
        let moved = |lrp: &Value| lrp["state"] == "RUNNING" && lrp["cell_id"] == "cell-1";
        (all.len() == count && all.iter().all(moved)).then_some(())
    });
}

/// Evacuates the first cell until its agent has ended and `moved` returns, while somebody looks all the time whether
/// so many of `web` run.
pub(crate) fn evacuate_without_a_gap(fleet: &mut Fleet, count: usize, moved: impl FnOnce(&Fleet)) {
    let (port, token) = (fleet.ports()[0], fleet.token());
    let over = AtomicBool::new(false);
    let fewest = std::thread::scope(|scope| {
        let poller = scope.spawn(|| fewest_running(port, &token, &over));
        fleet.kapell(&["cells", "evacuate", "cell-0"]).expect(0);
        let agent = fleet.cells[0].running.take().expect("it runs");
        agent.finish().expect(0).stderr_has("evacuated");
        moved(fleet);
        over.store(true, Ordering::Relaxed);
        poller.join().expect("the poller")
    });
    assert!(fewest >= count, "only {fewest} ran at some moment");
}

/// How many indices ran at the moment when the fewest did, as anybody could see it.
fn fewest_running(port: u16, token: &str, over: &AtomicBool) -> usize {
    let mut fewest = usize::MAX;
    while !over.load(Ordering::Relaxed) {
        let list = ask(port, token, "GET", "/v1/actual-lrps?process_guid=web", None);
        let list = list.expect("an answer").expect(200).json();
        let running: BTreeSet<u64> = list
            .as_array()
            .expect("a list")
            .iter()
            .filter(|lrp| lrp["state"] == "RUNNING")
            .filter_map(|lrp| lrp["index"].as_u64())
            .collect();
        fewest = fewest.min(running.len());
    }
    fewest
}

#[test]
fn with_nowhere_to_go_an_evacuated_cell_keeps_its_instances_until_there_is() {
    let mut fleet = Fleet::with(Kind::File, 1, IMPATIENT).expect("no server is needed");
    fleet.desire("web", 2, STAYS);
    fleet.all_run("web", 2);
    let processes = pids(&fleet.work());
    fleet.kapell(&["cells", "evacuate", "cell-0"]).expect(0);
    fleet.until("the reason", || {
        let told = fleet.kapell(&["explain", "lrp/web/0"]).stdout;
        told.contains("is being evacuated and still runs it").then_some(())
    });
    fleet.until("the reason of the cell", || {
        let told = fleet.kapell(&["explain", "cell/cell-0"]).expect(0).stdout;
        told.contains("is being evacuated: it takes no new work").then_some(())
    });
    assert_eq!(pids(&fleet.work()), processes);
    fleet.add_cell();
    let agent = fleet.cells[0].running.take().expect("it runs");
    agent.finish().expect(0);
    fleet.all_run("web", 2);
    fleet.until("two to run", || (guids_of_processes(&fleet.work()).len() == 2).then_some(()));
    assert!(pids(&fleet.work()).is_disjoint(&processes));
}

/// Whoever restarts agents that were killed does not undo what an operator wanted.
#[test]
fn an_agent_that_is_killed_while_it_evacuates_goes_on_when_it_is_back() {
    const INSTANCES: usize = 3;
    let mut fleet = Fleet::with(Kind::File, 1, IMPATIENT).expect("no server is needed");
    fleet.desire("web", 3, STAYS);
    fleet.all_run("web", INSTANCES);
    let processes = pids(&fleet.work());
    let is_evacuating = |fleet: &Fleet| {
        let told = fleet.kapell(&["explain", "cell/cell-0"]).expect(0).stdout;
        told.contains("is being evacuated: it takes no new work")
    };
    fleet.kapell(&["cells", "evacuate", "cell-0"]).expect(0);
    fleet.until("the evacuation", || is_evacuating(&fleet).then_some(()));
    fleet.kill_cell(0);
    fleet.start_cell(0);
    fleet.until("it to go on", || is_evacuating(&fleet).then_some(()));
    assert_eq!(pids(&fleet.work()), processes, "there is nowhere to go yet");
    fleet.kill_cell(0);
    fleet.add_cell();
    fleet.begin_cell(0);
    let agent = fleet.cells[0].running.take().expect("it runs");
    agent.finish().expect(0).stderr_has("evacuated");
    all_on_the_other(&fleet, INSTANCES);
    assert!(pids(&fleet.work()).is_disjoint(&processes) && fleet.shims(0).is_empty());
    // It is over: whoever starts the cell again wants it to work.
    fleet.start_cell(0);
    fleet.until("it to take work", || (!is_evacuating(&fleet)).then_some(()));
}

#[test]
fn an_evacuation_can_be_ended_by_a_flag() {
    let mut fleet = Fleet::with(Kind::File, 1, IMPATIENT).expect("no server is needed");
    fleet.desire("web", 2, STAYS);
    fleet.all_run("web", 2);
    let processes = pids(&fleet.work());
    fleet.kapell(&["cells", "evacuate", "cell-0"]).expect(0);
    fleet.until("the evacuation", || {
        let told = fleet.kapell(&["explain", "lrp/web/0"]).stdout;
        told.contains("is being evacuated and still runs it").then_some(())
    });
    fleet.kill_cell(0);
    fleet.cells[0].more.push("--stay".to_owned());
    fleet.start_cell(0);
    fleet.scale("web", 4);
    fleet.all_run("web", 4);
    assert!(pids(&fleet.work()).is_superset(&processes), "nothing was stopped");
}
