//! kill -9 of hosts under load: what was acknowledged is there, and what ran goes on running.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::Site;
use super::chance::Chance;
use super::fleet::{Fleet, counts_itself, guids, guids_of_processes, pids, starts};
use super::life::STAYS;
use super::load::Load;
use crate::bench::skip;
use crate::leadership::cluster::Kind;
use crate::leadership::rounds;
use crate::running::send;

const WRITERS: usize = 4;
/// The load that must have got through before the next kill.
const SOME: usize = 60;

#[test]
fn work_goes_on_while_the_whole_platform_is_killed_and_started() {
    let mut site = Site::up();
    site.desire("web", 4, STAYS);
    let before = guids(&site.all_run("web", 4));
    let processes = pids(&site.work());
    for _ in 0..rounds(3) {
        site.kill();
        assert_eq!(pids(&site.work()), processes, "nothing stops with the platform");
        site.start(&[]);
        assert_eq!(guids(&site.all_run("web", 4)), before, "the same instances");
    }
    assert_eq!(pids(&site.work()), processes, "none stopped, none ran twice");
    assert!(site.instances("web").iter().all(|lrp| lrp["crash_count"] == 0));
}

/// Hosts die again and again while clients write and instances run.
pub(super) fn hosts_die_under_load(kind: Kind, hosts: usize, kills: usize, name: &str) {
    let mut fleet = match Fleet::new(kind, hosts) {
        Ok(fleet) => fleet,
        Err(reason) => return skip(&format!("platform::kills::{name}"), &reason),
    };
    let mut chance = Chance::new();
    let traces = fleet.traces();
    let script = format!("{}; exec sleep 1000", counts_itself(&traces, "web"));
    fleet.desire("web", 3, &script);
    let before = guids(&fleet.all_run("web", 3));
    fleet.until("all to have counted", || (starts(&traces, "web") == 3).then_some(()));
    let processes = pids(&fleet.work());
    let mut load = Load::start(WRITERS, &fleet.ports(), &fleet.token());
    for _ in 0..rounds(kills) {
        let enough = load.count() + SOME;
        fleet.until("the writers to go on", || (load.count() >= enough).then_some(()));
        chance.moment(Duration::from_millis(100));
        fleet.kill_leader();
        assert_eq!(pids(&fleet.work()), processes, "nothing stops with its host");
        fleet.start_hosts();
    }
    let enough = load.count() + SOME;
    fleet.until("the writers to go on", || (load.count() >= enough).then_some(()));
    load.end();
    load.check(&fleet.get("/v1/desired-lrps"));
    let after = fleet.all_run("web", 3);
    assert_eq!(guids(&after), before, "the same instances");
    assert!(after.iter().all(|lrp| lrp["crash_count"] == 0), "{after:?}");
    // Whoever leads now has them grow, on the same cell.
    fleet.scale("web", 5);
    assert!(guids(&fleet.all_run("web", 5)).is_superset(&before));
    fleet.until("the new ones to have counted", || (starts(&traces, "web") == 5).then_some(()));
    assert!(pids(&fleet.work()).is_superset(&processes), "none stopped");
    assert_eq!(guids_of_processes(&fleet.work()).len(), 5, "none runs twice");
}

#[test]
fn hosts_on_the_embedded_store_are_killed_under_load_and_nothing_is_lost() {
    hosts_die_under_load(Kind::File, 1, 5, "embedded");
}

#[test]
fn hosts_on_etcd_are_killed_under_load_and_nothing_is_lost() {
    let name = "hosts_on_etcd_are_killed_under_load_and_nothing_is_lost";
    hosts_die_under_load(Kind::Etcd, 2, 3, name);
}

#[test]
fn hosts_on_postgres_are_killed_under_load_and_nothing_is_lost() {
    let name = "hosts_on_postgres_are_killed_under_load_and_nothing_is_lost";
    hosts_die_under_load(Kind::Postgres, 2, 3, name);
}

#[cfg(feature = "cassandra")]
mod cassandra {
    use super::{Kind, hosts_die_under_load};

    #[test]
    fn hosts_on_cassandra_are_killed_under_load_and_nothing_is_lost() {
        let name = "cassandra::hosts_on_cassandra_are_killed_under_load_and_nothing_is_lost";
        hosts_die_under_load(Kind::Cassandra, 2, 3, name);
    }
}

#[test]
fn the_whole_platform_is_killed_under_load_and_nothing_is_lost() {
    let mut site = Site::up();
    let mut chance = Chance::new();
    let mut load = Load::start(WRITERS, &[site.port], &site.token());
    for _ in 0..rounds(4) {
        let enough = load.count() + SOME;
        site.until("the writers to go on", || (load.count() >= enough).then_some(()));
        chance.moment(Duration::from_millis(100));
        site.kill();
        site.start(&[]);
    }
    load.end();
    load.check(&site.get("/v1/desired-lrps"));
}

