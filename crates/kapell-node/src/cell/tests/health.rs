//! Instances that are checked.

use std::time::Duration;

use kapell_api::v1::Stop;
use kapell_core::board::request::Report;
use kapell_core::board::{ActualState, Check, DesiredLrp, HttpCheck, LrpKey, TcpCheck};
use kapell_core::rep::container::State;

use super::stage::{EPOCH, Stage, key, run, settings};
use crate::cell::CellSettings;
use crate::testing::for_as_long;

fn http(path: &str) -> Check {
    let http = Some(HttpCheck { port: 8080, path: path.to_owned() });
    Check { http, ..Check::default() }
}

fn tcp() -> Check {
    Check { tcp: Some(TcpCheck { port: 8080 }), ..Check::default() }
}

fn runs(stage: &Stage, key: &LrpKey) -> bool {
    stage.board.state_of(key) == Some(ActualState::Running)
}

/// What the board was told of being ready, in order.
fn told_ready(stage: &Stage) -> Vec<bool> {
    let calls = stage.board.calls();
    calls.iter().flatten().filter_map(crate::cell::progress::told_ready).collect()
}

#[tokio::test(start_paused = true)]
async fn an_instance_runs_once_it_is_well_and_is_asked_at_its_port_of_this_machine() {
    for (what, check) in [("/health", http("/health")), ("tcp", tcp())] {
        let stage = Stage::new().await;
        let web = key("web", 0);
        stage.outside.is_ill(what, Some("refused"));
        let guid = stage.place_with(&web, |desired| desired.check = Some(check)).await;
        let created = async || stage.state(&guid) == Some(State::Created);
        stage.until("it was asked", |stage| stage.outside.asked(what) > 3).await;
        for_as_long("it starts", Duration::from_secs(5), created).await;
        stage.outside.is_ill(what, None);
        stage.within(Duration::from_secs(3), "it runs", |stage| runs(stage, &web)).await;
        let net = stage.board.records().instances[&web].net.clone().unwrap();
        assert_eq!(stage.outside.asked.lock().unwrap()[0].1, net.ports[0].host_port);
        let before = stage.outside.asked(what);
        let none = async || stage.outside.asked(what) == before;
        for_as_long("it is left in peace", Duration::from_secs(28), none).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_never_well_crashes_when_its_time_is_over() {
    for hangs in [false, true] {
        let stage = Stage::new().await;
        if hangs {
            stage.outside.hangs("/health");
        } else {
            stage.outside.is_ill("/health", Some("refused"));
        }
        let check = |desired: &mut DesiredLrp| {
            desired.check = Some(http("/health"));
            desired.start_timeout_ms = 7000;
        };
        let guid = stage.place_with(&key("web", 0), check).await;
        let there = async || stage.state(&guid) == Some(State::Created);
        for_as_long("it has its time", Duration::from_secs(6), there).await;
        stage.within(Duration::from_secs(2), "it is gone", Stage::is_empty).await;
        assert_eq!(stage.board.told(), ["claim", "crashed"]);
        let reason = stage.crash().unwrap();
        assert!(reason.starts_with("Instance never healthy after 7s: "), "{reason}");
    }
}

/// It is asked to stop, and killed if it does not: a crash with the reason either way.
#[tokio::test(start_paused = true)]
async fn one_that_is_not_well_any_more_is_stopped_and_has_crashed() {
    for deaf in [false, true] {
        let stage = Stage::new().await;
        let web = key("web", 0);
        stage.place_with(&web, |desired| desired.check = Some(tcp())).await;
        stage.until("it runs", |stage| runs(stage, &web)).await;
        stage.containers.faults().deaf = deaf;
        stage.outside.is_ill("tcp", Some("nobody listens"));
        stage.within(Duration::from_secs(50), "it is gone", Stage::is_empty).await;
        assert_eq!(stage.crash().unwrap(), "Instance became unhealthy: nobody listens");
        assert!(stage.containers.guids().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_one_that_is_not_well_is_a_stop() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.place_with(&web, |desired| desired.check = Some(tcp())).await;
    stage.until("it runs", |stage| runs(stage, &web)).await;
    stage.containers.faults().deaf = true;
    stage.outside.is_ill("tcp", Some("nobody listens"));
    let asked = |stage: &Stage| stage.outside.asked("tcp") == 2;
    stage.within(Duration::from_secs(31), "it is found out", asked).await;
    stage.cell.stop(EPOCH, &Stop { key: web, instance_guid: guid }).unwrap();
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "running", "remove"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_of_the_agent_it_goes_on_being_checked_as_it_was() {
    for healthy in [false, true] {
        let mut stage = Stage::new().await;
        let web = key("web", 0);
        if !healthy {
            stage.outside.is_ill("tcp", Some("nobody listens"));
        }
        let guid = stage.place_with(&web, |desired| desired.check = Some(tcp())).await;
        if healthy {
            stage.until("it runs", |stage| runs(stage, &web)).await;
        } else {
            stage.until("it is asked", |stage| stage.outside.asked("tcp") > 1).await;
        }
        stage.restart().await;
        let wanted = if healthy { State::Running } else { State::Created };
        assert_eq!(stage.state(&guid), Some(wanted));
        if healthy {
            stage.outside.is_ill("tcp", Some("nobody listens"));
            stage.until("it is gone", Stage::is_empty).await;
            assert_eq!(stage.crash().unwrap(), "Instance became unhealthy: nobody listens");
        } else {
            stage.outside.is_ill("tcp", None);
            stage.until("it runs", |stage| runs(stage, &web)).await;
        }
        assert_eq!(stage.containers.ran().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn monitors_have_names_of_their_own_also_after_a_restart_and_are_stopped_when_they_hang() {
    let limits = CellSettings { monitor_limit: Duration::from_secs(10), ..settings() };
    let mut stage = Stage::with(limits).await;
    let web = key("web", 0);
    let guid = stage.place_with(&web, |desired| desired.monitor = Some(run("check"))).await;
    let names = |stage: &Stage| stage.containers.names(guid.as_str());
    stage.until("it is checked", |stage| names(stage) == ["0", "m1-0"]).await;
    stage.until("and again", |stage| names(stage) == ["0", "m1-0", "m2-0"]).await;
    stage.restart().await;
    stage.until("and again", |stage| names(stage).last().unwrap() == "m3-0").await;
    stage.until("it is well", |stage| stage.containers.monitored(guid.as_str(), 0)).await;
    stage.until("it runs", |stage| runs(stage, &web)).await;
    assert!(!stage.containers.created()[0].sole);
    assert_eq!(stage.containers.ran().len(), 1, "what monitors write is not kept");
}

#[tokio::test(start_paused = true)]
async fn being_ready_is_told_when_it_changes() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    stage.outside.is_ill("/ready", Some("warming up"));
    stage.place_with(&web, |desired| desired.readiness = Some(http("/ready"))).await;
    stage.until("it runs", |stage| runs(stage, &web)).await;
    stage.until("it was asked", |stage| stage.outside.asked("/ready") > 2).await;
    assert_eq!(told_ready(&stage), [false]);
    stage.outside.is_ill("/ready", None);
    stage.until("it is ready", |stage| told_ready(stage) == [false, true]).await;
    stage.outside.is_ill("/ready", Some("busy"));
    let again = |stage: &Stage| told_ready(stage) == [false, true, false];
    stage.within(Duration::from_secs(31), "it is not any more", again).await;
    assert!(runs(&stage, &web));
    assert_eq!(stage.board.records().instances[&web].ready, Some(false));
}

#[tokio::test(start_paused = true)]
async fn a_report_of_being_ready_that_is_lost_is_made_again_and_a_restart_tells_nothing_wrong() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    let mut lost = 2;
    stage.board.set_fate(move |report| {
        if matches!(report, Report::Ready { .. }) && lost > 0 {
            lost -= 1;
            return super::board::Fate::Lost;
        }
        super::board::Fate::Arrives
    });
    stage.place_with(&web, |desired| desired.readiness = Some(http("/ready"))).await;
    let ready = |stage: &Stage| {
        stage.board.records().instances.get(&web).and_then(|lrp| lrp.ready) == Some(true)
    };
    stage.until("it is ready", ready).await;
    let told = told_ready(&stage).len();
    stage.restart().await;
    let asked = stage.outside.asked("/ready");
    stage.until("it was asked again", |stage| stage.outside.asked("/ready") > asked).await;
    let still = async || ready(&stage) && told_ready(&stage)[told..].iter().all(|ready| *ready);
    for_as_long("it stays ready", Duration::from_secs(40), still).await;
}

#[tokio::test(start_paused = true)]
async fn checks_that_hang_are_few_at_once_and_delay_nothing_else() {
    let stage = Stage::with(CellSettings { checks: 2, ..settings() }).await;
    stage.outside.hangs("/hangs");
    for index in 0..6 {
        let web = key("hangs", index);
        stage.place_with(&web, |desired| desired.check = Some(http("/hangs"))).await;
    }
    stage.until("some are asked", |stage| stage.outside.asked("/hangs") >= 2).await;
    let guid = stage.running(&key("web", 0)).await;
    stage.cell.stop(EPOCH, &Stop { key: key("web", 0), instance_guid: guid.clone() }).unwrap();
    let gone = |stage: &Stage| stage.state(&guid).is_none();
    stage.within(Duration::from_secs(1), "it is gone", gone).await;
    let well = key("well", 0);
    stage.place_with(&well, |desired| desired.check = Some(tcp())).await;
    stage.within(Duration::from_secs(30), "it runs", |stage| runs(stage, &well)).await;
    assert_eq!(stage.outside.most_at_once.lock().unwrap().1, 2);
}

#[tokio::test(start_paused = true)]
async fn a_check_of_a_port_that_is_none_of_its_own_says_so() {
    let stage = Stage::new().await;
    let check = Check { tcp: Some(TcpCheck { port: 9 }), ..Check::default() };
    stage
        .place_with(&key("web", 0), |desired| {
            desired.check = Some(check);
            desired.start_timeout_ms = 3000;
        })
        .await;
    stage.until("it is gone", Stage::is_empty).await;
    assert!(stage.crash().unwrap().ends_with("port 9 is not among its ports: name it there"));
}
