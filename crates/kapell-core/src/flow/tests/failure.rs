//! What a failure does to the rest: stop, finish, continue (RULINGS 20, 21).

use super::driver::{Script, Sim};
use crate::flow::{Cause, Kind, State, Verdict};

/// `bad` fails at 10 while `long` and `stubborn` run and `ready` waits for a worker.
fn failing(on_failure: &str) -> Sim {
    Sim::of(&format!(
        "on_failure: {on_failure}
workers: 3
steps:
  - {{name: bad, command: x}}
  - {{name: long, command: x}}
  - {{name: stubborn, command: x}}
  - {{name: ready, command: x}}
  - {{name: after-bad, command: x, depends: bad}}
  - {{name: after-long, command: x, depends: long}}
  - {{name: after-both, command: x, depends: [bad, long]}}"
    ))
    .play("bad", Script::exits(&[3]))
    .play("long", Script::lasts(50))
    .play("stubborn", Script::lasts(5_000).stubborn())
}

#[test]
fn stop_ends_what_runs_and_cancels_the_rest() {
    let run = failing("stop").run();
    assert_eq!(run.commands("long"), ["0 main", "10 soft"]);
    assert_eq!(run.commands("stubborn"), ["0 main", "10 soft", "1010 hard"]);
    let mut want = vec!["cancelled"; 7];
    want[0] = "failed";
    assert_eq!(run.states(), want);
    assert_eq!(run.started(), ["bad", "long", "stubborn"]);
    assert_eq!(run.reason("long", Kind::NodeCancelled), "stopped: `bad` failed");
    assert_eq!(run.reason("ready", Kind::NodeCancelled), "`bad` failed");
    let bad = run.step("bad");
    assert_eq!(run.verdict, Some(Verdict::Failed(Some(bad))));
    assert_eq!(run.verdict.map(Verdict::exit_code), Some(1));
    assert_eq!(run.flow.cause(), Some(Cause::Failure(bad)));
    assert_eq!(run.last_note().error.as_deref(), Some("step `bad` failed: exit status 3"));
    assert_eq!(run.took(), 1_010);
}

#[test]
fn stop_is_the_default() {
    let run = Sim::of("steps: [{name: a, command: x}, {name: b, command: x}]")
        .play("a", Script::exits(&[1]))
        .play("b", Script::lasts(50))
        .run();
    assert_eq!(run.states(), ["failed", "cancelled"]);
}

#[test]
fn finish_lets_running_steps_end_and_starts_no_more() {
    let run = failing("finish").run();
    assert_eq!(run.commands("long"), ["0 main"]);
    assert_eq!(run.commands("stubborn"), ["0 main"]);
    let want =
        ["failed", "succeeded", "succeeded", "cancelled", "cancelled", "cancelled", "cancelled"];
    assert_eq!(run.states(), want);
    assert_eq!(run.verdict.map(Verdict::exit_code), Some(1));
    assert_eq!(run.took(), 5_000);
}

#[test]
fn finish_starts_nothing_whose_condition_is_still_being_checked() {
    let run = Sim::of(
        "on_failure: finish
steps:
  - {name: bad, command: x}
  - {name: checking, command: x, when: 'true'}
  - {name: checked, command: x, preconditions: ['true']}",
    )
    .play("bad", Script::exits(&[1]))
    .play("checking", Script::default().check_lasts(Some(50)))
    .play("checked", Script::default().check_lasts(Some(50)))
    .run();
    assert_eq!(run.commands("checking"), ["0 when"]);
    assert_eq!(run.commands("checked"), ["0 check 0", "50 main"], "it runs: it may end");
    assert_eq!(run.states(), ["failed", "cancelled", "succeeded"]);
}

#[test]
fn finish_repeats_no_attempt() {
    let text = "on_failure: finish
steps:
  - {name: bad, command: x}
  - {name: flaky, command: x, retry_policy: {limit: 9}}
  - {name: waits, command: x, retry_policy: {limit: 9, delay: 1s}}";
    let run = Sim::of(text)
        .play("bad", Script::exits(&[1]))
        .play("flaky", Script::lasts(50).then_exits(&[1, 0]))
        .play("waits", Script::lasts(5).then_exits(&[1, 0]))
        .run();
    assert_eq!(run.states(), ["failed", "failed", "cancelled"]);
    assert_eq!(run.took(), 50, "nobody waits for a retry that will not come");
}

#[test]
fn continue_runs_all_that_does_not_depend_on_the_failure() {
    let run = failing("continue").run();
    let want = ["failed", "succeeded", "succeeded", "succeeded", "skipped", "succeeded", "skipped"];
    assert_eq!(run.states(), want);
    assert_eq!(run.reason("after-bad", Kind::NodeSkipped), "`bad` failed");
    assert_eq!(run.reason("after-both", Kind::NodeSkipped), "`bad` failed");
    assert_eq!(run.verdict, Some(Verdict::Failed(Some(run.step("bad")))));
    assert_eq!(run.verdict.map(Verdict::exit_code), Some(1));
    assert_eq!(run.flow.cause(), None, "nothing was stopped");
}

