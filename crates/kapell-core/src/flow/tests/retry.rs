//! Attempts after the first: when, how often, and what they cost others.

use std::time::Duration;

use super::driver::{SIGKILL, Script, Sim, T, workflow};
use crate::flow::{Finish, Kind, State, Verdict};

#[test]
fn a_retrying_step_holds_no_worker() {
    let run = Sim::of(
        "workers: 1
steps:
  - {name: flaky, command: x, retry_policy: {limit: 1, delay: 100ms}, priority: 1}
  - {name: other, command: x}
  - {name: third, command: x}",
    )
    .play("flaky", Script::exits(&[1, 0]))
    .run();
    assert_eq!(run.commands("flaky"), ["0 main", "110 main"]);
    assert_eq!(run.commands("other"), ["10 main"], "it runs while the other waits");
    assert_eq!(run.commands("third"), ["20 main"]);
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
}

#[test]
fn a_retry_whose_time_has_come_waits_for_a_worker_like_all() {
    let run = Sim::of(
        "workers: 1
steps:
  - {name: flaky, command: x, retry_policy: {limit: 1, delay: 10ms}}
  - {name: long, command: x}",
    )
    .play("flaky", Script::exits(&[1, 0]))
    .play("long", Script::lasts(100))
    .run();
    assert_eq!(run.commands("flaky"), ["0 main", "110 main"]);
}

#[test]
fn delays_grow_by_backoff_up_to_the_limit() {
    let run = Sim::of(
        "steps:
          - name: flaky
            command: x
            retry_policy: {limit: 4, delay: 10ms, backoff: 2, max_delay: 30ms}",
    )
    .play("flaky", Script::exits(&[1]))
    .run();
    let step = run.step("flaky");
    let retry = &run.flow.workflow().step(step).options.retry;
    let waits = [0, 1, 2, 3].map(|failed| retry.delay_after(failed, 0.5).as_millis());
    assert_eq!(waits, [10, 20, 30, 30]);
    assert_eq!(run.commands("flaky"), ["0 main", "20 main", "50 main", "90 main", "130 main"]);
    let reasons: Vec<_> = run.notes().filter_map(|note| note.reason.as_deref()).collect();
    let want = [
        "attempt 2 of 5 in 10ms",
        "attempt 3 of 5 in 20ms",
        "attempt 4 of 5 in 30ms",
        "attempt 5 of 5 in 30ms",
    ];
    assert_eq!(reasons, want);
}

#[test]
fn a_limit_of_three_means_four_attempts() {
    let text = "steps: [{name: a, command: x, retry_policy: {limit: 3}}]";
    let run = Sim::of(text).play("a", Script::exits(&[1])).run();
    assert_eq!(run.commands("a").len(), 4);
    let note = run.note("a", Kind::NodeFailed);
    assert_eq!(note.error.as_deref(), Some("exit status 1, failed after 4 attempts"));
    assert_eq!((note.attempt, note.exit_code), (3, Some(1)));
    assert_eq!(note.duration, Some(Duration::from_millis(4 * T)), "from the first start on");
    let run = Sim::of(text).play("a", Script::exits(&[1, 1, 1, 0])).run();
    assert_eq!(run.state("a"), State::Succeeded);
    assert_eq!(run.note("a", Kind::NodeCompleted).attempt, 3);
}

#[test]
fn only_the_named_exit_codes_are_retried() {
    let text = "steps: [{name: a, command: x, retry_policy: {limit: 5, exit_codes: [75, 2]}}]";
    let run = Sim::of(text).play("a", Script::exits(&[75, 2, 1, 0])).run();
    assert_eq!(run.state("a"), State::Failed);
    assert_eq!(run.commands("a").len(), 3, "exit status 1 is not worth another attempt");
    let killed = Script::default().ends(vec![Finish::Killed(SIGKILL), Finish::Exited(0)]);
    let run = Sim::of(text).play("a", killed).run();
    assert_eq!(run.state("a"), State::Failed, "a signal is no exit code");
}

#[test]
fn every_kind_of_failure_is_retried_if_no_code_is_named() {
    let ends = vec![
        Finish::Killed(SIGKILL),
        Finish::Broken("no such program".to_owned()),
        Finish::Exited(7),
    ];
    let run = Sim::of("steps: [{name: a, command: x, retry_policy: {limit: 2}}]")
        .play("a", Script::default().ends(ends))
        .run();
    let errors: Vec<_> = run.notes().filter_map(|note| note.error.as_deref()).collect();
    let want = [
        "killed by SIGKILL",
        "no such program",
        "exit status 7, failed after 3 attempts",
        "step `a` failed: exit status 7, failed after 3 attempts",
    ];
    assert_eq!(errors, want);
}

#[test]
fn jitter_strays_within_its_fraction_and_is_the_same_for_the_same_seed() {
    let text = "steps: [{name: a, command: x,
                         retry_policy: {limit: 1, delay: 100ms, jitter: 0.5}}]";
    let second_start = |seed| {
        let sim = Sim::with(workflow(text), &[], seed).play("a", Script::exits(&[1, 0]));
        let run = sim.run();
        run.took() - T
    };
    let starts: Vec<u64> = (0..50).map(second_start).collect();
    assert!(starts.iter().all(|start| (60..=160).contains(start)), "{starts:?}");
    let (low, high) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
    assert!(*low < 80 && *high > 140, "seeds spread the delays: {starts:?}");
    assert_eq!(starts, (0..50).map(second_start).collect::<Vec<_>>());
}

#[test]
fn no_delay_stays_no_delay_however_often_it_is_doubled() {
    let run = Sim::of(
        "steps: [{name: a, command: x, retry_policy: {limit: 1500, delay: 0s, backoff: 2}}]",
    )
    .play("a", Script::lasts(1).then_exits(&[1]))
    .run();
    assert_eq!(run.took(), 1_501, "it never waits");
}

#[test]
fn dependents_wait_for_the_last_attempt() {
    let run = Sim::of(
        "steps:
          - {name: flaky, command: x, retry_policy: {limit: 1, delay: 50ms}}
          - {name: next, command: x, depends: flaky}
          - {name: rescue, command: x, depends: [{step: flaky, on: failure}]}",
    )
    .play("flaky", Script::exits(&[1, 0]))
    .run();
    assert_eq!(run.commands("next"), ["70 main"]);
    assert_eq!(run.state("rescue"), State::Skipped, "an attempt that is repeated is no failure");
}
