//! How a run is seen between two states that are stored.

use super::stage::{START, Script, Stage, full, run, secs};
use crate::run::sight::add_noted;
use crate::run::{Doing, Entry, Happened, Noted, Run, RunState, Sight, StopKind, Timeline};

fn sight(state: RunState, attempt: u32) -> Sight {
    Sight {
        state,
        previous_state: RunState::Pending,
        attempt,
        since: START,
        why: "taking actions".into(),
        doing: None,
    }
}

fn stored(state: RunState, attempt: u32) -> Run {
    Run { state, attempt, ..run() }
}

#[test]
fn of_record_and_sight_the_one_that_is_further_is_shown() {
    use RunState::{
        ActionRunning, Cancelled, Completed, ConditionRunning, ContainerCreating, Pending, PreRun,
        Retrying, Running, Terminating,
    };
    let cases = [
        (PreRun, 0, Pending, 0, true),
        (PreRun, 0, ActionRunning, 0, true),
        (ContainerCreating, 0, ActionRunning, 0, false),
        (Running, 0, Terminating, 0, true),
        (Retrying, 1, Terminating, 0, false),
        (Retrying, 1, Pending, 1, true),
        (Retrying, 1, ConditionRunning, 1, true),
        (ContainerCreating, 1, ConditionRunning, 1, false),
        (Running, 0, ConditionRunning, 1, true),
        (Completed, 0, Terminating, 0, false),
        (Cancelled, 0, Pending, 3, false),
    ];
    for (state, attempt, seen, of, ahead) in cases {
        let mut shown = stored(state, attempt);
        assert_eq!(sight(seen, of).put_over(&mut shown), ahead, "{state:?} {seen:?}");
        let want = if ahead { (seen, of) } else { (state, attempt) };
        assert_eq!((shown.state, shown.attempt), want);
    }
}

#[test]
fn why_it_waits_and_what_is_being_done_is_its_reason_until_it_is_to_be_cancelled() {
    let mut seen = sight(RunState::ActionRunning, 0);
    let mut shown = stored(RunState::PreRun, 0);
    seen.put_over(&mut shown);
    assert_eq!(shown.reason, "taking actions");
    seen.doing =
        Some(Box::new(Doing { what: "action `delay` of `time_window`".to_owned(), since: START }));
    let mut shown = stored(RunState::PreRun, 0);
    seen.put_over(&mut shown);
    assert_eq!(shown.reason, "taking actions: action `delay` of `time_window`");
    let mut shown = stored(RunState::PreRun, 0);
    (shown.cancel, shown.reason) = (Some(StopKind::Graceful), "enough".to_owned());
    seen.put_over(&mut shown);
    assert_eq!((shown.state, shown.reason.as_str()), (RunState::ActionRunning, "enough"));
}

#[test]
fn a_run_that_waits_for_its_turn_says_for_whom() {
    let mut stage = Stage::new(full(), Script::default());
    stage.it.handle(Happened::Rang(crate::run::Timer::Due), START.after(secs(10)));
    let why = "run `nightly:1` is under way".to_owned();
    stage.it.handle(Happened::Queued { why: why.clone() }, START.after(secs(11)));
    let seen = Sight::of(&stage.it);
    assert_eq!((seen.state, seen.why.into_string(), seen.attempt), (RunState::Pending, why, 0));
    assert_eq!(seen.since, START.after(secs(10)));
}

#[test]
fn what_was_noted_is_told_once_whether_it_is_stored_or_not() {
    let note = |number: i64| Entry {
        at: crate::seams::Timestamp(number),
        attempt: 0,
        noted: Noted::Waits { why: number.to_string() },
    };
    let mut shown = Run { timeline: [note(1), note(2)].into(), ..stored(RunState::PreRun, 0) };
    add_noted(&mut shown, vec![note(2), note(3)]);
    assert_eq!(shown.timeline, Timeline::from([note(1), note(2), note(3)]));
    let mut ended = stored(RunState::Completed, 0);
    add_noted(&mut ended, vec![note(1)]);
    assert!(ended.timeline.is_empty(), "all of it is in the record");
}
