//! `when`, once; preconditions, before every attempt (RULINGS 22).

use super::driver::{SIGKILL, Script, Sim};
use crate::flow::{Ended, Finish, Kind, State, Verdict};

const GUARDED: &str = "
steps:
  - name: a
    command: x
    when: {predicate: echo $ENVIRONMENT, expected: production}
    preconditions: ['test -f input.csv', {predicate: wc -l < input.csv, expected: 100}]
    retry_policy: {limit: 2}
  - {name: b, command: x, depends: a}
";

#[test]
fn preconditions_are_checked_before_every_attempt_and_when_once() {
    let checks = [(0, "production\n"), (0, ""), (0, "100\n"), (0, ""), (0, " 100 ")];
    let run = Sim::of(GUARDED).play("a", Script::exits(&[1, 0]).checks(&checks)).run();
    let want =
        ["0 when", "0 check 0", "0 check 1", "0 main", "10 check 0", "10 check 1", "10 main"];
    assert_eq!(run.commands("a"), want);
    assert_eq!(run.states(), ["succeeded", "succeeded"]);
}

#[test]
fn a_precondition_that_is_not_met_fails_the_attempt() {
    let checks = [(0, "production"), (0, ""), (0, "99\n"), (1, ""), (0, ""), (0, "100")];
    let run = Sim::of(GUARDED).play("a", Script::default().checks(&checks)).run();
    let want =
        ["0 when", "0 check 0", "0 check 1", "0 check 0", "0 check 0", "0 check 1", "0 main"];
    assert_eq!(run.commands("a"), want, "two attempts fail before the command is reached");
    let retries = run.notes().filter(|note| note.kind == Kind::NodeRetrying);
    let errors: Vec<_> = retries.filter_map(|note| note.error.as_deref()).collect();
    let want = [
        "precondition failed: expected '100', got '99'",
        "precondition failed: `test -f input.csv` failed",
    ];
    assert_eq!(errors, want);
    assert_eq!(run.state("a"), State::Succeeded);
}

#[test]
fn a_precondition_that_is_never_met_fails_the_step() {
    let checks = [(0, "production"), (1, ""), (1, ""), (1, "")];
    let run = Sim::of(GUARDED).play("a", Script::default().checks(&checks)).run();
    assert_eq!(run.states(), ["failed", "cancelled"]);
    let error = run.note("a", Kind::NodeFailed).error.as_deref();
    let want = "precondition failed: `test -f input.csv` failed, failed after 3 attempts";
    assert_eq!(error, Some(want));
}

#[test]
fn a_condition_that_is_not_met_skips_the_step() {
    let run = Sim::of(GUARDED).play("a", Script::default().checks(&[(0, "staging")])).run();
    assert_eq!(run.states(), ["skipped", "skipped"]);
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
    assert!(run.started().is_empty(), "what is skipped was never started");
    let reason = "condition not met: expected 'production', got 'staging'";
    assert_eq!(run.reason("a", Kind::NodeSkipped), reason);
    assert_eq!(run.reason("b", Kind::NodeSkipped), "`a` was skipped");
}

#[test]
fn a_predicate_that_fails_is_not_met_whatever_it_prints() {
    let run = Sim::of(GUARDED).play("a", Script::default().checks(&[(1, "production")])).run();
    assert_eq!(run.state("a"), State::Skipped);
    let want =
        "condition not met: expected 'production', got 'production', and the predicate failed";
    assert_eq!(run.reason("a", Kind::NodeSkipped), want);
    let checks = [(0, "production"), (0, ""), (3, "100")];
    let run = Sim::of(GUARDED).play("a", Script::default().checks(&checks)).run();
    let want = "precondition failed: expected '100', got '100', and the predicate failed";
    let mut retries = run.notes().filter(|note| note.kind == Kind::NodeRetrying);
    assert_eq!(retries.next().and_then(|note| note.error.as_deref()), Some(want));
    let killed = Ended { finish: Finish::Killed(SIGKILL), stdout: "production".to_owned() };
    let run = Sim::of(GUARDED).play("a", Script::default().check_ends(vec![killed])).run();
    assert_eq!(run.state("a"), State::Skipped, "a predicate that was killed is not met either");
}

#[test]
fn an_empty_expectation_means_no_output() {
    let text = "steps: [{name: a, command: x, when: {predicate: p, expected: ''}}]";
    let run = Sim::of(text).play("a", Script::default().checks(&[(0, " \n")])).run();
    assert_eq!(run.state("a"), State::Succeeded);
    let run = Sim::of(text).play("a", Script::default().checks(&[(0, "text")])).run();
    assert_eq!(run.state("a"), State::Skipped);
}

#[test]
fn a_condition_that_could_not_be_checked_is_checked_again_by_the_retry() {
    let broken = Ended { finish: Finish::Broken("no shell".to_owned()), stdout: String::new() };
    let unmet = Ended { stdout: "staging".to_owned(), ..Ended::exited(0) };
    let script = Script::default().check_ends(vec![broken.clone(), unmet]);
    let run = Sim::of(GUARDED).play("a", script).run();
    assert_eq!(
        run.commands("a"),
        ["0 when", "0 when"],
        "the command needs a condition that is met"
    );
    assert_eq!(run.state("a"), State::Skipped);
    let script = Script::default().check_ends(vec![broken.clone(), broken.clone(), broken]);
    let run = Sim::of(GUARDED).play("a", script).run();
    assert_eq!(run.state("a"), State::Failed);
    let error = run.note("a", Kind::NodeFailed).error.as_deref();
    let want = "`when` could not be checked: no shell, failed after 3 attempts";
    assert_eq!(error, Some(want));
}

#[test]
fn a_condition_that_timed_out_does_not_let_the_retry_through() {
    let text = "steps: [{name: a, command: x, when: 'sleep 60', timeout: 100ms,
                         retry_policy: {limit: 1}}]";
    let run = Sim::of(text).play("a", Script::default().check_lasts(None)).run();
    assert_eq!(run.commands("a"), ["0 when", "100 soft", "100 when", "200 soft"]);
    assert_eq!(run.state("a"), State::Failed);
}

#[test]
fn a_join_point_heeds_its_conditions() {
    let text = "steps:
          - {name: gate, preconditions: ['test -f ok']}
          - {name: door, when: 'test -f ok'}
          - {name: room, command: x, depends: [door, {step: gate, on: failure}], requires: all}";
    let closed = Script::default().checks(&[(1, "")]);
    let run = Sim::of(text).play("gate", closed.clone()).play("door", closed).run();
    assert_eq!(run.states(), ["failed_continue", "skipped", "skipped"]);
    let run = Sim::of(text).run();
    assert_eq!(run.states(), ["succeeded", "succeeded", "skipped"]);
    assert_eq!(run.reason("room", Kind::NodeSkipped), "`gate` succeeded");
}

#[test]
fn a_step_is_checked_by_a_worker_and_never_beyond_the_limit() {
    let run = Sim::of(
        "workers: 1
steps:
  - {name: a, command: x, when: 'true', preconditions: ['true', 'true']}
  - {name: b, command: x, when: 'true'}",
    )
    .play("a", Script::default().check_lasts(Some(5)))
    .run();
    assert_eq!(run.commands("a"), ["0 when", "5 check 0", "10 check 1", "15 main"]);
    assert_eq!(run.commands("b"), ["25 when", "25 main"]);
}
