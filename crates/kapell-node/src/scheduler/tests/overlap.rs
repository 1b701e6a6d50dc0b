use kapell_core::run::{RunState, StopKind};
use kapell_core::seams::Timestamp;

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

/// The work of the first run takes its time to end, and its leader is killed meanwhile.
#[tokio::test(start_paused = true)]
async fn a_stop_for_another_run_goes_on_over_a_change_of_leader_with_its_reason() {
    for (overlap, kind) in
        [("cancel_other", StopKind::Graceful), ("terminate_other", StopKind::AtOnce)]
    {
        let stage = Stage::new();
        stage.fake.state().manner = Manner::Held;
        let lead = stage.open().await;
        lead.apply(job("once", &format!(r#", "overlap": "{overlap}""#))).await;
        let first = lead.trigger("once", 1, stage.wall()).await;
        lead.until(&first, RunState::Running, secs(5)).await;
        stage.fake.state().unstoppable = true;
        let second = lead.trigger("once", 2, stage.wall()).await;
        pass(secs(3)).await;
        let why = format!("run `{second}` is to run instead (overlap: {overlap})");
        let run = lead.run(&first);
        assert_eq!((run.state, run.cancel, &run.reason), (RunState::Running, Some(kind), &why));
        lead.die().await;
        stage.fake.state().unstoppable = false;
        let lead = stage.open().await;
        lead.until(&first, RunState::Cancelled, secs(20)).await;
        assert_eq!(lead.run(&first).reason, why);
        lead.until(&second, RunState::Running, secs(5)).await;
        let stops = stage.fake.state().stops.clone();
        assert!(stops.iter().all(|(of, how)| of.run_id == first && *how == kind), "{stops:?}");
        stage.fake.assert_launched_once();
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_makes_way_for_a_run_that_does_not_begin() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    let more = r#", "overlap": "cancel_other", "schedule": ["* * * * *"]"#;
    lead.apply(job("once", more)).await;
    let first = lead.trigger("once", 1, stage.wall()).await;
    lead.until(&first, RunState::Running, secs(5)).await;
    let next = Timestamp((stage.wall().0 / 60_000 + 1) * 60_000);
    pass(next.before(secs(5)).since(stage.wall())).await;
    let ahead = lead.runs("once").into_iter().find(|run| run.run_id != first).unwrap();
    lead.apply(job("once", &format!(r#"{more}, "suspend": true"#))).await;
    lead.until(&ahead.run_id, RunState::Completed, secs(20)).await;
    assert!(lead.run(&ahead.run_id).skipped);
    assert_eq!(lead.run(&first).state, RunState::Running);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_somebody_cancels_leaves_its_place_and_nobody_else_has_to_go() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Held;
    let lead = stage.open().await;
    lead.apply(job("once", r#", "overlap": "cancel_other", "max_concurrent_runs": 2"#)).await;
    let first = lead.trigger("once", 1, stage.wall()).await;
    let second = lead.trigger("once", 2, stage.wall()).await;
    for run_id in [&first, &second] {
        lead.until(run_id, RunState::Running, secs(5)).await;
    }
    stage.fake.state().unstoppable = true;
    let why = "asked by ann".to_owned();
    lead.scheduler.cancel(second.clone(), StopKind::Graceful, why).await.unwrap().unwrap();
    let third = lead.trigger("once", 3, stage.wall()).await;
    pass(secs(3)).await;
    stage.fake.state().unstoppable = false;
    lead.until(&second, RunState::Cancelled, secs(60)).await;
    lead.until(&third, RunState::Running, secs(5)).await;
    let run = lead.run(&first);
    assert_eq!((run.state, run.cancel), (RunState::Running, None));
}