#[test]
fn continue_skips_transitively_except_where_the_end_is_awaited() {
    let run = Sim::of(
        "on_failure: continue
steps:
  - {name: bad, command: x}
  - {name: good, command: x}
  - {name: one, command: x, depends: [bad, good]}
  - {name: two, command: x, depends: [one, good]}
  - {name: three, command: x, depends: [two, good]}
  - {name: on-skipped, command: x, depends: [{step: two, on: skipped}]}
  - {name: on-done, command: x, depends: [{step: one, on: done}]}
  - {name: on-failure, command: x, depends: [{step: one, on: failure}]}
  - {name: behind, command: x, depends: [on-skipped, on-done]}
  - {name: both, command: x, depends: [{step: one, on: done}, two]}",
    )
    .play("bad", Script::exits(&[1]))
    .run();
    for (name, state) in [
        ("one", State::Skipped),
        ("two", State::Skipped),
        ("three", State::Skipped),
        ("on-skipped", State::Succeeded),
        ("on-done", State::Succeeded),
        ("on-failure", State::Skipped),
        ("behind", State::Succeeded),
        ("both", State::Skipped),
    ] {
        assert_eq!(run.state(name), state, "{name}");
    }
    assert_eq!(run.reason("three", Kind::NodeSkipped), "`bad` failed", "the root of it is named");
    assert_eq!(run.reason("on-failure", Kind::NodeSkipped), "`one` was skipped");
}

#[test]
fn a_failure_that_somebody_awaits_does_not_stop_the_workflow() {
    for on in ["failure", "done"] {
        let run = Sim::of(&format!(
            "steps:
              - {{name: bad, command: x}}
              - {{name: long, command: x}}
              - {{name: rescue, command: x, depends: [{{step: bad, on: {on}}}]}}
              - {{name: next, command: x, depends: bad}}"
        ))
        .play("bad", Script::exits(&[1]))
        .play("long", Script::lasts(100))
        .run();
        assert_eq!(run.states(), ["failed_continue", "succeeded", "succeeded", "skipped"], "{on}");
        assert_eq!(run.verdict, Some(Verdict::Succeeded), "{on}");
        assert_eq!(run.flow.first_failure(), None);
    }
}

#[test]
fn waiting_for_a_skip_does_not_tolerate_a_failure() {
    let run = Sim::of(
        "steps: [{name: bad, command: x},
                 {name: b, command: x, depends: [{step: bad, on: skipped}]}]",
    )
    .play("bad", Script::exits(&[1]))
    .run();
    assert_eq!(run.states(), ["failed", "cancelled"]);
}

#[test]
fn a_tolerated_failure_is_told_as_such_and_ends_well() {
    let run = Sim::of("steps: [{name: a, command: x, continue_on_error: true}]")
        .play("a", Script::exits(&[2]))
        .run();
    let note = run.note("a", Kind::NodeFailedContinue);
    assert_eq!((note.error.as_deref(), note.exit_code), (Some("exit status 2"), Some(2)));
    assert_eq!(run.flow.error(run.step("a")), Some("exit status 2"));
    assert_eq!(run.verdict.map(Verdict::exit_code), Some(0));
}

#[test]
fn the_first_failure_is_the_first_in_time() {
    for on_failure in ["finish", "continue"] {
        let run = Sim::of(&format!(
            "on_failure: {on_failure}
steps: [{{name: late, command: x}}, {{name: early, command: x}}]"
        ))
        .play("late", Script::lasts(20).then_exits(&[1]))
        .play("early", Script::lasts(10).then_exits(&[2]))
        .run();
        assert_eq!(run.states(), ["failed", "failed"]);
        assert_eq!(run.verdict, Some(Verdict::Failed(Some(run.step("early")))), "{on_failure}");
        assert_eq!(run.last_note().error.as_deref(), Some("step `early` failed: exit status 2"));
    }
}

#[test]
fn a_skip_names_what_was_not_satisfied() {
    let mut text = "steps:\n".to_owned();
    for name in ["a", "b", "c", "d", "e"] {
        text += &format!("  - {{name: {name}, command: x, continue_on_error: true}}\n");
    }
    text += "  - {name: join, command: x, depends: [a, b, c, d, e]}\n";
    let names = ["a", "b", "c", "d", "e"].into_iter();
    let run = names.fold(Sim::of(&text), |sim, name| sim.play(name, Script::exits(&[1]))).run();
    let want = "`a` failed, `b` failed, `c` failed, 2 more";
    assert_eq!(run.reason("join", Kind::NodeSkipped), want);
}

#[test]
fn a_command_that_cannot_be_started_fails_with_its_reason() {
    let broken = crate::flow::Finish::Broken("no such file or directory".to_owned());
    let run = Sim::of("steps: [{name: a, command: x}]")
        .play("a", Script::default().ends(vec![broken]))
        .run();
    let note = run.note("a", Kind::NodeFailed);
    assert_eq!(note.error.as_deref(), Some("no such file or directory"));
}
