//! A stop is over when the container is gone, not when the board says so.

use kapell_core::run::{Evidence, StopKind, task_guid};
use tokio::time::Instant;

use super::rig::Stage;
use crate::scheduler::backend::Backend as _;
use crate::scheduler::conformance::{Rig as _, attempt};

#[tokio::test(start_paused = true)]
async fn a_stop_waits_until_the_cell_has_no_container_of_it() {
    let stage = Stage::new().await;
    let one = attempt("held", 0);
    stage.backend.launch(&stage.work(&one)).await.unwrap();
    stage.start(&one).await;
    stage.cell.held.lock().unwrap().push(task_guid(&one.run_id, 0));
    let began = Instant::now();
    let ends = async {
        while *stage.cell.asked.lock().unwrap() < 5 {
            tokio::task::yield_now().await;
            tokio::time::advance(std::time::Duration::from_millis(10)).await;
        }
        stage.cell.held.lock().unwrap().clear();
    };
    let (stopped, ()) = tokio::join!(stage.backend.stop(&one, "", StopKind::Graceful), ends);
    stopped.unwrap();
    assert!(began.elapsed() >= std::time::Duration::from_millis(400));
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_cell_may_still_run_is_said() {
    let stage = Stage::new().await;
    let one = attempt("lost", 0);
    stage.backend.launch(&stage.work(&one)).await.unwrap();
    stage.start(&one).await;
    stage.leaves();
    let left = stage.backend.stop(&one, "", StopKind::Graceful).await.unwrap_err();
    assert_eq!(left, "it may still run: cell `c1` is not present");
    let evidence = stage.backend.find(&one, "").await;
    assert!(matches!(evidence, Evidence::Ended(_)), "{evidence:?}");
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_cell_is_told_whether_a_task_has_its_time_to_stop() {
    let stage = Stage::new().await;
    let (one, other) = (attempt("graceful", 0), attempt("hurried", 0));
    for attempt in [&one, &other] {
        stage.backend.launch(&stage.work(attempt)).await.unwrap();
        stage.start(attempt).await;
    }
    stage.backend.stop(&one, "", StopKind::Graceful).await.unwrap();
    stage.backend.stop(&other, "", StopKind::AtOnce).await.unwrap();
    assert_eq!(*stage.cell.hurried.lock().unwrap(), [task_guid(&other.run_id, 0)]);
    // Who was asked to stop may be told to end.
    stage.backend.stop(&one, "", StopKind::AtOnce).await.unwrap();
    assert_eq!(stage.cell.hurried.lock().unwrap().len(), 2);
    stage.close().await;
}
