use kapell_core::run::{RunState, StopKind};

use super::fakes::Manner;
use super::stage::{Stage, job, secs, triggered};
use crate::board::tests::theatre::pass;
use crate::testing::{Call, Fault};

#[tokio::test(start_paused = true)]
async fn a_launch_that_fails_in_any_way_fails_the_run_and_leaves_nothing() {
    let ways = [
        (Manner::Refused, "no such program", 5),
        (Manner::Unstartable, "no cell takes it", 5),
        (Manner::NeverStarts, "it did not start within 5m (start_timeout)", 310),
        (Manner::Hangs, "backend `fake` did not take it within 60s", 70),
    ];
    for (manner, why, limit) in ways {
        let (stage, lead, run_id) = triggered(manner, "").await;
        lead.until(&run_id, RunState::Failed, secs(limit)).await;
        assert_eq!(lead.run(&run_id).reason, why);
        let stops = stage.fake.state().stops.clone();
        assert_eq!((stops.len(), stops[0].1), (1, StopKind::AtOnce), "{why}");
        pass(secs(1)).await;
        assert!(stage.fake.state().works.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_sees_to_it_itself_may_take_its_time_to_launch() {
    let stage = Stage::new();
    stage.fake.state().manner = Manner::Slow(200);
    stage.fake.state().launch_limit = None;
    let lead = stage.open().await;
    lead.apply(job("once", "")).await;
    let run_id = lead.trigger("once", 1, stage.wall()).await;
    let took = lead.until(&run_id, RunState::Running, secs(210)).await;
    assert!(took >= secs(190), "{took:?}");
    assert!(stage.fake.state().stops.is_empty());
}

#[tokio::test(start_paused = true)]
async fn calls_for_attempts_before_the_last_count_though_those_were_released() {
    let more = r#", "retry": {"max_retries": 1, "initial_delay": "10m", "max_delay": "10m"}"#;
    let (stage, lead, run_id) = triggered(Manner::Ends(&[1, 0]), more).await;
    lead.until(&run_id, RunState::Retrying, secs(5)).await;
    let released = || stage.fake.state().released.len();
    for _ in 0..500 {
        if released() > 0 {
            break;
        }
        pass(secs(1)).await;
    }
    assert_eq!((released(), lead.run(&run_id).state), (1, RunState::Retrying));
    lead.until(&run_id, RunState::Completed, secs(900)).await;
    assert_eq!(lead.run(&run_id).metrics.as_ref().unwrap().kubernetes_api_calls, 3 + 4);
}

#[tokio::test(start_paused = true)]
async fn a_launch_is_tried_again_where_the_job_says_so() {
    let more = r#", "retry": {"max_retries": 1, "on": ["launch"]}"#;
    let (stage, lead, run_id) = triggered(Manner::Refused, more).await;
    lead.until(&run_id, RunState::Retrying, secs(5)).await;
    stage.fake.state().manner = Manner::Ends(&[0]);
    lead.until(&run_id, RunState::Completed, secs(15)).await;
    assert_eq!(stage.fake.state().launches[0].0.number, 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_a_launch_is_under_way_waits_for_it_and_then_ends_the_work() {
    let (stage, lead, run_id) = triggered(Manner::Slow(7), "").await;
    lead.until(&run_id, RunState::ContainerCreating, secs(5)).await;
    pass(secs(1)).await;
    let cancelled =
        lead.scheduler.cancel(run_id.clone(), StopKind::AtOnce, "asked by ann".to_owned());
    cancelled.await.unwrap().unwrap();
    pass(secs(1)).await;
    assert!(stage.fake.state().stops.is_empty(), "nothing to stop yet");
    lead.until(&run_id, RunState::Cancelled, secs(10)).await;
    assert_eq!(stage.fake.state().launches.len(), 1);
    assert_eq!(stage.fake.state().stops.len(), 1);
    pass(secs(1)).await;
    assert!(stage.fake.state().works.is_empty(), "released");
}

#[tokio::test(start_paused = true)]
async fn work_that_runs_too_long_is_stopped() {
    let (stage, lead, run_id) = triggered(Manner::Held, r#", "max_allowed_run_time": "30s""#).await;
    let took = lead.until(&run_id, RunState::Failed, secs(40)).await;
    assert!(took >= secs(30));
    assert_eq!(stage.fake.state().stops[0].1, StopKind::Graceful);
    assert_eq!(lead.run(&run_id).exit_code, Some(143));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_ended_is_tried_for_a_while_and_then_named() {
    let (stage, lead, run_id) = triggered(Manner::Held, r#", "retry": {"max_retries": 3}"#).await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    stage.fake.state().unstoppable = true;
    let cancelled =
        lead.scheduler.cancel(run_id.clone(), StopKind::AtOnce, "asked by ann".to_owned());
    cancelled.await.unwrap().unwrap();
    lead.until(&run_id, RunState::Cancelled, secs(20)).await;
    assert_eq!(lead.run(&run_id).reason, "asked by ann; it does not go away");
    assert_eq!(stage.fake.state().stops.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_is_never_answered_is_given_up_and_the_job_goes_on() {
    let (stage, lead, run_id) = triggered(Manner::Held, r#", "overlap": "queue""#).await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    let next = lead.trigger("once", 2, stage.wall()).await;
    stage.fake.state().stop_hangs = true;
    let cancelled =
        lead.scheduler.cancel(run_id.clone(), StopKind::Graceful, "asked by ann".to_owned());
    cancelled.await.unwrap().unwrap();
    let took = lead.until(&run_id, RunState::Cancelled, secs(400)).await;
    assert!(took >= secs(90), "its grace, and a minute: {took:?}");
    let want = "asked by ann; it may still run: backend `fake` did not end it within 60s";
    assert_eq!(lead.run(&run_id).reason, want);
    let kinds: Vec<StopKind> = stage.fake.state().stops.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds[0], StopKind::Graceful);
    assert_eq!(kinds[1..], [StopKind::AtOnce; 4], "it has had its grace");
    lead.until(&next, RunState::Running, secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_while_the_store_takes_no_writes() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    stage.theatre.store.set(&[Call::Commit], Fault::Fail);
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 0);
    pass(secs(90)).await;
    assert_eq!(lead.run(&run_id).state, RunState::Running);
    assert!(stage.fake.state().released.is_empty(), "its outcome is not stored");
    stage.theatre.store.heal();
    lead.until(&run_id, RunState::Completed, secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_stops_at_once_with_work_under_way_and_the_next_one_leads_it_on() {
    let (stage, lead, run_id) = triggered(Manner::Held, "").await;
    lead.until(&run_id, RunState::Running, secs(5)).await;
    let begin = tokio::time::Instant::now();
    lead.close().await;
    assert!(begin.elapsed() < secs(1));
    assert!(stage.fake.state().stops.is_empty(), "its work goes on");
    let next = stage.open().await;
    let attempt = stage.fake.state().launches[0].0.clone();
    stage.fake.end(&attempt, 0);
    next.until(&run_id, RunState::Completed, secs(5)).await;
    stage.fake.assert_launched_once();
}
