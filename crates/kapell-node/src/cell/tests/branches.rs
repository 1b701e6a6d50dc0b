//! What a cell does where a step of starting, stopping or a task's life fails: one test a branch.

use std::time::Duration;

use kapell_api::v1::Stop;
use kapell_backend::containers::Containers as _;
use kapell_core::board::{ActualState, TaskGuid, TaskState};
use kapell_core::rep::container::State;

use super::board::{Fate, name};
use super::stage::{EPOCH, Stage, key, lrp, pending};
use crate::testing::for_as_long;

fn job() -> TaskGuid {
    TaskGuid::new("job")
}

/// All reports of one kind are lost on their way.
fn lose(stage: &Stage, kind: &'static str) {
    stage
        .board
        .set_fate(move |report| if name(report) == kind { Fate::Lost } else { Fate::Arrives });
}

#[tokio::test(start_paused = true)]
async fn starting_a_reservation_that_fails_is_answered_with_the_reason_and_holds_nothing() {
    let stage = Stage::new().await;
    let mut large = lrp(&key("web", 0));
    large.desired.memory_mb = 2000;
    let answer = stage.work(vec![large], Vec::new());
    assert_eq!(answer.refused_lrps.len(), 1);
    assert!(answer.refused_lrps[0].1.starts_with("insufficient resources: memory"), "{answer:?}");
    assert!(stage.is_empty() && stage.board.told().is_empty());
}

#[tokio::test(start_paused = true)]
async fn starting_a_claim_that_fails_ends_the_reservation_and_leaves_the_record() {
    let stage = Stage::new().await;
    lose(&stage, "claim");
    let web = key("web", 0);
    stage.place(&web);
    stage.within(Duration::from_secs(63), "it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.state_of(&web), Some(ActualState::Unclaimed), "for convergence");
    assert!(stage.containers.created().is_empty() && stage.containers.ran().is_empty());
}

/// By the table a container that failed has crashed: the board counts it, and its convergence tries again.
#[tokio::test(start_paused = true)]
async fn starting_a_run_that_fails_leaves_no_container_and_no_claim() {
    let stage = Stage::new().await;
    stage.containers.faults().create = Some("no room".to_owned());
    let web = key("web", 0);
    stage.place(&web);
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "crashed"]);
    assert_eq!(stage.board.state_of(&web), Some(ActualState::Unclaimed));
    assert!(stage.containers.guids().is_empty());
}

#[tokio::test(start_paused = true)]
async fn stopping_a_container_that_cannot_be_deleted_is_tried_again_until_it_is_gone() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.running(&web).await;
    stage.containers.faults().delete = u32::MAX;
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid: guid.clone() }).unwrap();
    for_as_long("it is not given up", Duration::from_secs(100), async || !stage.is_empty()).await;
    assert_eq!(stage.containers.guids(), [guid.as_str()]);
    stage.containers.faults().delete = 0;
    stage.within(Duration::from_secs(31), "it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.state_of(&web), None);
    assert_eq!(stage.board.told(), ["claim", "running", "remove"], "said once");
}

/// By the table the record goes first: what is left of the container has ended, and says so until it is told.
#[tokio::test(start_paused = true)]
async fn stopping_a_record_that_cannot_be_removed_is_removed_by_a_later_poll() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.running(&web).await;
    lose(&stage, "remove");
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid: guid.clone() }).unwrap();
    let ended = |stage: &Stage| stage.state(&guid) == Some(State::Completed);
    stage.until("it has ended", ended).await;
    let there = async || stage.board.state_of(&web) == Some(ActualState::Running) && ended(&stage);
    for_as_long("its record is there", Duration::from_secs(100), there).await;
    stage.board.set_fate(|_| Fate::Arrives);
    stage.within(Duration::from_secs(31), "it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.state_of(&web), None);
    assert!(stage.containers.guids().is_empty());
    let other = |told: &&str| !["claim", "running", "remove"].contains(told);
    assert_eq!(stage.board.told().iter().find(|told| other(told)), None);
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_reservation_fails_is_answered_with_the_reason_and_waits() {
    let stage = Stage::new().await;
    let mut task = pending(&job());
    task.definition.memory_mb = 2000;
    let (definition, instance_guid) = (task.definition.clone(), task.instance_guid.clone());
    stage.board.records().tasks.insert(job(), task);
    let work = kapell_api::v1::TaskWork { definition, instance_guid };
    let answer = stage.work(Vec::new(), vec![work]);
    assert!(answer.refused_tasks[0].1.starts_with("insufficient resources: memory"), "{answer:?}");
    assert!(stage.is_empty() && stage.board.told().is_empty());
    assert_eq!(stage.board.task(&job()).unwrap().state, TaskState::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_set_to_running_loses_its_reservation_and_waits() {
    let stage = Stage::new().await;
    lose(&stage, "start-task");
    stage.place_task(&job());
    stage.within(Duration::from_secs(63), "it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.task(&job()).unwrap().state, TaskState::Pending);
    assert!(stage.containers.created().is_empty());
    stage.board.set_fate(|_| Fate::Arrives);
    stage.place_task(&job());
    stage.until("it runs when it comes again", |it| it.containers.running().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_container_cannot_be_run_is_completed_and_failed() {
    let stage = Stage::new().await;
    stage.containers.faults().create = Some("no room".to_owned());
    stage.place_task(&job());
    stage.until("it is gone", Stage::is_empty).await;
    let task = stage.board.task(&job()).unwrap();
    assert_eq!((task.state, task.failed), (TaskState::Completed, true));
    assert_eq!(task.failure_reason, "no room");
}

/// Its container stays until then: it is all that knows how the task ended.
#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_set_to_completed_is_so_by_a_later_poll() {
    let stage = Stage::new().await;
    stage.place_task(&job());
    stage.until("it runs", |stage| stage.containers.running().len() == 1).await;
    lose(&stage, "complete-task");
    let guid = stage.containers.guids()[0].clone();
    std::fs::write(stage.containers.dir(&guid).join("result"), "it went well").unwrap();
    stage.containers.exit_with(&guid, 0);
    let waits = async || {
        let runs = stage.board.task(&job()).unwrap().state == TaskState::Running;
        runs && stage.containers.guids() == [guid.as_str()]
    };
    for_as_long("nobody knows", Duration::from_secs(100), waits).await;
    stage.board.set_fate(|_| Fate::Arrives);
    stage.within(Duration::from_secs(31), "it is gone", Stage::is_empty).await;
    let task = stage.board.task(&job()).unwrap();
    assert_eq!((task.state, task.result.as_str()), (TaskState::Completed, "it went well"));
    assert_eq!(stage.containers.ran().len(), 1);
}
