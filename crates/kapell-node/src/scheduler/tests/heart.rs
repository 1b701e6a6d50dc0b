use kapell_core::run::RunState;

use super::fakes::{Course, Manner};
use super::stage::{Lead, Stage, job, secs, triggered};
use crate::board::tests::theatre::pass;
use crate::scheduler::checker::Wants;

async fn checked(check: Course) -> (Stage, Lead, kapell_core::run::RunId) {
    let stage = Stage::new();
    stage.checker.set(|script| {
        script.wants = Wants { before: true, after: false };
        script.check = check;
    });
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let run_id = lead.trigger("once", 1, stage.wall()).await;
    (stage, lead, run_id)
}

#[tokio::test(start_paused = true)]
async fn a_stuck_run_is_orphaned_within_forty_seconds() {
    let (stage, lead, run_id) = checked(Course::Stuck).await;
    let took = lead.until(&run_id, RunState::Orphaned, secs(41)).await;
    assert!(took >= secs(30), "three beats are to be missed first: {took:?}");
    assert!(stage.fake.state().launches.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_five_minute_action_is_not_orphaned() {
    let (stage, lead, run_id) = checked(Course::Busy(300)).await;
    let took = lead.until(&run_id, RunState::Completed, secs(310)).await;
    assert!(took >= secs(300));
    let beats = lead.run(&run_id).metrics.as_ref().unwrap().heartbeats_sent;
    assert!((29..=31).contains(&beats), "{beats} beats");
    assert_eq!(stage.fake.state().launches.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_by_message_keeps_a_run_alive() {
    let (_stage, lead, run_id) = checked(Course::Stuck).await;
    for _ in 0..30 {
        pass(secs(10)).await;
        lead.scheduler.heartbeat(run_id.clone()).await;
        assert_eq!(lead.run(&run_id).state, RunState::PreRun);
    }
    lead.until(&run_id, RunState::Orphaned, secs(41)).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_failed_unforeseen_orphans_its_run_and_gives_its_turn_back() {
    let (stage, lead, run_id) = checked(Course::Panics).await;
    lead.until(&run_id, RunState::Orphaned, secs(41)).await;
    stage.checker.set(|script| script.check = Course::Busy(1));
    let next = lead.trigger("once", 2, stage.wall()).await;
    lead.until(&next, RunState::Completed, secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_runs_for_hours_is_not_orphaned_and_is_asked_about() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    pass(secs(7_200)).await;
    assert_eq!(lead.run(&run_id).state, RunState::Running);
    assert!(stage.fake.state().finds >= 100, "once a minute");
    assert!(lead.scheduler.state(run_id).await.unwrap().heartbeats >= 700);
}

#[tokio::test(start_paused = true)]
async fn news_that_were_lost_are_made_up_for_within_a_minute_or_so() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    stage.fake.state().mute = true;
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 0);
    lead.until(&run_id, RunState::Completed, secs(61)).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_for_long_orphans_nobody() {
    let (stage, lead, run_id) = checked(Course::Busy(120)).await;
    lead.until_under_way(&run_id, RunState::ConditionRunning).await;
    stage.theatre.clock.jump(secs(3_600));
    lead.until(&run_id, RunState::Completed, secs(130)).await;
}
