use super::stage::{Launching, START, Script, Stage, definition, full, plan};
use crate::constraint::Verdict;
use crate::run::{Happened, RunMetrics, RunState, StopKind};
use crate::seams::Timestamp;

fn sum(metrics: &RunMetrics) -> u64 {
    metrics.pre_run_ms
        + metrics.constraint_check_ms
        + metrics.pod_start_latency_ms
        + metrics.execution_ms
        + metrics.termination_ms
        + metrics.retry_wait_ms
}

fn figures(stage: &Stage) -> RunMetrics {
    **stage.board.metrics.as_ref().unwrap()
}

#[test]
fn phases_are_what_they_are_called() {
    let script = Script { check: (Verdict::Proceed, true), ..Script::default() };
    let mut stage = Stage::new(full(), script);
    stage.play();
    let metrics = figures(&stage);
    assert_eq!(metrics.pre_run_ms, 10_000, "until its time");
    assert_eq!(metrics.constraint_check_ms, 300, "100 ms to check, 200 ms to act");
    assert_eq!(metrics.pod_start_latency_ms, 1_005, "5 ms for the intent, 1 s to start");
    assert_eq!(metrics.execution_ms, 60_000, "to the exit, not to the news of it");
    assert_eq!(metrics.termination_ms, 320, "20 ms for the news, 300 ms to check");
    assert_eq!((metrics.retry_wait_ms, metrics.total_ms), (0, sum(&metrics)));
    let counts = (metrics.constraints_checked, metrics.constraints_violated);
    assert_eq!(counts, (2, 1));
    assert_eq!((metrics.actions_executed, metrics.actions_failed), (6, 2), "before and after");
    assert_eq!((metrics.retry_attempt, metrics.max_retries), (0, 2));
    assert_eq!((metrics.pod_exit_code, metrics.success), (Some(0), true));
}

#[test]
fn phases_that_were_never_entered_are_nothing() {
    let mut stage = Stage::new(plan(definition()), Script::default());
    stage.tell(Happened::Cancel { kind: StopKind::Graceful, why: "not today".to_owned() });
    stage.play();
    let metrics = figures(&stage);
    assert_eq!(
        metrics,
        RunMetrics {
            total_ms: metrics.total_ms,
            pre_run_ms: metrics.pre_run_ms,
            ..RunMetrics::default()
        }
    );
}

#[test]
fn phases_add_up_to_the_whole_over_attempts_and_however_it_ends() {
    let scripts = [
        Script::default(),
        Script { exits: vec![1, 2, 0], ..Script::default() },
        Script { exits: vec![1], ..Script::default() },
        Script { endless: true, ..Script::default() },
        Script { launch: Launching::Fails, ..Script::default() },
        Script { launch: Launching::NeverStarts, ..Script::default() },
        Script { launch: Launching::EndsFirst, ..Script::default() },
        Script { check: (Verdict::Retry, true), act: Verdict::Retry, ..Script::default() },
        Script { check: (Verdict::Skip, false), ..Script::default() },
    ];
    for script in scripts {
        for limit in 0..40 {
            let mut stage = Stage::new(full(), script.clone());
            let going = (0..limit).all(|_| stage.next());
            if going && !stage.it.state().is_final() {
                stage.tell(Happened::Cancel { kind: StopKind::AtOnce, why: "enough".to_owned() });
            }
            stage.play();
            let metrics = figures(&stage);
            assert_eq!(sum(&metrics), metrics.total_ms, "{script:?} after {limit}: {metrics:?}");
        }
    }
}

#[test]
fn phases_add_up_when_the_clock_goes_back_and_when_another_leader_goes_on() {
    for limit in 0..30 {
        let mut stage = Stage::new(full(), Script { exits: vec![1, 0], ..Script::default() });
        for _ in 0..limit {
            stage.next();
        }
        stage.now = Timestamp(stage.now.0 - 3_600_000);
        stage = if stage.it.state().is_final() { stage } else { stage.fail_over() };
        stage.play();
        let metrics = figures(&stage);
        assert_eq!(sum(&metrics), metrics.total_ms, "after {limit}: {metrics:?}");
    }
}

#[test]
fn another_leader_keeps_what_was_counted() {
    let script = Script { check: (Verdict::Proceed, true), ..Script::default() };
    let mut stage = Stage::new(full(), script);
    stage.play_to(RunState::Running);
    let mut next = stage.fail_over();
    next.play();
    next.assert_ended(RunState::Completed);
    let metrics = figures(&next);
    assert_eq!((metrics.pre_run_ms, metrics.constraint_check_ms), (10_000, 300));
    assert_eq!(metrics.constraints_violated, 1);
    assert_eq!(metrics.execution_ms, 60_000);
}

#[test]
fn beats_are_counted_until_the_end_and_not_after() {
    let mut stage = Stage::new(plan(definition()), Script::default());
    assert!(stage.it.beat() && stage.it.beat());
    stage.play();
    assert!(!stage.it.beat());
    assert_eq!(figures(&stage).heartbeats_sent, 2);
    assert!(stage.now > START);
}
