use std::collections::BTreeSet;
use std::time::Duration;

use kapell_backend::containers::User;
use kapell_core::board::{ActualState, LrpKey};

use super::stage::{EPOCH, Stage, key, lrp, run, settings};
use crate::cell::{CellSettings, LogOf};
use crate::testing::for_as_long;

fn running(stage: &Stage) -> usize {
    let records = stage.board.records();
    records.instances.values().filter(|lrp| lrp.state == ActualState::Running).count()
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_refused() {
    let stage = Stage::new().await;
    let refused = |memory_mb, disk_mb| {
        let mut work = lrp(&key("big", 0));
        (work.desired.memory_mb, work.desired.disk_mb) = (memory_mb, disk_mb);
        stage.work(vec![work], Vec::new()).refused_lrps.pop().map(|(_, reason)| reason)
    };
    assert_eq!(refused(1001, 1).unwrap(), "insufficient resources: memory");
    assert_eq!(refused(1, 1001).unwrap(), "insufficient resources: disk");
    assert_eq!(refused(1001, 1001).unwrap(), "insufficient resources: disk, memory");
    stage.running(&key("web", 0)).await;
    assert_eq!(refused(1000, 1).unwrap(), "insufficient resources: memory");
    let again = stage.work(vec![lrp(&key("web", 0))], Vec::new());
    assert_eq!(again.refused_lrps[0].1, "this cell has a container for it already");
    let mut sneaky = lrp(&key("web", 1));
    sneaky.desired.process_guid = "../..".into();
    assert_eq!(stage.work(vec![sneaky], Vec::new()).refused_lrps.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_instances_are_reported_in_few_calls_and_never_share_a_port_or_user() {
    let users = Some(300_000..300_200);
    let stage = Stage::with(CellSettings { users, ..settings() }).await;
    let keys: Vec<LrpKey> = (0..150).map(|index| key("web", index)).collect();
    for key in &keys {
        stage.board.unclaimed(key);
    }
    stage.work(keys.iter().map(lrp).collect(), Vec::new());
    stage.until("all run", |stage| running(stage) == 150).await;
    let calls = stage.board.calls();
    assert_eq!(calls.iter().flatten().count(), 300);
    assert!(calls.len() <= 20, "{} calls", calls.len());
    assert!(calls.iter().all(|call| call.len() <= 100));
    assert!(stage.containers.most_at_once.lock().unwrap().1 <= 32);
    let created = stage.containers.created();
    let users: BTreeSet<u32> = created
        .iter()
        .filter_map(|spec| match spec.user {
            User::Id { uid, .. } => Some(uid),
            User::Same | User::Named(_) => None,
        })
        .collect();
    assert_eq!(users.len(), 150);
    let records = stage.board.records();
    let ports: BTreeSet<u16> = records
        .instances
        .values()
        .flat_map(|lrp| lrp.net.as_ref().unwrap().ports.iter().map(|port| port.host_port))
        .collect();
    assert_eq!(ports.len(), 150);
}

#[tokio::test(start_paused = true)]
async fn ports_and_users_of_found_containers_are_not_given_again() {
    let (users, ports) = (Some(300_000..300_002), 61_000..61_100);
    let mut stage = Stage::with(CellSettings { ports, users, ..settings() }).await;
    stage.running(&key("web", 0)).await;
    stage.restart().await;
    stage.running(&key("web", 1)).await;
    let ran = stage.containers.ran();
    let created = stage.containers.created();
    assert_ne!(created[0].user, created[1].user);
    assert_ne!(created[0].ports, created[1].ports);
    let port = |index: usize| ran[index].env.iter().find(|(name, _)| name == "PORT").cloned();
    assert_ne!(port(0), port(1));
    let third = stage.work(vec![lrp(&key("web", 2))], Vec::new());
    assert_eq!(third.refused_lrps[0].1, "insufficient resources: users");
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_comes_to_nothing_expires() {
    let stage = Stage::new().await;
    stage.board.set_fate(|_| super::board::Fate::Lost);
    *stage.board.unreadable.lock().unwrap() = true;
    stage.place(&key("web", 0));
    stage.until("it is held", |stage| stage.held() == 1).await;
    stage.within(Duration::from_secs(61), "it has expired", Stage::is_empty).await;
    assert!(stage.containers.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_start_delays_nothing_else() {
    let stage = Stage::new().await;
    stage.containers.faults().gated = Some("slow".to_owned());
    let mut slow = lrp(&key("slow", 0));
    slow.desired.action = run("slow");
    stage.board.unclaimed(&key("slow", 0));
    stage.work(vec![slow], Vec::new());
    stage.running(&key("web", 0)).await;
    assert_eq!(stage.board.state_of(&key("slow", 0)), Some(ActualState::Claimed));
    stage.containers.gate.add_permits(1);
    stage.until("both run", |stage| running(stage) == 2).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_last_logs_are_kept() {
    let stage =
        Stage::with(CellSettings { log_keys: 2, log_age: Duration::from_secs(900), ..settings() })
            .await;
    let web = key("web", 0);
    for _ in 0..5 {
        let guid = stage.running(&web).await;
        stage.containers.exit_with(guid.as_str(), 1);
        stage.until("it is gone", Stage::is_empty).await;
    }
    let logs = |stage: &Stage, key: &LrpKey| stage.cell.logs(&LogOf::Lrp(key.clone())).len();
    stage.until("three are left", |stage| logs(stage, &web) == 3).await;
    for index in 1..4 {
        let guid = stage.running(&key("web", index)).await;
        stage.containers.exit_with(guid.as_str(), 1);
        stage.until("it is gone", Stage::is_empty).await;
    }
    let limit = Duration::from_secs(601);
    let two_keys = |stage: &Stage| logs(stage, &web) == 0 && logs(stage, &key("web", 1)) == 0;
    stage.within(limit, "two keys are left", two_keys).await;
    assert_eq!(logs(&stage, &key("web", 3)), 1);
    let none = |stage: &Stage| logs(stage, &key("web", 3)) == 0;
    stage.within(Duration::from_secs(1300), "all are too old", none).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_driver_keeps_is_bounded_now_and_then() {
    let stage = Stage::new().await;
    let times =
        |wanted: u32| move |stage: &Stage| *stage.containers.tidied.lock().unwrap() == wanted;
    stage.until("it has been", times(1)).await;
    stage.containers.faults().tidy = true;
    stage.within(Duration::from_secs(601), "it has been tried again", times(2)).await;
    stage.within(Duration::from_secs(601), "it is not given up", times(3)).await;
    stage.running(&key("web", 0)).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_stop_in_time_is_ended_by_force() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.running(&web).await;
    stage.containers.faults().deaf = true;
    let stop = kapell_api::v1::Stop { key: web.clone(), instance_guid: guid };
    stage.cell.stop(EPOCH, &stop).unwrap();
    let grace = stage.settings.stop_grace;
    let there = async || stage.containers.guids().len() == 1;
    for_as_long("it has its grace time", grace + Duration::from_secs(4), there).await;
    stage.within(Duration::from_secs(2), "it is gone", Stage::is_empty).await;
    assert!(stage.containers.guids().is_empty());
    assert_eq!(stage.board.told(), ["claim", "running", "remove"], "it was stopped, no crash");
}
