//! What is known of a task that is over.

use std::time::Duration;

use kapell_core::run::Evidence;

use super::rig::Stage;
use crate::board::tests::theatre::pass;
use crate::scheduler::backend::Backend as _;
use crate::scheduler::conformance::{Rig as _, attempt};

/// Whoever led when it started stored nothing of that: how long it ran counts for `maxAllowedRunTime` all the same.
#[tokio::test(start_paused = true)]
async fn a_task_that_ended_while_nobody_led_is_found_with_its_start() {
    let stage = Stage::new().await;
    let one = attempt("long", 0);
    stage.backend.launch(&stage.work(&one)).await.unwrap();
    stage.start(&one).await;
    pass(Duration::from_secs(7)).await;
    stage.end(&one, 0).await;
    let stage = stage.reopen().await;
    pass(Duration::from_secs(100)).await;
    let Evidence::Ended(work) = stage.backend.find(&one, "").await else { panic!("not ended") };
    let took = work.began.map(|began| work.at.since(began).as_secs());
    assert_eq!(took, Some(7));
    stage.close().await;
}
