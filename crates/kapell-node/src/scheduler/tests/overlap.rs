use kapell_core::run::RunState;

use super::fakes::Manner;
use super::stage::{Stage, job, secs};
use crate::board::tests::theatre::pass;

async fn two(overlap: &str) -> (Stage, super::stage::Lead, [kapell_core::run::RunId; 2]) {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    lead.apply(job("once", &format!(r#", "overlap": "{overlap}""#))).await;
    let first = lead.trigger("once", 1, stage.wall()).await;
    lead.until(&first, RunState::Running, secs(5)).await;
    let second = lead.trigger("once", 2, stage.wall()).await;
    pass(secs(3)).await;
    (stage, lead, [first, second])
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_one_too_many_is_skipped_and_says_who_is_in_its_way() {
    let (_stage, lead, [first, second]) = two("skip").await;
    let run = lead.run(&second);
    assert_eq!((run.state, run.skipped), (RunState::Completed, true));
    assert!(run.reason.contains(first.as_str()), "{}", run.reason);
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_its_turn_over_a_change_of_leader() {
    let (stage, lead, [first, second]) = two("queue").await;
    assert_eq!(lead.scheduler.state(second.clone()).await.unwrap().state, RunState::Pending);
    lead.die().await;
    let lead = stage.open().await;
    pass(secs(3)).await;
    assert_eq!(lead.scheduler.state(second.clone()).await.unwrap().state, RunState::Pending);
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 0);
    lead.until(&first, RunState::Completed, secs(5)).await;
    lead.until(&second, RunState::Running, secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_may_take_the_place_of_the_one_before() {
    let (stage, lead, [first, second]) = two("cancel_other").await;
    assert_eq!(lead.run(&first).state, RunState::Cancelled);
    lead.until(&second, RunState::Running, secs(5)).await;
    assert_eq!(stage.fake.state().stops.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_place_is_held_over_retries() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Ends(&[1, 0]);
    let lead = stage.open().await;
    lead.apply(job("once", r#", "overlap": "queue", "retry": {"max_retries": 1}"#)).await;
    let first = lead.trigger("once", 1, stage.wall()).await;
    lead.until(&first, RunState::Retrying, secs(5)).await;
    let second = lead.trigger("once", 2, stage.wall()).await;
    pass(secs(5)).await;
    assert_eq!(lead.scheduler.state(second.clone()).await.unwrap().state, RunState::Pending);
    lead.until(&first, RunState::Completed, secs(15)).await;
    lead.until(&second, RunState::Completed, secs(15)).await;
}
