//! How the parts of the platform end, and what refuses to begin.

use nix::sys::signal::Signal;

use super::Site;
use super::fleet::{Fleet, guids, pids};
use super::life::STAYS;
use crate::bench::Bench;
use crate::leadership::cluster::{Kind, free_port};

#[test]
fn sigterm_leaves_the_work_and_says_so() {
    let mut site = Site::up();
    site.desire("web", 3, STAYS);
    site.ask("POST", "/v1/tasks", Some(&site.task("long", "exec sleep 1000"))).expect(201);
    let before = guids(&site.all_run("web", 3));
    site.until("the task to run", || (site.work().len() == 4).then_some(()));
    let processes = pids(&site.work());
    let ended = site.end(Signal::SIGTERM).expect(0);
    ended.stderr_has("work goes on").stderr_has("`kapell up` takes it up again");
    assert_eq!(pids(&site.work()), processes);
    site.start(&[]);
    assert_eq!(guids(&site.all_run("web", 3)), before);
    assert_eq!(site.get("/v1/tasks/long")["state"], "RUNNING");
    assert_eq!(pids(&site.work()), processes);
}

#[test]
fn an_interrupt_stops_the_work_and_what_is_desired_comes_back() {
    let mut site = Site::up();
    site.desire("web", 3, "setsid sleep 1000 & trap 'exit 0' TERM; while :; do sleep 0.05; done");
    site.ask("POST", "/v1/tasks", Some(&site.task("long", "exec sleep 1000"))).expect(201);
    site.all_run("web", 3);
    site.until("all to run", || (site.work().len() >= 7).then_some(()));
    site.end(Signal::SIGINT).expect(0);
    assert!(site.work().is_empty(), "left: {:?}", site.work());
    assert!(site.shims().is_empty(), "left: {:?}", site.shims());
    site.bench.all_gone_within(std::time::Duration::from_secs(1));
    site.start(&[]);
    site.all_run("web", 3);
    let task = site.completed("long");
    assert_eq!(task["failed"], true, "{task}");
    assert!(!task["failure_reason"].as_str().unwrap_or_default().is_empty(), "{task}");
    site.until("three to run", || {
        let shells = site.work().iter().filter(|process| process.name == "sh").count();
        (shells == 3).then_some(())
    });
}

#[test]
fn a_second_one_on_the_same_directory_is_refused_and_changes_nothing() {
    let site = Site::up();
    site.desire("web", 2, STAYS);
    let before = guids(&site.all_run("web", 2));
    let processes = pids(&site.work());
    let dir = site.dir();
    let dir = dir.to_str().expect("text");
    let port = free_port().to_string();
    let refused = site.bench.run(&["up", "--dir", dir, "--port", &port]);
    assert_ne!(refused.code(), 0);
    let pid = site.running.as_ref().expect("it runs").pid();
    refused.stderr_has("another `kapell up`").stderr_has(&pid.to_string());
    assert!(refused.took < std::time::Duration::from_secs(5), "took {:?}", refused.took);
    assert_eq!(guids(&site.all_run("web", 2)), before);
    assert_eq!(pids(&site.work()), processes);
}

#[test]
fn a_second_one_on_the_same_port_is_refused_and_changes_nothing() {
    let site = Site::up();
    site.desire("web", 2, STAYS);
    let before = guids(&site.all_run("web", 2));
    let processes = pids(&site.work());
    let other = site.bench.path("other");
    let port = site.port.to_string();
    let refused = site.bench.run(&["up", "--dir", other.to_str().expect("text"), "--port", &port]);
    assert_ne!(refused.code(), 0);
    refused.stderr_has(&format!("`127.0.0.1:{port}` is taken")).stderr_has("--port");
    assert!(!other.join("cell").exists() && !other.join("store").exists(), "it left something");
    assert_eq!(guids(&site.all_run("web", 2)), before);
    assert_eq!(pids(&site.work()), processes);
}

#[test]
fn two_agents_never_share_a_directory() {
    let fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    fleet.desire("web", 2, STAYS);
    let before = guids(&fleet.all_run("web", 2));
    let url = format!("http://{}", fleet.address(0));
    let dir = fleet.cells[0].bench.path("cell");
    let dir = dir.to_str().expect("text");
    for id in ["cell-0", "other"] {
        let second = fleet.cluster.bench.run(&["cell", "--url", &url, "--id", id, "--dir", dir]);
        assert_ne!(second.code(), 0);
        let pid = fleet.cells[0].running.as_ref().expect("it runs").pid();
        second.stderr_has("is in use by").stderr_has(&pid.to_string());
    }
    assert_eq!(guids(&fleet.all_run("web", 2)), before);
    assert_eq!(fleet.get("/v1/cells").as_array().expect("a list").len(), 1);
}

#[test]
fn the_directory_of_a_cell_keeps_its_id() {
    let mut fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    fleet.kill_cell(0);
    let url = format!("http://{}", fleet.address(0));
    let dir = fleet.cells[0].bench.path("cell");
    let dir = dir.to_str().expect("text");
    let other = fleet.cluster.bench.run(&["cell", "--url", &url, "--id", "other", "--dir", dir]);
    assert_ne!(other.code(), 0);
    other.stderr_has("belongs to the cell `cell-0`");
}

#[test]
fn a_cell_with_a_wrong_token_is_refused_and_told_why() {
    let fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    let url = format!("http://{}", fleet.address(0));
    let bench = Bench::new();
    bench.write("token", "0123456789abcdef0123456789abcdef0123456789abcdef\n");
    let token = bench.path("token");
    std::fs::set_permissions(
        &token,
        <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600),
    )
    .expect("our own");
    let token = token.to_str().expect("text");
    let mut stranger = bench.start(&["cell", "--url", &url, "--id", "x", "--token-file", token]);
    stranger.until_told("token", 1);
    assert_eq!(fleet.get("/v1/cells").as_array().expect("a list").len(), 1);
    // It can be told to end all the same.
    stranger.signal(Signal::SIGTERM);
    stranger.finish().expect(0).stderr_has("its work goes on");
}
