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
    let (port, token) = (fleet.ports()[0], fleet.token());
    let over = AtomicBool::new(false);
    let fewest = std::thread::scope(|scope| {
        let poller = scope.spawn(|| fewest_running(port, &token, &over));
        fleet.kapell(&["cells", "evacuate", "cell-0"]).expect(0);
        let agent = fleet.cells[0].running.take().expect("it runs");
        let ended = agent.finish();
        fleet.until("all to run on the other cell", || {
            let all = fleet.instances("web");
            let moved = |lrp: &Value| lrp["state"] == "RUNNING" && lrp["cell_id"] == "cell-1";
            (all.len() == INSTANCES && all.iter().all(moved)).then_some(())
        });
        over.store(true, Ordering::Relaxed);
        ended.expect(0).stderr_has("evacuated");
        poller.join().expect("the poller")
    });
    assert!(fewest >= INSTANCES, "only {fewest} ran at some moment");
    let after = fleet.all_run("web", INSTANCES);
    assert!(guids(&after).is_disjoint(&before));
    assert_eq!(guids_of_processes(&fleet.work()).len(), INSTANCES, "none runs twice");
    assert!(fleet.shims(0).is_empty());
    assert!(after.iter().all(|lrp| lrp["crash_count"] == 0), "moving is no crash: {after:?}");
    fleet.kapell(&["explain", "cell/cell-0"]).expect(0).stdout_has("cell `cell-0` is gone");
    fleet.kapell(&["explain", "cell/none"]).expect(1).stderr_has("no cell `none`");
}

/// How many indices ran at the moment when the fewest did, as anybody could see it.
pub(crate) fn fewest_running(port: u16, token: &str, over: &AtomicBool) -> usize {
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
