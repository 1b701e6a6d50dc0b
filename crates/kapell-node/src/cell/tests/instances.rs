use std::time::Duration;

use kapell_api::v1::Stop;
use kapell_backend::containers::Exit;
use kapell_core::board::request::Report;
use kapell_core::board::{ActualState, Variable};

use super::board::{Fate, elsewhere};
use super::stage::{EPOCH, Stage, key, lrp};
use crate::cell::LogOf;
use crate::testing::for_as_long;

#[tokio::test(start_paused = true)]
async fn an_instance_is_claimed_run_and_reported_with_one_report_each() {
    let stage = Stage::new().await;
    let web = key("web", 2);
    stage.board.unclaimed(&web);
    let mut work = lrp(&web);
    work.desired.ports = vec![8080, 9090];
    work.desired.env = vec![Variable::plain("A", "1"), Variable::plain("HOME", "/h")];
    stage.work(vec![work], Vec::new());
    stage.until("it runs", |stage| stage.board.state_of(&web) == Some(ActualState::Running)).await;
    assert_eq!(stage.board.told(), ["claim", "running"]);
    let record = stage.board.records().instances[&web].clone();
    let net = record.net.unwrap();
    assert_eq!(net.address, "10.0.0.1");
    assert_eq!(net.ports.len(), 2);
    let process = stage.containers.ran()[0].clone();
    let logs = stage.containers.created()[0].logs.join("0");
    let guid = record.instance_guid.unwrap();
    let port = net.ports[0].host_port.to_string();
    for (name, value) in [
        ("A", "1"),
        ("HOME", "/h"),
        ("KAPELL_CELL_ID", "cell"),
        ("KAPELL_PROCESS_GUID", "web"),
        ("KAPELL_INSTANCE_INDEX", "2"),
        ("INSTANCE_INDEX", "2"),
        ("INSTANCE_GUID", guid.as_str()),
        ("PORT", &port),
        ("PORT_8080", &port),
        ("PORT_9090", &net.ports[1].host_port.to_string()),
    ] {
        let found =
            process.env.iter().find(|(set, _)| set == name).map(|(_, value)| value.as_str());
        assert_eq!(found, Some(value), "{name}");
    }
    assert_eq!(stage.cell.logs(&LogOf::Lrp(web.clone()))[0].parts, [logs]);
    assert!(stage.cell.is_live(&LogOf::Lrp(web)));
}

