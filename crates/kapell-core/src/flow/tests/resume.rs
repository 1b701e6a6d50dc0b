//! Taking up an earlier run: what succeeded is kept, all else runs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::case::case;
use super::driver::{SIGINT, Script, Sim, workflow};
use crate::board::TaskGuid;
use crate::flow::{
    Cause, Event, Fate, Kind, Past, PastStep, Placed, Selection, State, Verdict, decisions, fates,
};
use crate::kubernetes::JobPlace;
use crate::workflow::{OnFailure, StepIx, Workflow};

const RESUME: Selection =
    Selection { resume: true, from: Vec::new(), only: Vec::new(), on_cells: false };

fn past(states: &[(&str, State)]) -> Past {
    let step = |&(name, state): &(&str, State)| {
        (name.to_owned(), PastStep { state, outputs: Vec::new(), stdout: None, task: None })
    };
    Past { run: "r1".to_owned(), steps: states.iter().map(step).collect() }
}

/// What the journal of a run would tell: how every step stands that ever told anything.
fn past_of(run: &Sim) -> Past {
    let mut steps = BTreeMap::new();
    for note in run.notes() {
        let Some(step) = note.step else { continue };
        let name = run.flow.workflow().step(step).name.to_string();
        let state = run.flow.state(step);
        steps.insert(name, PastStep { state, outputs: Vec::new(), stdout: None, task: None });
    }
    Past { run: "r1".to_owned(), steps }
}

fn resumed(workflow: Workflow, past: &Past) -> Sim {
    let fates = fates(&workflow, &RESUME, Some(past));
    Sim::with(workflow, &fates, 0)
}

#[test]
fn resume_keeps_what_succeeded_and_runs_all_else() {
    let names = ["ok", "kept", "bad", "soft", "off", "gone", "ran", "again", "new"];
    let steps: Vec<_> = names.iter().map(|name| format!("{{name: {name}, command: x}}")).collect();
    let workflow = workflow(&format!("steps: [{}]", steps.join(", ")));
    let past = past(&[
        ("ok", State::Succeeded),
        ("kept", State::Kept),
        ("bad", State::Failed),
        ("soft", State::FailedContinue),
        ("off", State::Skipped),
        ("gone", State::Cancelled),
        ("ran", State::Running),
        ("again", State::Retrying),
        ("removed-since", State::Succeeded),
    ]);
    let got = fates(&workflow, &RESUME, Some(&past));
    let keep = Fate::Counts(State::Kept);
    let run = Fate::Run;
    assert_eq!(got, [keep, keep, run, run, run, run, run, run, run]);
}

#[test]
fn without_resume_everything_runs() {
    let workflow = workflow("steps: [{name: a, command: x}, {name: b, command: x}]");
    let past = past(&[("a", State::Succeeded)]);
    assert_eq!(fates(&workflow, &Selection::default(), Some(&past)), [Fate::Run; 2]);
    assert_eq!(fates(&workflow, &Selection::default(), None), [Fate::Run; 2]);
    assert_eq!(fates(&workflow, &RESUME, None), [Fate::Run; 2], "there is nothing to keep");
}

#[test]
fn what_was_begun_on_a_cell_goes_on_there() {
    let workflow = workflow(
        "steps:
  - {name: far, command: x, executor: cell}
  - {name: here, command: x, executor: local}
  - {name: either, command: x}
  - {name: over, command: x, executor: cell}",
    );
    let states = [State::Running, State::Running, State::Running, State::Succeeded];
    let names = ["far", "here", "either", "over"];
    let mut past = past(&names.into_iter().zip(states).collect::<Vec<_>>());
    for name in ["far", "here", "either"] {
        past.steps.get_mut(name).unwrap().task = Some(Placed::Task(TaskGuid::new(name)));
    }
    let (go_on, run, keep) = (Fate::GoesOn, Fate::Run, Fate::Counts(State::Kept));
    let got = |selection: &Selection| fates(&workflow, selection, Some(&past));
    assert_eq!(got(&RESUME), [go_on, run, run, keep]);
    let on_cells = Selection { on_cells: true, ..RESUME };
    assert_eq!(got(&on_cells), [go_on, run, go_on, keep]);
    assert_eq!(got(&Selection::default()), [run; 4], "a new run is new");
    let far = workflow.find("far").unwrap();
    let picked = Selection { from: vec![far], ..on_cells };
    assert_eq!(got(&picked)[0], Fate::Picked, "who picks it wants it run");
}

#[test]
fn a_job_goes_on_where_jobs_run_and_a_task_where_tasks_do() {
    let workflow = workflow(
        "steps:
  - {name: job, command: x, executor: {type: kubernetes, config: {image: a}}}
  - {name: was_task, command: x, executor: {type: kubernetes, config: {image: a}}}
  - {name: was_job, command: x, executor: cell}",
    );
    let mut past = past(&["job", "was_task", "was_job"].map(|name| (name, State::Running)));
    let place = JobPlace {
        cluster: String::new(),
        namespace: "jobs".to_owned(),
        name: "job-1".to_owned(),
        run: "before".to_owned(),
    };
    for (name, placed) in [
        ("job", Placed::Job(place.clone())),
        ("was_task", Placed::Task(TaskGuid::new("t"))),
        ("was_job", Placed::Job(place)),
    ] {
        past.steps.get_mut(name).unwrap().task = Some(placed);
    }
    let got = fates(&workflow, &RESUME, Some(&past));
    assert_eq!(got, [Fate::GoesOn, Fate::Run, Fate::Run]);
    let why = decisions(&workflow, &got, Some(&past))[0].why.clone();
    assert!(why.starts_with("goes on: begun on Kubernetes in run"), "{why}");
}

