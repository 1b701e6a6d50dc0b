//! Handlers: after all steps, by how it went.

use super::driver::{SIGINT, SIGTERM, Script, Sim};
use crate::flow::{Cause, Event, Kind, State, Verdict};

const HANDLED: &str = "
handlers: {success: x, failure: x, exit: x}
steps:
  - {name: a, command: x}
  - {name: b, command: x, depends: a}
";

fn stop(signal: i32) -> Event {
    Event::Stop(Cause::Signal(signal))
}

#[test]
fn success_runs_its_handler_and_then_exit() {
    let run = Sim::of(HANDLED).run();
    assert_eq!(run.started(), ["a", "b", "handlers.success", "handlers.exit"]);
    assert_eq!(run.commands("handlers.success"), ["20 main"]);
    assert_eq!(run.commands("handlers.exit"), ["30 main"], "one after the other");
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
}

#[test]
fn failure_runs_its_handler_and_then_exit() {
    for on_failure in ["stop", "finish", "continue"] {
        let text = format!("on_failure: {on_failure}{HANDLED}");
        let run = Sim::of(&text).play("a", Script::exits(&[1])).run();
        assert_eq!(run.started(), ["a", "handlers.failure", "handlers.exit"], "{on_failure}");
        assert_eq!(run.verdict, Some(Verdict::Failed(Some(run.step("a")))));
    }
}

#[test]
fn a_tolerated_failure_is_a_success_to_the_handlers() {
    let text = format!("defaults: {{continue_on_error: true}}{HANDLED}");
    let run = Sim::of(&text).play("a", Script::exits(&[1])).run();
    assert_eq!(run.started(), ["a", "handlers.success", "handlers.exit"]);
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
}

#[test]
fn handlers_wait_for_steps_that_are_being_stopped() {
    let run = Sim::of(
        "handlers: {failure: x}\nsteps: [{name: bad, command: x}, {name: slow, command: x}]",
    )
    .play("bad", Script::exits(&[1]))
    .play("slow", Script::hangs().stubborn())
    .run();
    assert_eq!(run.commands("slow"), ["0 main", "10 soft", "1010 hard"]);
    assert_eq!(run.commands("handlers.failure"), ["1010 main"]);
}

#[test]
fn an_interrupt_runs_the_exit_handler_only() {
    let run = Sim::of(HANDLED).at(5, stop(SIGINT)).run();
    assert_eq!(run.started(), ["a", "handlers.exit"]);
    assert_eq!(run.states(), ["cancelled", "cancelled"]);
    assert_eq!(run.state("handlers.exit"), State::Succeeded);
    assert_eq!(run.verdict, Some(Verdict::Interrupted(SIGINT)));
}

#[test]
fn a_handler_that_fails_fails_the_run() {
    let run = Sim::of(HANDLED).play("handlers.success", Script::exits(&[4])).run();
    let handler = run.step("handlers.success");
    assert_eq!(run.verdict, Some(Verdict::Failed(Some(handler))));
    assert_eq!(run.state("handlers.exit"), State::Succeeded, "exit runs all the same");
    assert_eq!(run.state("handlers.failure"), State::Waiting, "handlers are chosen once");
    let want = "step `handlers.success` failed: exit status 4";
    assert_eq!(run.last_note().error.as_deref(), Some(want));
}

#[test]
fn a_handler_that_fails_does_not_hide_the_step_that_failed() {
    let run = Sim::of(HANDLED)
        .play("b", Script::exits(&[1]))
        .play("handlers.failure", Script::exits(&[1]))
        .run();
    assert_eq!(run.verdict, Some(Verdict::Failed(Some(run.step("b")))));
    let run =
        Sim::of(HANDLED).at(5, stop(SIGTERM)).play("handlers.exit", Script::exits(&[1])).run();
    assert_eq!(run.verdict, Some(Verdict::Interrupted(SIGTERM)));
}

#[test]
fn a_handler_may_tolerate_its_own_failure() {
    let run = Sim::of(
        "handlers: {exit: {command: x, continue_on_error: true}}\nsteps: [{name: a, command: x}]",
    )
    .play("handlers.exit", Script::exits(&[1]))
    .run();
    assert_eq!(run.state("handlers.exit"), State::FailedContinue);
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
}