#[tokio::test(start_paused = true)]
async fn a_refused_claim_gives_up_the_reservation() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    stage.place(&web);
    {
        let mut records = stage.board.records();
        let lrp = records.instances.get_mut(&web).unwrap();
        lrp.state = ActualState::Claimed;
        lrp.instance_guid = Some(elsewhere().instance_guid);
        lrp.cell_id = Some(elsewhere().cell_id);
    }
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim"]);
    assert!(stage.containers.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_reported_with_its_reason() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    for (exit, reason) in [
        (Exit { code: Some(0), ..Exit::default() }, "Exited with status 0"),
        (
            Exit { code: Some(3), last_words: "oh no".into(), ..Exit::default() },
            "Exited with status 3: oh no",
        ),
        (Exit { signal: Some(9), ..Exit::default() }, "Killed by signal 9 (SIGKILL)"),
        (
            Exit { trouble: Some("the shim was killed".into()), ..Exit::default() },
            "the shim was killed",
        ),
    ] {
        let guid = stage.running(&web).await;
        stage.containers.end(guid.as_str(), &exit);
        stage.until("it is gone", Stage::is_empty).await;
        let last = stage.board.calls().pop().unwrap();
        let Report::Crashed { reason: told, .. } = &last[0] else { panic!("{last:?}") };
        assert_eq!(told, reason);
    }
    assert!(stage.containers.guids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_started_crashes_with_the_reason() {
    let stage = Stage::new().await;
    stage.containers.fail_with("no such program: `server`");
    stage.place(&key("web", 0));
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "crashed"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_container_and_removes_the_record() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let instance_guid = stage.running(&web).await;
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid }).unwrap();
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "running", "remove"]);
    assert_eq!(stage.board.state_of(&web), None);
    assert!(stage.containers.guids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_it_starts_is_not_forgotten() {
    let stage = Stage::new().await;
    stage.containers.faults().gated = Some("server".to_owned());
    let web = key("web", 0);
    stage.place(&web);
    let starting = |stage: &Stage| stage.containers.most_at_once.lock().unwrap().0 == 1;
    stage.until("it is being started", starting).await;
    let instance_guid = stage.board.records().instances[&web].instance_guid.clone().unwrap();
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid }).unwrap();
    stage.containers.gate.add_permits(1);
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "remove"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_the_claim_runs_nothing() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    stage.place(&web);
    let instance_guid = stage.cell.state(EPOCH).unwrap().lrps[0].instance_guid.clone();
    // Lets the claim be sent, but not be answered.
    tokio::task::yield_now().await;
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid }).unwrap();
    stage
        .until("it is gone", |stage| stage.is_empty() && stage.board.state_of(&web).is_none())
        .await;
    assert!(stage.containers.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_live_container_is_stopped_only_after_a_fresh_read() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.running(&web).await;
    stage.board.records().instances.get_mut(&web).unwrap().cell_id = Some("other".into());
    *stage.board.unreadable.lock().unwrap() = true;
    stage.cell.shared.rep().look_at(guid.clone());
    let there = |stage: &Stage| stage.containers.guids() == [guid.as_str()];
    for_as_long("it runs", Duration::from_secs(100), || async { there(&stage) }).await;
    *stage.board.unreadable.lock().unwrap() = false;
    stage.within(Duration::from_secs(31), "it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "running"]);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_reported_is_reported_soon() {
    for fate in [Fate::Lost, Fate::AnswerLost, Fate::Busy] {
        for wanted in ["claim", "running", "crashed", "remove"] {
            let stage = Stage::new().await;
            let mut left = 3;
            stage.board.set_fate(move |report| {
                if super::board::name(report) == wanted && left > 0 {
                    left -= 1;
                    return fate;
                }
                Fate::Arrives
            });
            let web = key("web", 0);
            let guid = stage.running(&web).await;
            assert_eq!(stage.containers.ran().len(), 1, "{fate:?} {wanted}");
            if wanted == "remove" {
                let stop = Stop { key: web.clone(), instance_guid: guid };
                stage.cell.stop(EPOCH, &stop).unwrap();
            } else {
                stage.containers.exit_with(guid.as_str(), 1);
            }
            let gone = |stage: &Stage| {
                stage.is_empty() && stage.board.state_of(&web) != Some(ActualState::Running)
            };
            stage.within(Duration::from_secs(10), "it is gone", gone).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_that_the_driver_has_lost_is_a_crash() {
    let stage = Stage::new().await;
    let guid = stage.running(&key("web", 0)).await;
    kapell_backend::containers::Containers::delete(&*stage.containers, guid.as_str())
        .await
        .unwrap();
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "running", "crashed"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_deleted_is_deleted_later() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let instance_guid = stage.running(&web).await;
    stage.containers.faults().delete = 3;
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid }).unwrap();
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.containers.faults().delete, 0);
    assert!(stage.containers.guids().is_empty());
    assert_eq!(stage.board.told(), ["claim", "running", "remove"], "said once");
}

#[tokio::test(start_paused = true)]
async fn reports_name_the_incarnation_also_after_a_restart_of_the_agent() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    stage.board.unclaimed(&web);
    stage.board.records().instances.get_mut(&web).unwrap().incarnation = 7;
    let mut work = lrp(&web);
    work.desired.incarnation = 7;
    stage.work(vec![work], Vec::new());
    let runs = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Running);
    stage.until("it runs", runs).await;
    stage.agent.shutdown().await;
    stage.board.records().instances.clear();
    stage.restart().await;
    stage.until("it is known again", runs).await;
    let incarnations: Vec<Option<u64>> = stage.board.calls().iter().flatten().map(named).collect();
    assert_eq!(incarnations, [Some(7); 3], "claim, running, running");
}

fn named(report: &Report) -> Option<u64> {
    match report {
        Report::Claim { incarnation, .. }
        | Report::Running { incarnation, .. }
        | Report::Crashed { incarnation, .. }
        | Report::Evacuate { incarnation, .. } => *incarnation,
        Report::Remove { .. }
        | Report::RemoveEvacuating { .. }
        | Report::Unclaim { .. }
        | Report::Ready { .. }
        | Report::StartTask { .. }
        | Report::CompleteTask { .. } => None,
    }
}

/// Its process was deleted and another desired under the same name while its cell was away.
#[tokio::test(start_paused = true)]
async fn a_container_of_an_earlier_process_is_not_taken_for_one_of_the_new() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    stage.running(&web).await;
    stage.agent.shutdown().await;
    stage.board.unclaimed(&web);
    stage.board.records().instances.get_mut(&web).unwrap().incarnation = 7;
    stage.restart().await;
    stage.until("it is gone", Stage::is_empty).await;
    assert!(stage.containers.guids().is_empty());
    assert_eq!(stage.board.told(), ["claim", "running"], "nothing was said of the new one");
    assert_eq!(stage.board.state_of(&web), Some(ActualState::Unclaimed));
}
