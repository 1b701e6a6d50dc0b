//! kill -9 of everything: what was acknowledged is there, and what ran goes on running.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::Site;
use super::fleet::Fleet;
use super::life::STAYS;
use super::site::ask;
use crate::bench::skip;
use crate::leadership::cluster::Kind;
use crate::running::send;

fn guids(all: &[Value]) -> BTreeSet<String> {
    all.iter().map(|lrp| lrp["instance_guid"].as_str().expect("a guid").to_owned()).collect()
}

fn pids(all: &[crate::census::Process]) -> BTreeSet<i32> {
    all.iter().map(|process| process.pid).collect()
}

#[test]
fn work_goes_on_while_the_whole_platform_is_killed_and_started() {
    let mut site = Site::up();
    site.desire("web", 4, STAYS);
    let before = guids(&site.all_run("web", 4));
    let processes = pids(&site.work());
    for _ in 0..3 {
        site.kill();
        assert_eq!(pids(&site.work()), processes, "nothing stops with the platform");
        site.start(&[]);
        assert_eq!(guids(&site.all_run("web", 4)), before, "the same instances");
    }
    assert_eq!(pids(&site.work()), processes, "none stopped, none ran twice");
    assert!(site.instances("web").iter().all(|lrp| lrp["crash_count"] == 0));
}

#[test]
fn every_acknowledged_write_is_there_after_the_host_was_killed_under_load() {
    let mut site = Site::up();
    let (port, token) = (site.port, site.token());
    let stop = AtomicBool::new(false);
    let bodies: Vec<Value> =
        (0..4).map(|writer| site.lrp(&format!("w{writer}"), 0, STAYS)).collect();
    let acknowledged: Vec<String> = std::thread::scope(|scope| {
        let (token, stop) = (&token, &stop);
        let writers: Vec<_> = bodies
            .into_iter()
            .enumerate()
            .map(|(writer, mut body)| {
                scope.spawn(move || {
                    let mut done = Vec::new();
                    for number in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let guid = format!("w{writer}-{number}");
                        body["process_guid"] = guid.clone().into();
                        match ask(port, token, "POST", "/v1/desired-lrps", Some(&body)) {
                            Some(answer) if answer.status == 201 => done.push(guid),
                            Some(_) => {}
                            None => break,
                        }
                    }
                    done
                })
            })
            .collect();
        site.until("some load", || {
            let list = site.try_ask("GET", "/v1/desired-lrps", None)?.json();
            (list.as_array()?.len() > 200).then_some(())
        });
        site.kill();
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    site.start(&[]);
    let list = site.get("/v1/desired-lrps");
    let there: BTreeSet<&str> = list
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["process_guid"].as_str())
        .collect();
    let missing: Vec<&String> =
        acknowledged.iter().filter(|it| !there.contains(it.as_str())).collect();
    assert!(missing.is_empty(), "{} of {} lost: {missing:?}", missing.len(), acknowledged.len());
}

fn a_standby_goes_on(kind: Kind, name: &str) {
    let mut fleet = match Fleet::new(kind, 2) {
        Ok(fleet) => fleet,
        Err(reason) => return skip(&format!("platform::kills::{name}"), &reason),
    };
    fleet.ask("POST", "/v1/desired-lrps", Some(&fleet.lrp("web", 3, STAYS))).expect(201);
    let before = guids(&fleet.all_run("web", 3));
    let processes = pids(&fleet.work());
    let mut acknowledged = Vec::new();
    for number in 0..50 {
        let guid = format!("more-{number}");
        let lrp = fleet.lrp(&guid, 0, STAYS);
        if fleet.try_ask("POST", "/v1/desired-lrps", Some(&lrp)).is_some_and(|it| it.status == 201)
        {
            acknowledged.push(guid);
        }
    }
    assert_eq!(acknowledged.len(), 50);
    fleet.hosts.remove(0).kill();
    assert_eq!(guids(&fleet.all_run("web", 3)), before, "the same instances");
    for guid in acknowledged {
        fleet.ask("GET", &format!("/v1/desired-lrps/{guid}"), None).expect(200);
    }
    // The new leader has them grow, on the same cell.
    fleet
        .ask("PATCH", "/v1/desired-lrps/web", Some(&serde_json::json!({"instances": 5})))
        .expect(200);
    let after = guids(&fleet.all_run("web", 5));
    assert!(after.is_superset(&before));
    assert!(pids(&fleet.work()).is_superset(&processes), "none stopped");
    assert_eq!(fleet.work().len(), 5, "none ran twice");
}

