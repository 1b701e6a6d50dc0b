use std::time::Duration;

use kapell_core::board::{ActualState, TaskGuid, TaskState};

use super::board::{Fate, elsewhere, name};
use super::stage::{EPOCH, Stage, key, lrp, settings};
use crate::cell::{Cell, CellSettings};
use crate::testing::within;

#[tokio::test(start_paused = true)]
async fn instances_stay_until_they_run_elsewhere_and_then_the_cell_leaves() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    stage.running(&web).await;
    stage.place_task(&TaskGuid::new("job"));
    stage.until("both run", |stage| stage.containers.running().len() == 2).await;
    stage.cell.evacuate(EPOCH).unwrap();
    let given_up = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Unclaimed);
    stage.until("it is given up", given_up).await;
    assert!(stage.board.records().twins.contains_key(&web));
    let answer = stage.work(vec![lrp(&key("more", 0))], Vec::new());
    assert_eq!(answer.refused_lrps[0].1, "the cell is evacuating");
    assert_eq!(stage.containers.guids().len(), 2);
    {
        let mut records = stage.board.records();
        let lrp = records.instances.get_mut(&web).unwrap();
        lrp.state = ActualState::Running;
        lrp.instance_guid = Some(elsewhere().instance_guid);
        lrp.cell_id = Some(elsewhere().cell_id);
    }
    let one_left = |stage: &Stage| stage.containers.guids().len() == 1;
    stage.within(Duration::from_secs(11), "it has moved", one_left).await;
    assert!(stage.board.records().twins.is_empty());
    assert_eq!(*stage.board.left.lock().unwrap(), 0);
    stage.containers.exit_with("i-job", 1);
    within("it is over", Duration::from_secs(15), stage.cell.evacuated()).await;
    assert_eq!(*stage.board.left.lock().unwrap(), 1);
    assert!(stage.containers.guids().is_empty());
    assert!(stage.board.presences.lock().unwrap().iter().any(|presence| presence.evacuating));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_after_the_time_is_given_up() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    stage.running(&web).await;
    stage.place_task(&TaskGuid::new("job"));
    stage.until("both run", |stage| stage.containers.running().len() == 2).await;
    stage.containers.faults().deaf = true;
    stage.cell.evacuate(EPOCH).unwrap();
    within("it is over", Duration::from_secs(605), stage.cell.evacuated()).await;
    assert!(stage.containers.guids().is_empty());
    assert!(stage.board.records().twins.is_empty());
    assert_eq!(stage.board.state_of(&web), Some(ActualState::Unclaimed));
    let task = stage.board.task(&TaskGuid::new("job")).unwrap();
    assert_eq!(task.state, TaskState::Completed);
    assert_eq!(task.failure_reason, "timed out during cell evacuation");
    assert_eq!(*stage.board.left.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cell_without_work_leaves_at_once() {
    let stage = Stage::new().await;
    stage.cell.evacuate(EPOCH).unwrap();
    within("it is over", Duration::from_secs(2), stage.cell.evacuated()).await;
    assert_eq!(*stage.board.left.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_evacuation_ends_although_the_board_is_silent() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    stage.running(&web).await;
    stage.board.set_fate(|_| Fate::Lost);
    *stage.board.unreadable.lock().unwrap() = true;
    stage.cell.evacuate(EPOCH).unwrap();
    within("it is over", Duration::from_secs(640), stage.cell.evacuated()).await;
    assert!(stage.containers.guids().is_empty());
}

fn short() -> CellSettings {
    CellSettings { evacuation: Duration::from_secs(20), ..settings() }
}

/// It never began here, and another cell may take it.
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_is_not_failed_by_the_end_of_an_evacuation() {
    let stage = Stage::with(short()).await;
    stage.board.set_fate(|_| Fate::Lost);
    stage.place_task(&TaskGuid::new("job"));
    stage.until("it is held", |stage| stage.held() == 1).await;
    stage.cell.evacuate(EPOCH).unwrap();
    stage.within(Duration::from_secs(22), "it is gone", Stage::is_empty).await;
    stage.board.set_fate(|_| Fate::Arrives);
    within("it is over", Duration::from_secs(30), stage.cell.evacuated()).await;
    assert_eq!(stage.board.task(&TaskGuid::new("job")).unwrap().state, TaskState::Pending);
    assert!(stage.containers.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_the_board_has_running_fails_at_the_end_of_an_evacuation() {
    let stage = Stage::with(short()).await;
    let lost =
        |report: &_| if name(report) == "start-task" { Fate::AnswerLost } else { Fate::Arrives };
    stage.board.set_fate(lost);
    stage.place_task(&TaskGuid::new("job"));
    let runs = |stage: &Stage| {
        stage.board.task(&TaskGuid::new("job")).unwrap().state == TaskState::Running
    };
    stage.until("the board has it running", runs).await;
    stage.cell.evacuate(EPOCH).unwrap();
    within("it is over", Duration::from_secs(60), stage.cell.evacuated()).await;
    let task = stage.board.task(&TaskGuid::new("job")).unwrap();
    assert_eq!(task.state, TaskState::Completed);
    assert_eq!(task.failure_reason, "timed out during cell evacuation");
    assert!(stage.containers.ran().is_empty());
}

/// What was moved so far stays moved, and the time that it has is counted from its beginning.
#[tokio::test(start_paused = true)]
async fn an_agent_that_is_started_again_goes_on_evacuating() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    stage.running(&web).await;
    stage.cell.evacuate(EPOCH).unwrap();
    let given_up = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Unclaimed);
    stage.until("it is given up", given_up).await;
    let before = stage.board.presences.lock().unwrap().len();
    stage.restart().await;
    stage.until("it is welcome", |stage| stage.cell.shared.rep().welcome).await;
    assert!(stage.board.presences.lock().unwrap()[before..].iter().all(|it| it.evacuating));
    assert!(stage.cell.state(EPOCH).unwrap().evacuating);
    let answer = stage.work(vec![lrp(&key("more", 0))], Vec::new());
    assert_eq!(answer.refused_lrps[0].1, "the cell is evacuating");
    assert_eq!(stage.containers.guids().len(), 1);
    assert!(stage.board.records().twins.contains_key(&web));
    {
        let mut records = stage.board.records();
        let lrp = records.instances.get_mut(&web).unwrap();
        lrp.state = ActualState::Running;
        lrp.instance_guid = Some(elsewhere().instance_guid);
        lrp.cell_id = Some(elsewhere().cell_id);
    }
    within("it is over", Duration::from_secs(25), stage.cell.evacuated()).await;
    assert!(stage.board.records().twins.is_empty() && stage.containers.guids().is_empty());
    assert_eq!(*stage.board.left.lock().unwrap(), 1);
    stage.restart().await;
    stage.running(&key("more", 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_gives_an_evacuation_no_more_time() {
    let mut stage = Stage::with(short()).await;
    stage.place_task(&TaskGuid::new("job"));
    stage.until("it runs", |stage| stage.containers.running().len() == 1).await;
    stage.cell.evacuate(EPOCH).unwrap();
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(6)).await;
        stage.restart().await;
    }
    within("it is over", Duration::from_secs(12), stage.cell.evacuated()).await;
    let task = stage.board.task(&TaskGuid::new("job")).unwrap();
    assert_eq!(task.failure_reason, "timed out during cell evacuation");
}

#[tokio::test(start_paused = true)]
async fn an_evacuation_that_somebody_ends_is_forgotten() {
    let mut stage = Stage::new().await;
    stage.running(&key("web", 0)).await;
    stage.cell.evacuate(EPOCH).unwrap();
    Cell::stay(stage.dir.path());
    stage.restart().await;
    stage.running(&key("more", 0)).await;
    assert!(!stage.cell.state(EPOCH).unwrap().evacuating);
    // Nor does one go on of which everything was stopped.
    stage.cell.evacuate(EPOCH).unwrap();
    stage.cell.shutdown(true);
    assert!(stage.agent.join_next().await.unwrap().is_ok());
    stage.restart().await;
    stage.running(&key("other", 0)).await;
}

/// Half a word may be all that a machine has kept that lost its power.
#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_read_still_says_that_it_evacuates() {
    let mut stage = Stage::with(short()).await;
    stage.running(&key("web", 0)).await;
    std::fs::write(stage.dir.path().join("evacuating"), "17x").unwrap();
    stage.restart().await;
    stage.until("it is welcome", |stage| stage.cell.shared.rep().welcome).await;
    assert!(stage.cell.state(EPOCH).unwrap().evacuating);
    within("it is over", Duration::from_secs(25), stage.cell.evacuated()).await;
}

/// Copied by hand from the ruling.
#[test]
fn every_timer_of_a_cell_is_as_ruled() {
    let is = CellSettings::default();
    for (name, timer, wanted) in [
        ("poll", is.poll_every, 30),
        ("poll while evacuating", is.evacuating_poll_every, 10),
        ("presence", is.present_every, 5),
        ("reservation", is.reservation, 60),
        ("evacuation", is.evacuation, 600),
        ("grace", is.stop_grace, 10),
        ("checks until it is well", is.first_checks, 2),
        ("checks then", is.later_checks, 30),
        ("self-test", is.self_test_every, 600),
    ] {
        assert_eq!(timer, Duration::from_secs(wanted), "{name}");
    }
}
