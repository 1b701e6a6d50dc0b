//! Drivers that fail, step by step.

use std::time::Duration;

use kapell_api::v1::Stop;
use kapell_backend::containers::{Exit, Limits, Port, User};
use kapell_core::board::{Action, DesiredLrp, Run};
use kapell_core::rep::container::State;

use super::recipes::{is_completed, job, serial};
use super::stage::{EPOCH, Stage, key, lrp, run, settings};
use crate::cell::CellSettings;

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_made_has_failed_with_the_reason() {
    let stage = Stage::new().await;
    stage.containers.faults().create = Some("no such image".to_owned());
    stage.place(&key("web", 0));
    stage.place_task(&job());
    stage.until("both are gone", |stage| is_completed(stage) && stage.is_empty()).await;
    assert_eq!(stage.crash().unwrap(), "no such image");
    assert_eq!(stage.board.task(&job()).unwrap().failure_reason, "no such image");
    assert!(stage.containers.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_of_several_that_cannot_be_run_fails_all() {
    let stage = Stage::new().await;
    stage.place_task_with(&job(), serial(&[run("a"), run("b")]));
    stage.until("the first runs", |stage| stage.containers.paths() == ["a"]).await;
    stage.containers.fail_with("no such program: `b`");
    stage.containers.end_one("i-job", "0", 0);
    stage.until("it is over", |stage| is_completed(stage) && stage.is_empty()).await;
    assert_eq!(stage.board.task(&job()).unwrap().failure_reason, "no such program: `b`");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_the_driver_cannot_tell_is_a_failure() {
    let stage = Stage::new().await;
    let guid = stage.running(&key("web", 0)).await;
    stage.containers.faults().ended = Some("its exit file cannot be read".to_owned());
    stage.containers.exit_with(guid.as_str(), 0);
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.crash().unwrap(), "its exit file cannot be read: it is busy");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_ended_by_force_is_tried_again() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.place_with(&web, |desired| desired.setup = Some(run("prepare"))).await;
    stage.until("setup runs", |stage| stage.containers.paths() == ["prepare"]).await;
    stage.containers.faults().deaf = true;
    stage.containers.faults().delete = 2;
    stage.cell.stop(EPOCH, &Stop { key: web, instance_guid: guid }).unwrap();
    stage.within(Duration::from_secs(26), "it is gone", Stage::is_empty).await;
    assert!(stage.containers.guids().is_empty());
    assert_eq!(stage.board.told(), ["claim", "remove"]);
}

#[tokio::test(start_paused = true)]
async fn out_of_memory_is_told() {
    let stage = Stage::new().await;
    for (exit, reason) in [
        (Exit { code: Some(137), ..Exit::default() }, "Exited with status 137 (out of memory)"),
        (
            Exit { signal: Some(9), ..Exit::default() },
            "Killed by signal 9 (SIGKILL) (out of memory)",
        ),
    ] {
        let guid = stage.running(&key("web", 0)).await;
        let exit = Exit { out_of_memory: true, ..exit };
        stage.containers.end(guid.as_str(), &exit);
        stage.until("it is gone", Stage::is_empty).await;
        assert_eq!(stage.crash().unwrap(), reason);
    }
}

/// The only one that may be made at once is slow, as one whose image is pulled is.
#[tokio::test(start_paused = true)]
async fn a_slow_creation_delays_neither_stops_nor_checks_nor_programs_nor_transfers() {
    let stage = Stage::with(CellSettings { starts: 1, ..settings() }).await;
    let web = key("web", 0);
    let guid = stage.place_with(&web, |desired| desired.monitor = Some(run("check"))).await;
    stage.place_task_with(&job(), serial(&[run("a"), run("b")]));
    stage.until("both run", |stage| stage.containers.running().len() == 2).await;
    stage.containers.faults().gated = Some("slow".to_owned());
    let slow = key("slow", 0);
    let made = stage.place_with(&slow, |desired| desired.action = run("slow")).await;
    let initializing = |stage: &Stage| stage.state(&made) == Some(State::Initializing);
    stage.until("it is being made", initializing).await;
    let waits = stage.place_with(&key("waits", 0), |_| {}).await;
    let second = Duration::from_secs(1);
    stage.containers.end_one("i-job", "0", 0);
    let goes_on = |stage: &Stage| stage.containers.paths().contains(&"b".to_owned());
    stage.within(second, "the task goes on", goes_on).await;
    stage.until("it is checked", |stage| stage.containers.monitored(guid.as_str(), 0)).await;
    let runs = |stage: &Stage| stage.state(&guid) == Some(State::Running);
    stage.within(second, "it runs", runs).await;
    stage.cell.stop(EPOCH, &Stop { key: web, instance_guid: guid.clone() }).unwrap();
    stage.within(second, "it is gone", |stage| stage.state(&guid).is_none()).await;
    let stop = Stop { key: key("waits", 0), instance_guid: waits.clone() };
    stage.cell.stop(EPOCH, &stop).unwrap();
    stage.within(second, "so is one that waits", |stage| stage.state(&waits).is_none()).await;
    assert_eq!(stage.state(&made), Some(State::Initializing));
    stage.containers.gate.add_permits(1);
    stage.until("it runs", |stage| stage.state(&made) == Some(State::Running)).await;
}

#[tokio::test(start_paused = true)]
async fn a_container_is_told_the_port_to_listen_on_as_its_network_has_it() {
    for (setting, rootfs) in [(false, None), (true, None), (true, Some("dir:///root"))] {
        let own_network = setting && rootfs.is_some();
        let stage = Stage::new().await;
        *stage.containers.own_network.lock().unwrap() = setting;
        let ask = |it: &mut DesiredLrp| it.rootfs = rootfs.map(str::to_owned);
        stage.place_with(&key("web", 0), ask).await;
        stage.until("it runs", |stage| stage.containers.running().len() == 1).await;
        let env = stage.containers.ran()[0].env.clone();
        let host = stage.containers.created()[0].ports[0].host.to_string();
        let wanted = if own_network { "8080" } else { &host };
        for name in ["PORT", "PORT_8080"] {
            let told = env.iter().find(|(is, _)| is == name).map(|(_, port)| port.as_str());
            assert_eq!(told, Some(wanted), "{name} {own_network}");
        }
    }
}

fn as_user(user: &str) -> Action {
    Action::Run(Run { path: "x".to_owned(), user: Some(user.to_owned()), ..Run::default() })
}

/// This machine has no such users: those who look them up here fail.
#[tokio::test(start_paused = true)]
async fn users_of_a_root_are_named_to_the_driver_and_nobody_else() {
    let stage = Stage::new().await;
    for (index, name) in ["of-the-image", "of-the-image:group", "0", "70"].into_iter().enumerate() {
        let web = key("web", index.try_into().unwrap());
        let ask = |desired: &mut DesiredLrp| {
            desired.rootfs = Some("dir:///root".to_owned());
            desired.setup = (index == 1).then(|| run("prepare"));
            desired.action = as_user(name);
        };
        let guid = stage.place_with(&web, ask).await;
        if index == 1 {
            stage.until("setup runs", |stage| stage.containers.paths().len() == 2).await;
            stage.containers.end_one(guid.as_str(), "0", 0);
        }
        let count = if index == 0 { 1 } else { index + 2 };
        stage.until("it runs", |stage| stage.containers.ran().len() == count).await;
        let of_container = stage.containers.created().pop().unwrap().user;
        let of_program = stage.containers.ran().pop().unwrap().user;
        let named = User::Named(name.to_owned());
        let wanted = if index == 1 { (User::Same, Some(named)) } else { (named, None) };
        assert_eq!((of_container, of_program), wanted, "{name}");
    }
}

/// It is looked up once, for the container that is there for nothing else.
#[tokio::test(start_paused = true)]
async fn one_program_is_the_user_of_its_container() {
    let stage = Stage::with(CellSettings { allow_root: true, ..settings() }).await;
    let agent = crate::system::user().to_string();
    stage.place_with(&key("web", 0), |desired| desired.action = as_user(&agent)).await;
    stage.until("it runs", |stage| stage.containers.ran().len() == 1).await;
    assert_eq!(stage.containers.ran()[0].user, None);
    assert_eq!(stage.containers.created()[0].user, User::Same, "which is the agent");
    stage.place_task_with(&job(), as_user("no-such-user"));
    stage.until("it has failed", is_completed).await;
    let reason = stage.board.task(&job()).unwrap().failure_reason;
    assert_eq!(reason, "there is no user `no-such-user` on this machine");
}

#[tokio::test(start_paused = true)]
async fn limits_go_to_the_driver_and_cpu_is_counted_where_it_is_a_setting() {
    let limits = CellSettings { cpu_millis: Some(1000), log_rate: Some(7), ..settings() };
    let mut stage = Stage::with(limits).await;
    let ask = |desired: &mut DesiredLrp| {
        desired.cpu_millis = 600;
        desired.max_pids = 20;
        desired.log_rate = 5;
        desired.rootfs = Some("oci:/images/web".to_owned());
    };
    stage.place_with(&key("web", 0), ask).await;
    stage.until("it runs", |stage| stage.containers.running().len() == 1).await;
    let spec = stage.containers.created()[0].clone();
    let wanted = Limits { memory_mb: Some(1), cpu_millis: Some(600), pids: Some(20) };
    assert_eq!(spec.limits, wanted);
    assert_eq!((spec.rootfs.as_deref(), spec.log_rate), (Some("oci:/images/web"), Some(5)));
    assert!(spec.sole);
    let [Port { container: 8080, .. }] = spec.ports[..] else { panic!("{spec:?}") };
    for _ in 0..2 {
        let mut work = lrp(&key("web", 1));
        ask(&mut work.desired);
        let refused = stage.work(vec![work], Vec::new()).refused_lrps;
        assert_eq!(refused[0].1, "insufficient resources: cpu");
        stage.restart().await;
        stage.until("it is welcome", |stage| stage.cell.shared.rep().welcome).await;
    }
    let told = stage.cell.state(EPOCH).unwrap();
    assert_eq!(told.rootfs_schemes, ["dir", "oci"]);
    assert_eq!(stage.board.presences.lock().unwrap()[0].rootfs_schemes, ["dir", "oci"]);
    let mut work = lrp(&key("web", 2));
    work.desired.rootfs = Some("docker:///web".to_owned());
    let refused = stage.work(vec![work], Vec::new()).refused_lrps;
    let known = "this cell cannot run the rootfs `docker:///web`: it knows dir, oci";
    assert_eq!(refused[0].1, known);
    stage.place_with(&key("none", 0), |desired| desired.memory_mb = 0).await;
    stage.until("both run", |stage| stage.containers.running().len() == 2).await;
    let spec = stage.containers.created()[1].clone();
    assert_eq!((spec.limits, spec.log_rate), (Limits::default(), Some(7)));
}
