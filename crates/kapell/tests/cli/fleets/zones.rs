//! Two hosts, three cells in three zones, thirty instances, and all that may befall them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::IMPATIENT;
use crate::bench::skip;
use crate::leadership::cluster::Kind;
use crate::platform::fleet::{Fleet, guids, guids_of_processes, pids};
use crate::platform::life::STAYS;
use crate::platform::moves::evacuate_without_a_gap;
use crate::platform::site::ask;
use crate::running::send;

const INSTANCES: usize = 30;
/// How long a cell may say nothing.
const TTL: Duration = Duration::from_secs(3);

/// Two hosts on etcd and a cell in each of three zones, with all instances running.
fn three_zones(name: &str) -> Option<Fleet> {
    let mut fleet = match Fleet::without_cells(Kind::Etcd, 2, &IMPATIENT) {
        Ok(fleet) => fleet,
        Err(reason) => {
            skip(&format!("fleets::zones::{name}"), &reason);
            return None;
        }
    };
    for zone in ["z1", "z2", "z3"] {
        fleet.add_cell_with(None, &["--zone", zone]);
    }
    fleet.desire("web", 30, STAYS);
    fleet.all_run("web", INSTANCES);
    Some(fleet)
}

fn per_cell(all: &[Value]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for lrp in all {
        *counts.entry(lrp["cell_id"].as_str().expect("a cell")).or_default() += 1;
    }
    counts
}

/// All run, and none of them on this cell.
fn all_run_elsewhere(fleet: &Fleet, cell: &str) {
    fleet.until(&format!("all to run elsewhere than on {cell}"), || {
        let all = fleet.instances("web");
        let fine = |lrp: &Value| lrp["state"] == "RUNNING" && lrp["cell_id"] != cell;
        (all.len() == INSTANCES && all.iter().all(fine)).then_some(())
    });
}

#[test]
fn thirty_instances_are_spread_scaled_crashed_and_stopped() {
    let Some(fleet) = three_zones("spread") else { return };
    let all = fleet.all_run("web", INSTANCES);
    let counts = per_cell(&all);
    assert_eq!(counts.values().collect::<Vec<_>>(), [&10, &10, &10], "{counts:?}");
    fleet.scale("web", 12);
    let fewer = fleet.all_run("web", 12);
    assert!(guids(&fewer).is_subset(&guids(&all)), "those that stay are left alone");
    fleet.nothing_runs_twice("web", 12);
    let victim = fleet.work()[0].pid;
    send(victim, Signal::SIGKILL);
    fleet.until("the one that crashed to be back", || {
        let all = fleet.instances("web");
        let runs = all.iter().all(|lrp| lrp["state"] == "RUNNING");
        let crashed = all.iter().filter(|lrp| lrp["crash_count"] == 1).count();
        (runs && crashed == 1).then_some(())
    });
    fleet.nothing_runs_twice("web", 12);
    fleet.ask("DELETE", "/v1/desired-lrps/web", None).expect(204);
    fleet.until("all to be gone", || fleet.work().is_empty().then_some(()));
    fleet.until("their records to be gone", || fleet.instances("web").is_empty().then_some(()));
}

#[test]
fn a_cell_that_is_lost_is_replaced_in_time_and_stops_its_copies_when_it_is_back() {
    let Some(mut fleet) = three_zones("lost") else { return };
    let first = pids(&fleet.work());
    let theirs: BTreeSet<String> = fleet
        .instances("web")
        .iter()
        .filter(|lrp| lrp["cell_id"] == "cell-1")
        .map(|lrp| lrp["instance_guid"].as_str().expect("a guid").to_owned())
        .collect();
    let lost = Instant::now();
    fleet.kill_cell(1);
    all_run_elsewhere(&fleet, "cell-1");
    let took = lost.elapsed();
    assert!(took <= TTL + Duration::from_secs(2), "took {took:?}");
    assert!(pids(&fleet.work()).is_superset(&first), "its work goes on, nobody could stop it");
    fleet.start_cell(1);
    fleet.nothing_runs_twice("web", INSTANCES);
    let running: BTreeSet<String> = guids_of_processes(&fleet.work()).into_iter().collect();
    assert!(running.is_disjoint(&theirs), "it has stopped its own copies");
}