#[test]
fn a_standby_on_etcd_goes_on_where_the_leader_was_killed() {
    a_standby_goes_on(Kind::Etcd, "a_standby_on_etcd_goes_on_where_the_leader_was_killed");
}

#[test]
fn a_standby_on_postgres_goes_on_where_the_leader_was_killed() {
    a_standby_goes_on(Kind::Postgres, "a_standby_on_postgres_goes_on_where_the_leader_was_killed");
}

#[test]
fn a_killed_agent_loses_neither_work_nor_logs_nor_the_exit_status() {
    let mut fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    let counts = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done";
    fleet.ask("POST", "/v1/desired-lrps", Some(&fleet.lrp("counts", 1, counts))).expect(201);
    let end = fleet.cluster.bench.path("end");
    let ends = format!("while [ ! -e {} ]; do sleep 0.02; done; exit 9", end.display());
    open(&fleet);
    fleet.ask("POST", "/v1/desired-lrps", Some(&fleet.lrp("ends", 1, &ends))).expect(201);
    let before = guids(&fleet.all_run("counts", 1));
    fleet.all_run("ends", 1);
    fleet.kill_cell(0);
    fleet.cluster.bench.write("end", "");
    // Only the counting one is left: the other ended while nobody watched but its shim.
    let gone = crate::bench::try_eventually(crate::bench::LIMIT, || {
        let left = fleet.work().iter().filter(|process| process.name == "sh").count();
        (left == 1).then_some(())
    });
    assert!(gone.is_some(), "{:?}", fleet.work());
    fleet.start_cell(0);
    let crashed = crate::bench::eventually("the crash to be known", || {
        let all = fleet.ask("GET", "/v1/actual-lrps?process_guid=ends", None).json();
        all[0]["crash_count"].as_u64().filter(|count| *count >= 1)?;
        Some(all[0].clone())
    });
    assert_eq!(crashed["crash_reason"], "Exited with status 9");
    assert_eq!(guids(&fleet.all_run("counts", 1)), before);
    let log = fleet.ask("GET", "/v1/logs/lrp/counts/0", None).expect(200).body;
    let numbers: Vec<u64> = log.lines().filter_map(|line| line.parse().ok()).collect();
    let whole: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert!(numbers.len() > 10 && numbers == whole, "{numbers:?}");
}

/// Work may run as another user, and looks for a file here.
fn open(fleet: &Fleet) {
    use std::os::unix::fs::PermissionsExt as _;
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(fleet.cluster.bench.dir(), all).expect("our own");
}

#[test]
fn host_and_agent_killed_together_find_everything_again() {
    let mut fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    fleet.ask("POST", "/v1/desired-lrps", Some(&fleet.lrp("web", 3, STAYS))).expect(201);
    let before = guids(&fleet.all_run("web", 3));
    let processes = pids(&fleet.work());
    let host = fleet.hosts.remove(0);
    let address = host.address.clone();
    host.kill();
    fleet.kill_cell(0);
    assert_eq!(pids(&fleet.work()), processes);
    let mut host = fleet.cluster.host_at(&fleet.cluster.url, &address, &address, &[]);
    host.leads(1);
    fleet.hosts.push(host);
    fleet.start_cell(0);
    assert_eq!(guids(&fleet.all_run("web", 3)), before);
    assert_eq!(pids(&fleet.work()), processes);
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
    assert!(reason.contains("shim"), "{reason}");
    site.until("the old ones to be gone", || pids(&site.work()).is_disjoint(&old).then_some(()));
}

#[test]
fn after_everything_was_killed_the_desired_state_comes_back() {
    let mut site = Site::up();
    site.desire("web", 3, STAYS);
    site.all_run("web", 3);
    let before = pids(&site.work());
    site.kill();
    for process in site.shims().iter().chain(&site.work()) {
        send(process.pid, Signal::SIGKILL);
    }
    site.until("all to be dead", || {
        (site.work().is_empty() && site.shims().is_empty()).then_some(())
    });
    site.start(&[]);
    let all = site.until("three others", || {
        let all = site.instances("web");
        let fine = all.len() == 3 && all.iter().all(|lrp| lrp["state"] == "RUNNING");
        (fine && site.work().len() == 3).then_some(all)
    });
    assert_eq!(all.len(), 3);
    assert!(pids(&site.work()).is_disjoint(&before));
}