#[test]
fn handlers_are_retried_and_heed_their_conditions() {
    let run = Sim::of(
        "handlers:
  success: {command: x, retry_policy: {limit: 2, delay: 100ms}}
  exit: {command: x, when: 'test -f leftovers'}
steps: [{name: a, command: x}]",
    )
    .play("handlers.success", Script::exits(&[1, 1, 0]))
    .play("handlers.exit", Script::default().checks(&[(1, "")]))
    .run();
    assert_eq!(run.commands("handlers.success"), ["10 main", "120 main", "230 main"]);
    assert_eq!(run.state("handlers.success"), State::Succeeded);
    assert_eq!(run.commands("handlers.exit"), ["240 when"]);
    assert_eq!(run.state("handlers.exit"), State::Skipped);
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
}

#[test]
fn a_handler_retried_at_once_is_retried() {
    let text = "handlers: {failure: {command: x, retry_policy: {limit: 1}}, exit: x}
steps: [{name: a, command: x}]";
    let run = Sim::of(text)
        .play("a", Script::exits(&[1]))
        .play("handlers.failure", Script::exits(&[1, 0]))
        .run();
    assert_eq!(run.started(), ["a", "handlers.failure", "handlers.failure", "handlers.exit"]);
    assert_eq!(run.commands("handlers.exit"), ["30 main"]);
}

#[test]
fn an_interrupt_ends_a_handler_and_is_not_forgotten() {
    let run = Sim::of(HANDLED).play("handlers.success", Script::hangs()).at(25, stop(SIGINT)).run();
    assert_eq!(run.commands("handlers.success"), ["20 main", "25 soft"]);
    assert_eq!(run.state("handlers.success"), State::Cancelled);
    assert_eq!(run.verdict, Some(Verdict::Interrupted(SIGINT)), "interrupted is not success");
    let want = "stopped: interrupted by SIGINT";
    assert_eq!(run.reason("handlers.success", Kind::NodeCancelled), want);
    assert_eq!(run.state("handlers.exit"), State::Succeeded, "cleaning up is owed in any case");
}

#[test]
fn an_interrupt_of_a_handler_is_named_also_after_a_failure() {
    let run = Sim::of(HANDLED)
        .play("a", Script::exits(&[1]))
        .play("handlers.failure", Script::hangs())
        .at(25, stop(SIGINT))
        .run();
    let want = "stopped: interrupted by SIGINT";
    assert_eq!(run.reason("handlers.failure", Kind::NodeCancelled), want);
    assert_eq!(run.state("handlers.exit"), State::Succeeded);
    assert_eq!(run.verdict.map(Verdict::exit_code), Some(1), "the failure came first");
}

#[test]
fn an_interrupt_ends_a_handler_that_waits_for_its_retry() {
    let run = Sim::of(
        "handlers: {exit: {command: x, retry_policy: {limit: 9, delay: 5m}}}
steps: [{name: a, command: x}]",
    )
    .play("handlers.exit", Script::exits(&[1]))
    .at(50, stop(SIGTERM))
    .run();
    assert_eq!(run.commands("handlers.exit"), ["10 main"]);
    assert_eq!(run.state("handlers.exit"), State::Cancelled);
    assert_eq!((run.took(), run.verdict), (50, Some(Verdict::Interrupted(SIGTERM))));
}

#[test]
fn a_handler_that_does_not_heed_an_interrupt_is_killed() {
    let run = Sim::of("handlers: {exit: x}\nsteps: [{name: a, command: x}]")
        .play("handlers.exit", Script::hangs().stubborn())
        .at(20, stop(SIGINT))
        .run();
    assert_eq!(run.commands("handlers.exit"), ["10 main", "20 soft", "1020 hard"]);
    let run = Sim::of("handlers: {exit: x}\nsteps: [{name: a, command: x}]")
        .play("handlers.exit", Script::hangs().stubborn())
        .at(20, stop(SIGINT))
        .at(30, Event::Kill)
        .run();
    assert_eq!(run.commands("handlers.exit"), ["10 main", "20 soft", "30 hard"]);
}

#[test]
fn a_workflow_whose_steps_were_all_skipped_is_a_success_to_the_handlers() {
    let run = Sim::of(
        "handlers: {success: x, failure: x}\nsteps: [{name: a, command: x, when: 'false'}]",
    )
    .play("a", Script::default().checks(&[(1, "")]))
    .run();
    assert_eq!(run.started(), ["handlers.success"]);
}
