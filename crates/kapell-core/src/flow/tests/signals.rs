//! Ctrl-C and SIGTERM: first gently, then not.

use super::driver::{SIGINT, SIGKILL, SIGTERM, Script, Sim};
use crate::flow::{Cause, Event, Kind, Verdict};

const BUSY: &str = "
workers: 3
steps:
  - {name: heeds, command: x}
  - {name: stubborn, command: x}
  - {name: retries, command: x, retry_policy: {limit: 9, delay: 1h}}
  - {name: queued, command: x, priority: -1}
  - {name: waits, command: x, depends: heeds}
";

fn busy() -> Sim {
    Sim::of(BUSY)
        .play("heeds", Script::hangs())
        .play("stubborn", Script::hangs().stubborn())
        .play("retries", Script::exits(&[1]))
        .play("queued", Script::hangs())
}

fn stop(signal: i32) -> Event {
    Event::Stop(Cause::Signal(signal))
}

#[test]
fn a_stop_asks_first_and_kills_after_the_grace() {
    let run = busy().at(50, stop(SIGINT)).run();
    assert_eq!(run.commands("heeds"), ["0 main", "50 soft"]);
    assert_eq!(run.commands("stubborn"), ["0 main", "50 soft", "1050 hard"]);
    assert_eq!(run.commands("queued"), ["10 main", "50 soft"]);
    assert_eq!(run.commands("retries"), ["0 main"]);
    assert_eq!(run.states(), ["cancelled"; 5]);
    assert_eq!(run.took(), 1_050);
    assert_eq!(run.reason("waits", Kind::NodeCancelled), "interrupted by SIGINT");
    assert_eq!(run.reason("heeds", Kind::NodeCancelled), "stopped: interrupted by SIGINT");
    assert_eq!(run.last_note().error.as_deref(), Some("interrupted by SIGINT"));
}

#[test]
fn a_kill_after_a_stop_waits_for_no_grace() {
    let run = busy().at(50, stop(SIGINT)).at(60, Event::Kill).run();
    assert_eq!(run.commands("heeds"), ["0 main", "50 soft"]);
    assert_eq!(run.commands("stubborn"), ["0 main", "50 soft", "60 hard"]);
    assert_eq!(run.took(), 60);
    assert_eq!(run.verdict, Some(Verdict::Interrupted(SIGINT)));
}

#[test]
fn a_kill_without_a_stop_ends_everything_at_once() {
    let run = busy().at(50, Event::Kill).run();
    assert_eq!(run.commands("stubborn"), ["0 main", "50 soft", "50 hard"]);
    assert_eq!((run.took(), run.states()), (50, vec!["cancelled"; 5]));
    assert_eq!(run.verdict, Some(Verdict::Interrupted(SIGKILL)));
}

#[test]
fn a_kill_reaches_the_exit_handler_too() {
    let run = Sim::of("handlers: {exit: x}\nsteps: [{name: a, command: x}]")
        .play("handlers.exit", Script::hangs().stubborn())
        .at(5, stop(SIGINT))
        .at(50, Event::Kill)
        .run();
    assert_eq!(run.commands("handlers.exit"), ["5 main", "50 soft", "50 hard"]);
    assert_eq!((run.took(), run.verdict), (50, Some(Verdict::Interrupted(SIGINT))));
}

#[test]
fn a_kill_leaves_no_handler_to_come() {
    let run = Sim::of("handlers: {exit: x}\nsteps: [{name: a, command: x}]")
        .play("a", Script::hangs().stubborn())
        .at(5, stop(SIGINT))
        .at(10, Event::Kill)
        .run();
    assert_eq!(run.started(), ["a"], "whoever kills wants no more");
    assert_eq!((run.took(), run.verdict), (10, Some(Verdict::Interrupted(SIGINT))));
}

#[test]
fn a_second_stop_changes_nothing() {
    let run = busy().at(50, stop(SIGINT)).at(60, stop(SIGTERM)).run();
    assert_eq!(run.commands("stubborn"), ["0 main", "50 soft", "1050 hard"]);
    assert_eq!(run.verdict, Some(Verdict::Interrupted(SIGINT)), "the first one counts");
}

#[test]
fn an_interrupt_does_not_hide_the_failure_that_stopped_the_run_before() {
    let run = Sim::of("steps: [{name: bad, command: x}, {name: b, command: x}]")
        .play("bad", Script::exits(&[1]))
        .play("b", Script::hangs().stubborn())
        .at(20, stop(SIGTERM))
        .run();
    assert_eq!(run.states(), ["failed", "cancelled"]);
    assert_eq!(run.verdict, Some(Verdict::Failed(Some(run.step("bad")))));
}

#[test]
fn an_interrupt_ends_what_finish_lets_run() {
    let run =
        Sim::of("on_failure: finish\nsteps: [{name: bad, command: x}, {name: b, command: x}]")
            .play("bad", Script::exits(&[1]))
            .play("b", Script::hangs())
            .at(20, stop(SIGINT))
            .run();
    assert_eq!(run.commands("b"), ["0 main", "20 soft"]);
    assert_eq!(run.states(), ["failed", "cancelled"]);
    assert_eq!(run.verdict, Some(Verdict::Interrupted(SIGINT)));
}

#[test]
fn a_step_that_ends_well_after_it_was_told_to_end_is_cancelled() {
    let run = Sim::of("steps: [{name: a, command: x}, {name: b, command: x, depends: a}]")
        .play("a", Script::lasts(100).stubborn())
        .at(20, stop(SIGINT))
        .run();
    assert_eq!(run.states(), ["cancelled", "cancelled"], "nobody knows what it left undone");
}

#[test]
fn exit_codes_are_those_of_the_rulings() {
    assert_eq!(Verdict::Succeeded.exit_code(), 0);
    assert_eq!(Verdict::Failed(None).exit_code(), 1);
    let run = Sim::of("steps: [{name: a, command: x}]").play("a", Script::exits(&[77])).run();
    assert_eq!(run.verdict.map(Verdict::exit_code), Some(1), "a step's own code is not passed on");
    for (signal, code) in [(SIGINT, 130), (SIGTERM, 143), (SIGKILL, 137)] {
        assert_eq!(Verdict::Interrupted(signal).exit_code(), code);
    }
}

#[test]
fn a_signal_that_killed_a_step_is_named() {
    let killed = crate::flow::Finish::Killed(11);
    let run = Sim::of("steps: [{name: a, command: x}]")
        .play("a", Script::default().ends(vec![killed]))
        .run();
    let note = run.note("a", Kind::NodeFailed);
    assert_eq!((note.error.as_deref(), note.exit_code), (Some("killed by SIGSEGV"), None));
}
