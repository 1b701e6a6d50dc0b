use std::time::Duration;

use kapell_api::v1::{Stop, Work};
use kapell_core::board::{ActualState, TaskGuid, TaskState};
use kapell_core::seat::Epoch;

use super::stage::{EPOCH, Stage, key};
use crate::link::LinkError;

#[tokio::test(start_paused = true)]
async fn a_running_instance_runs_on_and_can_be_stopped() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.running(&web).await;
    let before = stage.cell.state(EPOCH).unwrap();
    stage.restart().await;
    let after = stage.cell.state(EPOCH).unwrap();
    assert_eq!((after.lrps, after.available), (before.lrps, before.available));
    let read = *stage.board.reads.lock().unwrap();
    stage.until("it has read", |stage| *stage.board.reads.lock().unwrap() > read).await;
    assert_eq!(stage.board.told(), ["claim", "running"]);
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid: guid }).unwrap();
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.state_of(&web), None);
    assert_eq!(stage.containers.ran().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_ended_meanwhile_has_crashed() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.running(&web).await;
    stage.agent.shutdown().await;
    stage.containers.exit_with(guid.as_str(), 4);
    stage.restart().await;
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "running", "crashed"]);
}

#[tokio::test(start_paused = true)]
async fn a_running_instance_that_the_board_has_not_heard_of_is_reported() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    stage.running(&web).await;
    stage.agent.shutdown().await;
    stage.board.records().instances.clear();
    stage.restart().await;
    let runs = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Running);
    stage.until("it is known again", runs).await;
    assert_eq!(stage.containers.ran().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_container_is_given_back() {
    let mut stage = Stage::new().await;
    stage.containers.faults().gated = Some("server".to_owned());
    let web = key("web", 0);
    stage.place(&web);
    let claimed = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Claimed);
    stage.until("it is claimed", claimed).await;
    stage.restart().await;
    stage.until("it is gone", |stage| stage.board.state_of(&web).is_none()).await;
    assert!(stage.containers.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ended_meanwhile_is_completed_and_one_without_a_container_fails() {
    let mut stage = Stage::new().await;
    let (ended, lost) = (TaskGuid::new("ended"), TaskGuid::new("lost"));
    stage.place_task(&ended);
    stage.place_task(&lost);
    stage.until("both run", |stage| stage.containers.running().len() == 2).await;
    stage.agent.shutdown().await;
    stage.containers.exit_with("i-ended", 5);
    kapell_backend::containers::Containers::delete(&*stage.containers, "i-lost").await.unwrap();
    stage.restart().await;
    let completed = |stage: &Stage, task: &TaskGuid| {
        stage.board.task(task).is_some_and(|task| task.state == TaskState::Completed)
    };
    let both = |stage: &Stage| completed(stage, &ended) && completed(stage, &lost);
    stage.until("both are completed", both).await;
    assert_eq!(stage.board.task(&ended).unwrap().exit_code, Some(5));
    assert!(stage.board.task(&lost).unwrap().failed);
    stage.until("nothing is left", Stage::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn presence_is_sent_again_and_again_and_raises_the_epoch() {
    let stage = Stage::new().await;
    let sent = |stage: &Stage| stage.board.presences.lock().unwrap().len();
    stage.until("it is present", |stage| sent(stage) == 1).await;
    stage.within(Duration::from_millis(5100), "again", |stage| sent(stage) == 2).await;
    let older = stage.cell.state(Epoch(2)).unwrap_err();
    assert_eq!(older.code, "older_epoch");
    assert!(stage.cell.state(EPOCH).is_ok());
    stage.cell.state(Epoch(9)).unwrap();
    for refused in [
        stage.cell.work(EPOCH, Work::default()).map(drop),
        stage.cell.evacuate(EPOCH),
        stage.cell.stop(EPOCH, &Stop { key: key("web", 0), instance_guid: "x".into() }),
    ] {
        assert_eq!(refused.unwrap_err().code, "older_epoch");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_leaves_work_running_or_stops_it() {
    for stop_work in [false, true] {
        let mut stage = Stage::new().await;
        let web = key("web", 0);
        stage.running(&web).await;
        stage.place_task(&TaskGuid::new("job"));
        stage.until("both run", |stage| stage.containers.running().len() == 2).await;
        stage.cell.shutdown(stop_work);
        stage.agent.join_next().await.unwrap().unwrap();
        let task = stage.board.task(&TaskGuid::new("job")).unwrap();
        if stop_work {
            assert!(stage.containers.guids().is_empty());
            assert_eq!(stage.board.state_of(&web), None);
            assert!(task.failed, "{task:?}");
            assert_eq!(*stage.board.left.lock().unwrap(), 1);
        } else {
            assert_eq!(stage.containers.guids().len(), 2);
            assert_eq!(stage.board.state_of(&web), Some(ActualState::Running));
            assert_eq!(task.state, TaskState::Running);
            stage.restart().await;
            assert_eq!(stage.held(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cell_says_nothing_before_it_is_welcome() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.running(&web).await;
    stage.agent.shutdown().await;
    stage.containers.exit_with(guid.as_str(), 4);
    let silent = LinkError::NoAnswer("silent".to_owned());
    *stage.board.unwelcome.lock().unwrap() = Some(silent);
    let (read, sent) =
        (*stage.board.reads.lock().unwrap(), stage.board.presences.lock().unwrap().len());
    stage.restart().await;
    let tried = |stage: &Stage| stage.board.presences.lock().unwrap().len() > sent + 5;
    stage.until("it has tried", tried).await;
    assert_eq!(*stage.board.reads.lock().unwrap(), read);
    assert_eq!(stage.board.told(), ["claim", "running"]);
    *stage.board.unwelcome.lock().unwrap() = None;
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "running", "crashed"]);
}

/// A leader that was deposed long ago may be the first to find an agent that was restarted.
#[tokio::test(start_paused = true)]
async fn a_cell_takes_no_orders_before_it_is_welcome() {
    let mut stage = Stage::new().await;
    let web = key("web", 0);
    let instance_guid = stage.running(&web).await;
    let silent = LinkError::NoAnswer("silent".to_owned());
    *stage.board.unwelcome.lock().unwrap() = Some(silent);
    stage.restart().await;
    let stop = Stop { key: web, instance_guid };
    let old = Epoch(1);
    let refused = |problem: kapell_api::v1::Problem| problem.code;
    assert_eq!(stage.cell.stop(old, &stop).map_err(refused), Err("not_welcome_yet".to_owned()));
    let work = stage.cell.work(old, Work::default()).map_err(refused);
    assert_eq!(work, Err("not_welcome_yet".to_owned()));
    assert_eq!(stage.cell.evacuate(old).map_err(refused), Err("not_welcome_yet".to_owned()));
    *stage.board.unwelcome.lock().unwrap() = None;
    stage.until("it is welcome", |stage| stage.cell.shared.rep().welcome).await;
    assert_eq!(stage.cell.stop(old, &stop).map_err(refused), Err("older_epoch".to_owned()));
    stage.cell.stop(EPOCH, &stop).unwrap();
    stage.until("it is gone", Stage::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn a_cell_whose_id_is_in_use_ends_and_touches_nothing() {
    let mut stage = Stage::new().await;
    stage.running(&key("web", 0)).await;
    stage.agent.shutdown().await;
    let in_use = kapell_api::v1::Problem {
        code: "cell_id_in_use".to_owned(),
        message: "take another".to_owned(),
        details: ().into(),
    };
    *stage.board.unwelcome.lock().unwrap() = Some(LinkError::Refused(in_use.clone()));
    let read = *stage.board.reads.lock().unwrap();
    stage.restart().await;
    assert_eq!(stage.cell.refused().await, in_use);
    stage.agent.join_next().await.unwrap().unwrap();
    assert_eq!(*stage.board.reads.lock().unwrap(), read);
    assert_eq!(stage.board.told(), ["claim", "running"]);
    assert_eq!(*stage.board.left.lock().unwrap(), 0);
    assert_eq!(stage.containers.guids().len(), 1, "its work goes on");
}
