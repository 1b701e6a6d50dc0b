//! Containers that do more than run one program.

use std::time::Duration;

use kapell_api::v1::Stop;
use kapell_core::board::action::{EmitProgress, Nested, Several, Timeout};
use kapell_core::board::{Action, ActualState, TaskGuid, TaskState};
use kapell_core::log::{Decoder, Stream};
use kapell_core::rep::container::State;

use super::stage::{EPOCH, Stage, key, run};
use crate::cell::LogOf;

pub(super) fn job() -> TaskGuid {
    TaskGuid::new("job")
}

pub(super) fn serial(actions: &[Action]) -> Action {
    Action::Serial(Several { actions: actions.to_vec() })
}

fn parallel(actions: &[Action]) -> Action {
    Action::Parallel(Several { actions: actions.to_vec() })
}

pub(super) fn is_completed(stage: &Stage) -> bool {
    stage.board.task(&job()).is_some_and(|task| task.state == TaskState::Completed)
}

/// As the state machine of the executor has it, each state seen.
#[tokio::test(start_paused = true)]
async fn a_container_goes_through_all_its_states() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    stage.containers.faults().gated_runs = Some("prepare".to_owned());
    let guid = stage
        .place_with(&web, |desired| {
            desired.setup = Some(run("prepare"));
            desired.monitor = Some(run("check"));
        })
        .await;
    stage.until("it is there", |stage| stage.state(&guid) == Some(State::Created)).await;
    assert!(stage.containers.ran().is_empty());
    stage.containers.gate.add_permits(1);
    stage.until("setup is under way", |stage| stage.containers.paths() == ["prepare"]).await;
    assert_eq!(stage.state(&guid), Some(State::Created));
    stage.containers.end_one(guid.as_str(), "0", 0);
    let both = ["prepare", "server"];
    stage.until("its action is under way", |stage| stage.containers.paths() == both).await;
    assert_eq!(stage.state(&guid), Some(State::Created));
    stage.until("it is checked", |stage| stage.containers.monitored(guid.as_str(), 1)).await;
    stage.until("and again", |stage| stage.containers.monitored(guid.as_str(), 0)).await;
    stage.until("it runs", |stage| stage.state(&guid) == Some(State::Running)).await;
    let runs = |stage: &Stage| stage.board.state_of(&web) == Some(ActualState::Running);
    stage.until("the board knows", runs).await;
    assert_eq!(stage.containers.names(guid.as_str()), ["0", "1", "m1-0", "m2-0"]);
    stage.containers.end_one(guid.as_str(), "1", 3);
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["claim", "running", "crashed"]);
    assert_eq!(stage.crash().unwrap(), "Exited with status 3");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_being_made_is_initializing_and_a_failed_setup_is_a_crash() {
    let stage = Stage::new().await;
    stage.containers.faults().gated = Some("server".to_owned());
    let guid = stage.place_with(&key("web", 0), |_| {}).await;
    let initializing = |stage: &Stage| stage.state(&guid) == Some(State::Initializing);
    stage.until("it is being made", initializing).await;
    let other = key("web", 1);
    let guid = stage.place_with(&other, |desired| desired.setup = Some(run("prepare"))).await;
    stage.until("setup is under way", |stage| stage.containers.paths() == ["prepare"]).await;
    stage.containers.end_one(guid.as_str(), "0", 9);
    stage.until("it is gone", |stage| stage.state(&guid).is_none()).await;
    assert_eq!(stage.crash().unwrap(), "Exited with status 9");
    assert_eq!(stage.containers.paths(), ["prepare"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_does_one_thing_after_the_other_and_fails_with_the_first_that_fails() {
    for (code, wanted) in [(0, None), (4, Some("Exited with status 4"))] {
        let stage = Stage::new().await;
        stage.place_task_with(&job(), serial(&[run("a"), run("b")]));
        stage.until("the first runs", |stage| stage.containers.paths() == ["a"]).await;
        stage.containers.end_one("i-job", "0", code);
        if code == 0 {
            stage.until("the second runs", |stage| stage.containers.paths() == ["a", "b"]).await;
            stage.containers.end_one("i-job", "1", 0);
        }
        stage.until("it is gone", Stage::is_empty).await;
        let task = stage.board.task(&job()).unwrap();
        assert_eq!((task.failed, task.exit_code), (wanted.is_some(), Some(code)));
        assert_eq!(task.failure_reason, wanted.unwrap_or_default());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_all_that_is_under_way_and_a_stop_that_fails_is_tried_again() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let instance_guid =
        stage.place_with(&web, |desired| desired.action = parallel(&[run("a"), run("b")])).await;
    stage.until("both run", |stage| stage.containers.paths().len() == 2).await;
    stage.containers.faults().stop = 3;
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid }).unwrap();
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told().last(), Some(&"remove"), "it was stopped, no crash");
    assert_eq!(stage.containers.faults().stop, 0);
    assert_eq!(stage.crash(), None);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_setup_begins_no_action() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let guid = stage.place_with(&web, |desired| desired.setup = Some(run("prepare"))).await;
    stage.until("setup is under way", |stage| stage.containers.paths() == ["prepare"]).await;
    stage.cell.stop(EPOCH, &Stop { key: web.clone(), instance_guid: guid }).unwrap();
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.containers.paths(), ["prepare"]);
    assert_eq!(stage.board.told(), ["claim", "remove"]);
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_stopped_and_what_may_fail_is_not_a_failure() {
    let stage = Stage::new().await;
    let slow = Timeout { action: Box::new(run("slow")), timeout_ms: 5000 };
    let may = Action::Try(Nested { action: Box::new(run("may")) });
    stage.place_task_with(&job(), serial(&[may, Action::Timeout(slow)]));
    stage.until("the first runs", |stage| stage.containers.paths() == ["may"]).await;
    stage.containers.end_one("i-job", "0", 1);
    stage.until("the second runs", |stage| stage.containers.paths().len() == 2).await;
    stage.within(Duration::from_millis(5500), "it is over", is_completed).await;
    let task = stage.board.task(&job()).unwrap();
    assert!(task.failed && task.failure_reason.contains("5s"), "{task:?}");
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_among_the_logs_in_the_order_of_what_began() {
    let stage = Stage::new().await;
    let web = key("web", 0);
    let tells = EmitProgress {
        action: Box::new(run("server")),
        start_message: "here it goes".to_owned(),
        success_message: String::new(),
        failure_message: "alas".to_owned(),
    };
    let action = Action::EmitProgress(tells);
    let guid = stage.place_with(&web, |desired| desired.action = action).await;
    stage.until("it runs", |stage| stage.state(&guid) == Some(State::Running)).await;
    let logs = stage.containers.created()[0].logs.clone();
    let of = LogOf::Lrp(web);
    let parts = || stage.cell.logs(&of).remove(0).parts;
    assert_eq!(parts(), [logs.join("say"), logs.join("0")]);
    // As agents of before have left it.
    std::fs::write(logs.join("00000001.log"), "").unwrap();
    assert_eq!(parts(), [logs.clone(), logs.join("say"), logs.join("0")]);
    stage.containers.exit_with(guid.as_str(), 2);
    stage.until("it is gone", Stage::is_empty).await;
    let mut decoder = Decoder::default();
    decoder.push(&std::fs::read(logs.join("say/00000001.log")).unwrap());
    let said: Vec<_> = std::iter::from_fn(|| decoder.next_frame().unwrap()).collect();
    assert!(said.iter().all(|frame| frame.stream == Stream::Note));
    let said: Vec<&[u8]> = said.iter().map(|frame| frame.bytes.as_slice()).collect();
    assert_eq!(said, [&b"here it goes\n"[..], b"alas: Exited with status 2\n"]);
}