#[test]
fn one_that_goes_on_was_asked_its_conditions_before() {
    let text = "steps:
  - {name: a, command: x, when: w, preconditions: [p], executor: cell, retry_policy: {limit: 1}}
  - {name: b, command: x, depends: a}";
    let run = |codes: &[i32]| {
        let sim = Sim::with(workflow(text), &[Fate::GoesOn, Fate::Run], 0);
        sim.play("a", Script::exits(codes)).run()
    };
    let well = run(&[0]);
    assert_eq!(well.states(), ["succeeded", "succeeded"]);
    assert_eq!(well.commands("a").len(), 1, "{:?}", well.commands("a"));
    let again = run(&[1, 0]);
    assert_eq!(again.states(), ["succeeded", "succeeded"]);
    assert_eq!(again.commands("a").len(), 3, "a further attempt asks its precondition again");
}

const PIPELINE: &str = "
handlers: {success: x, failure: x, exit: x}
steps:
  - {name: fetch, command: x}
  - {name: build, command: x, depends: fetch}
  - {name: test, command: x, depends: build}
  - {name: lint, command: x, depends: fetch}
  - {name: ship, command: x, depends: [test, lint], requires: all}
";

#[test]
fn a_failed_run_is_taken_up_where_it_failed() {
    let first = Sim::of(PIPELINE).play("test", Script::exits(&[1])).run();
    assert_eq!(first.states(), ["succeeded", "succeeded", "failed", "succeeded", "cancelled"]);
    let second = resumed(workflow(PIPELINE), &past_of(&first)).run();
    assert_eq!(second.states(), ["kept", "kept", "succeeded", "kept", "succeeded"]);
    let want = ["test", "ship", "handlers.success", "handlers.exit"];
    assert_eq!(second.started(), want, "handlers run again");
    assert_eq!(second.verdict, Some(Verdict::Succeeded));
}

#[test]
fn an_interrupted_run_is_taken_up_where_it_was() {
    let first = Sim::of(PIPELINE).at(15, Event::Stop(Cause::Signal(SIGINT))).run();
    let second = resumed(workflow(PIPELINE), &past_of(&first)).run();
    assert_eq!(second.states(), ["kept", "succeeded", "succeeded", "succeeded", "succeeded"]);
}

#[test]
fn a_run_that_succeeded_has_nothing_left() {
    let first = Sim::of(PIPELINE).run();
    let second = resumed(workflow(PIPELINE), &past_of(&first)).run();
    assert_eq!(second.states(), ["kept"; 5]);
    assert_eq!(second.started(), ["handlers.success", "handlers.exit"]);
    assert_eq!(second.verdict, Some(Verdict::Succeeded));
}

#[test]
fn what_is_kept_satisfies_as_if_it_had_just_succeeded() {
    let workflow = workflow(
        "steps:
          - {name: a, command: x}
          - {name: on-success, command: x, depends: a}
          - {name: on-done, command: x, depends: [{step: a, on: done}]}
          - {name: on-failure, command: x, depends: [{step: a, on: failure}]}
          - {name: on-skipped, command: x, depends: [{step: a, on: skipped}]}
          - {name: beyond, command: x, depends: on-failure}",
    );
    let run = resumed(workflow, &past(&[("a", State::Succeeded)])).run();
    let want = ["kept", "succeeded", "succeeded", "skipped", "skipped", "skipped"];
    assert_eq!(run.states(), want);
    assert_eq!(run.reason("on-failure", Kind::NodeSkipped), "`a` succeeded");
}

#[test]
fn a_tolerated_failure_is_tried_again_and_what_it_led_to_is_kept() {
    let text = "steps:
          - {name: bad, command: x}
          - {name: rescue, command: x, depends: [{step: bad, on: failure}]}
          - {name: next, command: x, depends: bad}
          - {name: last, command: x, depends: [rescue, next]}";
    let first = Sim::of(text).play("bad", Script::exits(&[1])).run();
    assert_eq!(first.states(), ["failed_continue", "succeeded", "skipped", "succeeded"]);
    let second = resumed(workflow(text), &past_of(&first)).run();
    assert_eq!(second.states(), ["succeeded", "kept", "succeeded", "kept"]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_resumed_run_repeats_no_success_and_runs_all_that_is_left(
        case in case(&OnFailure::ALL),
        at in 0_u64..100,
    ) {
        let first = case.sim().at(at, Event::Stop(Cause::Signal(SIGINT))).run();
        let fates = fates(&case.workflow(), &RESUME, Some(&past_of(&first)));
        let mut second = Sim::with(case.workflow(), &fates, 0);
        for (at, spec) in case.steps.iter().enumerate() {
            second = second.play_at(StepIx::new(at), spec.script());
        }
        let second = second.run();
        for at in 0..case.steps.len() {
            let step = StepIx::new(at);
            let succeeded = first.flow.state(step) == State::Succeeded;
            prop_assert_eq!(second.flow.state(step) == State::Kept, succeeded, "step {}", at);
            let started = second.notes().any(|note| note.step == Some(step));
            prop_assert!(!(succeeded && started), "step {} is not touched again", at);
        }
    }
}
