//! Limits of a step and of the whole workflow.

use std::time::Duration;

use super::driver::{GRACE, Script, Sim};
use crate::flow::{Cause, Kind, State, Verdict};

#[test]
fn a_step_that_takes_too_long_is_asked_to_end() {
    let run =
        Sim::of("steps: [{name: a, command: x, timeout: 50ms}]").play("a", Script::hangs()).run();
    assert_eq!(run.commands("a"), ["0 main", "50 soft"]);
    let note = run.note("a", Kind::NodeFailed);
    assert_eq!(note.error.as_deref(), Some("timed out after 50ms"));
    assert_eq!(note.exit_code, None);
    assert_eq!(run.took(), 50);
}

#[test]
fn a_step_that_does_not_heed_its_timeout_is_killed_after_the_grace() {
    let run = Sim::of("steps: [{name: a, command: x, timeout: 50ms}, {name: b, command: x}]")
        .play("a", Script::hangs().stubborn())
        .play("b", Script::lasts(5_000))
        .run();
    assert_eq!(run.commands("a"), ["0 main", "50 soft", "1050 hard"]);
    assert_eq!(GRACE, 1_000);
    assert_eq!(run.commands("b"), ["0 main", "1050 soft"], "the failure counts when it has ended");
}

#[test]
fn a_step_within_its_timeout_is_left_alone() {
    let run =
        Sim::of("steps: [{name: a, command: x, timeout: 50ms}, {name: b, command: x, depends: a}]")
            .play("a", Script::lasts(50))
            .play("b", Script::lasts(5_000))
            .run();
    assert_eq!(run.commands("a"), ["0 main"]);
    assert_eq!(run.states(), ["succeeded", "succeeded"]);
}

#[test]
fn a_timeout_is_that_of_one_attempt() {
    let run = Sim::of(
        "steps: [{name: a, command: x, timeout: 50ms, retry_policy: {limit: 2, delay: 20ms}}]",
    )
    .play("a", Script::lasts(60))
    .run();
    let want = ["0 main", "50 soft", "70 main", "120 soft", "140 main", "190 soft"];
    assert_eq!(run.commands("a"), want);
    let run = Sim::of("steps: [{name: a, command: x, timeout: 50ms, retry_policy: {limit: 2}}]")
        .play("a", Script::lasts(40).then_exits(&[1, 0]))
        .run();
    assert_eq!(run.commands("a"), ["0 main", "40 main"], "the first limit ends with its attempt");
    assert_eq!(run.state("a"), State::Succeeded);
}

#[test]
fn a_timeout_covers_the_preconditions_and_begins_with_the_worker() {
    let run = Sim::of(
        "workers: 1
steps:
  - {name: first, command: x, priority: 1}
  - {name: a, command: x, timeout: 50ms, preconditions: ['true', 'true']}",
    )
    .play("first", Script::lasts(200))
    .play("a", Script::lasts(20).check_lasts(Some(20)))
    .run();
    assert_eq!(run.commands("a"), ["200 check 0", "220 check 1", "240 main", "250 soft"]);
    assert_eq!(run.state("a"), State::Failed);
}

#[test]
fn a_tolerated_timeout_lets_the_rest_go_on() {
    let run = Sim::of(
        "steps:
          - {name: a, command: x, timeout: 50ms, continue_on_error: true}
          - {name: b, command: x, depends: [{step: a, on: failure}]}",
    )
    .play("a", Script::hangs())
    .run();
    assert_eq!(run.states(), ["failed_continue", "succeeded"]);
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
}

const LIMITED: &str = "
timeout: 100ms
workers: 2
handlers: {success: x, failure: x, exit: x}
steps:
  - {name: quick, command: x}
  - {name: long, command: x, depends: quick}
  - {name: stubborn, command: x, depends: quick}
  - {name: waiting, command: x, depends: long}
  - {name: queued, command: x}
";

fn limited() -> Sim {
    let sim = Sim::of(LIMITED).play("long", Script::hangs());
    sim.play("stubborn", Script::hangs().stubborn()).play("queued", Script::lasts(5))
}

#[test]
fn a_workflow_that_takes_too_long_is_stopped() {
    let run = limited().run();
    assert_eq!(run.commands("long"), ["10 main", "100 soft"]);
    assert_eq!(run.commands("stubborn"), ["10 main", "100 soft", "1100 hard"]);
    assert_eq!(run.states(), ["succeeded", "cancelled", "cancelled", "cancelled", "succeeded"]);
    assert_eq!(run.verdict, Some(Verdict::Failed(None)));
    assert_eq!(run.flow.cause(), Some(Cause::Timeout(Duration::from_millis(100))));
    let want = "the workflow timed out after 100ms";
    assert_eq!(run.last_note().error.as_deref(), Some(want));
    assert_eq!(run.reason("waiting", Kind::NodeCancelled), want);
    assert_eq!(run.reason("long", Kind::NodeCancelled), format!("stopped: {want}"));
    assert_eq!(run.state("handlers.success"), State::Waiting);
    assert_eq!(run.commands("handlers.failure"), ["1100 main"]);
    assert_eq!(run.commands("handlers.exit"), ["1110 main"]);
}

#[test]
fn a_handler_that_fails_after_a_timeout_is_not_the_first_failure() {
    let run = limited().play("handlers.exit", Script::exits(&[1])).run();
    assert_eq!(run.verdict, Some(Verdict::Failed(None)), "the time ran out first");
    let want = "the workflow timed out after 100ms";
    assert_eq!(run.last_note().error.as_deref(), Some(want));
}

#[test]
fn a_failure_before_the_timeout_is_the_first_failure() {
    let run = Sim::of(
        "timeout: 100ms
on_failure: finish
steps: [{name: bad, command: x}, {name: long, command: x}]",
    )
    .play("bad", Script::exits(&[1]))
    .play("long", Script::hangs())
    .run();
    assert_eq!(run.commands("long"), ["0 main", "100 soft"], "`finish` does not wait for ever");
    assert_eq!(run.verdict, Some(Verdict::Failed(Some(run.step("bad")))));
    assert_eq!(run.last_note().error.as_deref(), Some("step `bad` failed: exit status 1"));
}

#[test]
fn the_workflows_limit_does_not_cut_its_handlers_short() {
    let run = Sim::of("timeout: 100ms\nhandlers: {exit: x}\nsteps: [{name: a, command: x}]")
        .play("handlers.exit", Script::lasts(500))
        .run();
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
    assert_eq!(run.took(), 510);
}

#[test]
fn a_handler_has_a_timeout_of_its_own() {
    let run =
        Sim::of("handlers: {exit: {command: x, timeout: 50ms}}\nsteps: [{name: a, command: x}]")
            .play("handlers.exit", Script::hangs().stubborn())
            .run();
    assert_eq!(run.commands("handlers.exit"), ["10 main", "60 soft", "1060 hard"]);
    assert_eq!(run.verdict, Some(Verdict::Failed(Some(run.step("handlers.exit")))));
}
