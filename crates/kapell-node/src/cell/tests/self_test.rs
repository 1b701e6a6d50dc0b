//! A cell that looks at itself.

use std::time::Duration;

use super::stage::{EPOCH, Stage, key, lrp};

fn tests(stage: &Stage) -> u32 {
    *stage.containers.self_tests.lock().unwrap()
}

fn is_unhealthy(stage: &Stage) -> bool {
    stage.cell.state(EPOCH).unwrap().unhealthy
}

#[tokio::test(start_paused = true)]
async fn a_cell_tests_itself_now_and_then_and_leaves_nothing() {
    let stage = Stage::new().await;
    stage.until("it has", |stage| tests(stage) == 1).await;
    stage.within(Duration::from_secs(601), "it has again", |stage| tests(stage) == 2).await;
    assert!(!is_unhealthy(&stage));
    let left = kapell_backend::containers::Containers::recover(&*stage.containers).await.unwrap();
    assert_eq!(left, []);
}

#[tokio::test(start_paused = true)]
async fn three_failures_in_a_row_take_it_out_and_one_success_brings_it_back() {
    let stage = Stage::new().await;
    stage.until("it has begun", |stage| tests(stage) == 1).await;
    stage.containers.faults().self_test = true;
    let twice = |stage: &Stage| tests(stage) == 3;
    stage.within(Duration::from_secs(700), "it has failed twice", twice).await;
    assert!(!is_unhealthy(&stage));
    stage.containers.faults().self_test = false;
    stage.within(Duration::from_secs(31), "it is well", |stage| tests(stage) == 4).await;
    stage.containers.faults().self_test = true;
    stage.within(Duration::from_secs(700), "it is out", is_unhealthy).await;
    assert_eq!(tests(&stage), 7, "three in a row, and the last ones sooner");
    let refused = stage.work(vec![lrp(&key("web", 0))], Vec::new()).refused_lrps;
    assert_eq!(refused[0].1, "the cell is unhealthy: its self-test failed");
    stage.containers.faults().self_test = false;
    let is_back = |stage: &Stage| !is_unhealthy(stage);
    stage.within(Duration::from_secs(31), "it is back", is_back).await;
    stage.running(&key("web", 0)).await;
}

/// What runs goes on, and what a self-test leaves is deleted by the next agent.
#[tokio::test(start_paused = true)]
async fn what_a_self_test_has_left_is_deleted() {
    use kapell_backend::containers::Containers as _;
    let mut stage = Stage::new().await;
    stage.until("it has begun", |stage| tests(stage) == 1).await;
    stage.agent.shutdown().await;
    let spec = kapell_backend::containers::Spec {
        guid: "self-test-1".to_owned(),
        tag: Vec::new(),
        rootfs: None,
        user: kapell_backend::containers::User::Same,
        limits: kapell_backend::containers::Limits::default(),
        ports: Vec::new(),
        logs: stage.dir.path().join("x"),
        log_bytes: 0,
        log_rate: None,
        sole: true,
    };
    stage.containers.create(spec).await.unwrap();
    stage.restart().await;
    assert_eq!(stage.containers.recover().await.unwrap(), []);
}