#[test]
fn a_cell_whose_machine_dies_is_replaced_in_time_and_comes_back_empty() {
    let Some(mut fleet) = three_zones("dead") else { return };
    let lost = Instant::now();
    let shims = pids(&fleet.shims(2));
    fleet.kill_cell(2);
    for shim in shims {
        send(shim, Signal::SIGKILL);
    }
    all_run_elsewhere(&fleet, "cell-2");
    let took = lost.elapsed();
    assert!(took <= TTL + Duration::from_secs(2), "took {took:?}");
    fleet.start_cell(2);
    fleet.nothing_runs_twice("web", INSTANCES);
    assert!(fleet.shims(2).is_empty());
    // It takes its share of what comes next.
    fleet.scale("web", 45);
    let all = fleet.all_run("web", 45);
    assert!(per_cell(&all).get("cell-2").is_some_and(|count| *count >= 10), "{:?}", per_cell(&all));
}

#[test]
fn an_agent_that_is_back_in_time_finds_everything_as_it_was() {
    let Some(mut fleet) = three_zones("back") else { return };
    let (before, processes) = (guids(&fleet.instances("web")), pids(&fleet.work()));
    for at in 0..3 {
        fleet.kill_cell(at);
        fleet.start_cell(at);
    }
    assert_eq!(guids(&fleet.all_run("web", INSTANCES)), before, "nothing moved");
    assert_eq!(pids(&fleet.work()), processes, "nothing was started or stopped");
    assert!(fleet.instances("web").iter().all(|lrp| lrp["crash_count"] == 0));
}

#[test]
fn an_evacuation_under_a_standby_never_drops_below_what_is_desired() {
    let Some(mut fleet) = three_zones("evacuated") else { return };
    evacuate_without_a_gap(&mut fleet, INSTANCES, |fleet| all_run_elsewhere(fleet, "cell-0"));
    fleet.nothing_runs_twice("web", INSTANCES);
    assert!(fleet.shims(0).is_empty(), "nothing is left behind");
}

#[test]
fn cells_refuse_a_leader_that_was_frozen_and_replaced() {
    let Some(mut fleet) = three_zones("frozen") else { return };
    let address = fleet.cluster.seat().and_then(|seat| seat.address).expect("a leader");
    let at = fleet.hosts.iter().position(|host| host.address == address).expect("one of ours");
    let frozen = fleet.hosts[at].running.pid();
    send(frozen, Signal::SIGSTOP);
    let other = 1 - at;
    fleet.hosts[other].leads(1);
    let processes = pids(&fleet.work());
    // It may go on with whatever it was about to tell its cells, but not as the leader.
    send(frozen, Signal::SIGCONT);
    fleet.scale("web", 33);
    fleet.all_run("web", 33);
    fleet.nothing_runs_twice("web", 33);
    assert!(pids(&fleet.work()).is_superset(&processes), "nothing was stopped");
    let epoch = fleet.cluster.seat().expect("a seat").epoch;
    assert!(epoch >= 2, "another leads: {epoch}");
    // What a deposed leader says bears its epoch, and every cell has heard of a later one.
    for cell in fleet.get("/v1/cells").as_array().expect("a list") {
        let url = cell["url"].as_str().expect("a URL");
        let port = url.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
        let heads = format!("{}\r\nkapell-epoch: 1", fleet.token());
        let answer = ask(port, &heads, "GET", "/v1/cell/state", None).expect("an answer");
        assert_eq!(answer.json()["code"], "older_epoch", "{}", answer.body);
    }
}
