use std::time::Duration;

use kapell_api::v1::Cancel;
use kapell_backend::containers::Containers as _;
use kapell_core::board::{TaskGuid, TaskState};
use tokio::time::Instant;

use super::board::{Fate, name};
use super::stage::{EPOCH, Stage};

fn job() -> TaskGuid {
    TaskGuid::new("job")
}

fn state(stage: &Stage) -> Option<TaskState> {
    stage.board.task(&job()).map(|task| task.state)
}

async fn running(stage: &Stage) -> String {
    stage.place_task(&job());
    stage.until("it runs", |stage| !stage.containers.running().is_empty()).await;
    stage.containers.guids()[0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_task_is_started_run_and_completed_with_its_result() {
    let stage = Stage::new().await;
    let guid = running(&stage).await;
    assert_eq!(state(&stage), Some(TaskState::Running));
    std::fs::write(stage.containers.dir(&guid).join("result"), "x".repeat(20_000)).unwrap();
    stage.containers.exit_with(&guid, 0);
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["start-task", "complete-task"]);
    let task = stage.board.task(&job()).unwrap();
    assert!(!task.failed, "{task:?}");
    assert_eq!(task.result.len(), 10 * 1024);
    assert_eq!(task.exit_code, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_task_fails_with_its_status_or_without_its_result() {
    for (code, reason) in
        [(7, "Exited with status 7"), (0, "cannot read the result file `result`: No such file")]
    {
        let stage = Stage::new().await;
        let guid = running(&stage).await;
        stage.containers.exit_with(&guid, code);
        stage.until("it is gone", Stage::is_empty).await;
        let task = stage.board.task(&job()).unwrap();
        assert!(task.failed);
        assert!(task.failure_reason.starts_with(reason), "{}", task.failure_reason);
        assert_eq!(task.exit_code, Some(code));
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_file_outside_the_directory_is_not_read() {
    let stage = Stage::new().await;
    let guid = running(&stage).await;
    let dir = stage.containers.dir(&guid);
    std::os::unix::fs::symlink("/etc/passwd", dir.join("result")).unwrap();
    stage.containers.exit_with(&guid, 0);
    stage.until("it is gone", Stage::is_empty).await;
    let task = stage.board.task(&job()).unwrap();
    assert!(task.failed && task.result.is_empty(), "{task:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_ended() {
    let stage = Stage::new().await;
    let guid = running(&stage).await;
    stage.board.records().tasks.get_mut(&job()).unwrap().state = TaskState::Completed;
    let cancel = Cancel { task_guid: job(), instance_guid: guid.as_str().into(), at_once: false };
    stage.cell.cancel(EPOCH, &cancel).unwrap();
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["start-task"]);
    assert!(stage.containers.guids().is_empty());
}

/// A task that heeds no stop, when it is cancelled in these ways, one after the other: how long it goes on.
async fn deaf(ways: &[bool]) -> Duration {
    let stage = Stage::new().await;
    let guid = running(&stage).await;
    stage.containers.faults().deaf = true;
    stage.board.records().tasks.get_mut(&job()).unwrap().state = TaskState::Completed;
    let began = Instant::now();
    for at_once in ways.iter().copied() {
        let cancel = Cancel { task_guid: job(), instance_guid: guid.as_str().into(), at_once };
        stage.cell.cancel(EPOCH, &cancel).unwrap();
        for _ in 0..10 {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_millis(100)).await;
        }
    }
    stage.until("it is gone", Stage::is_empty).await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_cancelled_at_once_has_no_time_to_stop() {
    let grace = Stage::new().await.settings.stop_grace;
    assert!(deaf(&[false]).await > grace);
    assert!(deaf(&[true]).await < Duration::from_secs(3));
    assert!(deaf(&[false, true]).await < Duration::from_secs(4), "and loses what is left of it");
}

/// Runs a task to its end while each report of a kind meets a fate, the first `times` times.
async fn meets(fate: Fate, kind: &'static str, times: u32, restarts: bool) {
    let mut stage = Stage::new().await;
    let mut left = times;
    stage.board.set_fate(move |report| {
        if name(report) == kind && left > 0 {
            left -= 1;
            return fate;
        }
        Fate::Arrives
    });
    stage.place_task(&job());
    if restarts {
        // The first report is under way.
        tokio::task::yield_now().await;
        stage.restart().await;
    }
    let is_over = |stage: &Stage| {
        for guid in stage.containers.running() {
            stage.containers.exit_with(&guid, 1);
        }
        // A task that waits when its cell is restarted waits for the board to place it again.
        let waits = restarts && state(stage) == Some(TaskState::Pending);
        stage.is_empty() && (waits || state(stage) == Some(TaskState::Completed))
    };
    stage.within(Duration::from_secs(200), "it is over", is_over).await;
    let ran = stage.containers.ran().len();
    let what = format!("{fate:?} {kind} {times} {restarts}");
    assert!(ran <= 1, "{what}: ran {ran} times");
    if !restarts {
        assert_eq!(state(&stage), Some(TaskState::Completed), "{what}: {:?}", stage.board);
        assert_eq!(ran, 1, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_at_most_once_whatever_gets_lost() {
    for fate in [Fate::Lost, Fate::AnswerLost, Fate::Busy] {
        for kind in ["start-task", "complete-task"] {
            for times in [1, 2, 5] {
                for restarts in [false, true] {
                    meets(fate, kind, times, restarts).await;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_answer_is_lost_is_asked_for_again_and_runs() {
    let stage = Stage::new().await;
    let mut lost = false;
    stage.board.set_fate(move |report| {
        let first = name(report) == "start-task" && !std::mem::replace(&mut lost, true);
        if first { Fate::AnswerLost } else { Fate::Arrives }
    });
    stage.place_task(&job());
    let runs = |stage: &Stage| !stage.containers.running().is_empty();
    stage.within(stage.settings.reservation / 4, "it runs", runs).await;
    assert_eq!(stage.board.told(), ["start-task", "start-task"]);
}

/// Another reservation of the same name may have run it.
#[tokio::test(start_paused = true)]
async fn a_start_that_was_let_to_another_reservation_is_not_run_and_fails_when_this_one_expires() {
    let stage = Stage::new().await;
    stage.board.set_fate(|_| Fate::Lost);
    stage.place_task(&job());
    stage.until("it was asked for", |stage| !stage.board.told().is_empty()).await;
    {
        let mut records = stage.board.records();
        let task = records.tasks.get_mut(&job()).unwrap();
        task.state = TaskState::Running;
        task.cell_id = Some("cell".into());
        task.reservation = Some("another".into());
    }
    stage.board.set_fate(|_| Fate::Arrives);
    let completed = |stage: &Stage| state(stage) == Some(TaskState::Completed);
    stage.within(Duration::from_secs(62), "it has failed", completed).await;
    assert_eq!(stage.board.told(), ["start-task", "start-task", "complete-task"]);
    assert!(stage.containers.ran().is_empty());
    assert!(stage.board.task(&job()).unwrap().failed);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_started_has_failed_with_the_reason() {
    let stage = Stage::new().await;
    stage.containers.fail_with("no such program: `job`");
    stage.place_task(&job());
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["start-task", "complete-task"]);
    let task = stage.board.task(&job()).unwrap();
    assert!(task.failed && task.failure_reason.contains("no such program: `job`"), "{task:?}");
}

/// Another cell may take it.
#[tokio::test(start_paused = true)]
async fn a_start_that_never_arrives_ends_with_the_reservation_and_the_task_waits() {
    let stage = Stage::new().await;
    stage.board.set_fate(|_| Fate::Lost);
    stage.place_task(&job());
    stage.within(Duration::from_secs(63), "it is gone", Stage::is_empty).await;
    assert_eq!(state(&stage), Some(TaskState::Pending));
    assert!(stage.containers.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_another_cell_runs_is_not_started() {
    let stage = Stage::new().await;
    stage.place_task(&job());
    {
        let mut records = stage.board.records();
        let task = records.tasks.get_mut(&job()).unwrap();
        task.state = TaskState::Running;
        task.cell_id = Some("other".into());
    }
    stage.until("it is gone", Stage::is_empty).await;
    assert_eq!(stage.board.told(), ["start-task"]);
    assert!(stage.containers.ran().is_empty());
}