#[test]
fn host_and_agent_killed_together_find_everything_again() {
    let mut fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    let mut chance = Chance::new();
    fleet.desire("web", 3, STAYS);
    let before = guids(&fleet.all_run("web", 3));
    let processes = pids(&fleet.work());
    for round in 0..rounds(3) {
        // At any moment of its finding out how things stand.
        chance.moment(Duration::from_millis(100));
        fleet.kill_leader();
        fleet.kill_cell(0);
        assert_eq!(pids(&fleet.work()), processes);
        // Whichever comes first.
        if round % 2 == 0 {
            fleet.start_hosts();
            fleet.begin_cell(0);
        } else {
            fleet.begin_cell(0);
            fleet.start_hosts();
        }
    }
    let after = fleet.all_run("web", 3);
    assert_eq!(guids(&after), before);
    assert!(after.iter().all(|lrp| lrp["crash_count"] == 0), "{after:?}");
    assert_eq!(pids(&fleet.work()), processes);
    // And they are not only known but kept: what is not desired goes.
    fleet.scale("web", 1);
    fleet.until("two to be gone", || (fleet.work().len() == 1).then_some(()));
}

#[test]
fn a_killed_shim_is_a_crash_with_a_reason_and_leaves_nothing_behind() {
    let site = Site::up();
    site.desire("web", 1, "setsid sleep 1000 & exec sleep 1000");
    let before = guids(&site.all_run("web", 1));
    site.until("both processes", || (site.work().len() == 2).then_some(()));
    let old = pids(&site.work());
    for shim in site.shims() {
        send(shim.pid, Signal::SIGKILL);
    }
    let after = site.until("another instance", || {
        let all = site.instances("web");
        (all.len() == 1 && all[0]["state"] == "RUNNING" && guids(&all) != before).then_some(all)
    });
    let reason = after[0]["crash_reason"].as_str().expect("a reason");
    assert!(reason.contains("its shim was killed"), "{reason}");
    site.explains("lrp/web/0", "its shim was killed");
    site.until("the old ones to be gone", || pids(&site.work()).is_disjoint(&old).then_some(()));
}

/// A reboot as far as anybody here can tell: nothing is left alive, and `boots` says whether the
/// machine also calls itself newly started.
fn everything_is_killed(boots: bool) {
    let mut site = Site::up();
    let traces = site.traces();
    site.desire("web", 3, STAYS);
    let script = format!("{}; exec sleep 1000", counts_itself(&traces, "runs"));
    site.ask("POST", "/v1/tasks", Some(&site.task("runs", &script))).expect(201);
    site.all_run("web", 3);
    site.until("the task to run", || (starts(&traces, "runs") == 1).then_some(()));
    let before = pids(&site.work());
    site.kill();
    for process in site.shims().iter().chain(&site.work()) {
        send(process.pid, Signal::SIGKILL);
    }
    site.until_dead();
    if boots {
        name_another_boot(&site.dir().join("cell/containers"));
    }
    site.start(&[]);
    site.until("three others", || {
        let all = site.instances("web");
        let fine = all.len() == 3 && all.iter().all(|lrp| lrp["state"] == "RUNNING");
        (fine && site.work().len() == 3).then_some(())
    });
    assert!(pids(&site.work()).is_disjoint(&before));
    let done = site.completed("runs");
    assert_eq!(done["failed"], true, "{done}");
    let reason = done["failure_reason"].as_str().unwrap_or_default().to_owned();
    let told = if boots { "container is gone" } else { "its shim was killed" };
    assert!(reason.contains(told), "{reason}");
    site.explains("task/runs", told);
    assert_eq!(starts(&traces, "runs"), 1, "a task never runs twice");
}

/// Has every container say that it is from an earlier life of the machine.
fn name_another_boot(containers: &std::path::Path) {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    let boot = boot.trim().to_owned();
    let other = "00000000-0000-4000-8000-000000000000";
    for container in std::fs::read_dir(containers).expect("containers").flatten() {
        let processes = std::fs::read_dir(container.path().join("run")).expect("processes");
        let specs = processes.flatten().map(|process| process.path().join("spec"));
        for path in specs.chain([container.path().join("about")]) {
            let text = std::fs::read_to_string(&path).expect("what is known of it");
            assert!(text.contains(&boot), "{text}");
            std::fs::write(path, text.replace(&boot, other)).expect("our own");
        }
    }
}

#[test]
fn after_everything_was_killed_the_desired_state_comes_back() {
    everything_is_killed(false);
}

#[test]
fn after_the_machine_was_started_anew_the_desired_state_comes_back() {
    everything_is_killed(true);
}
