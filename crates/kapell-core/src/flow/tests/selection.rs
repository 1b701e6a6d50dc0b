//! Steps picked by hand, and what a dry run says about it all.

use super::driver::{Script, Sim, workflow};
use crate::flow::{Fate, Past, PastStep, Selection, State, Verdict, decisions, fates};
use crate::workflow::{StepIx, Workflow};

const GRAPH: &str = "
steps:
  - {name: a, command: x}
  - {name: b, command: x, depends: a}
  - {name: c, command: x, depends: [b, side], requires: all}
  - {name: side, command: x}
  - {name: d, command: x, depends: c}
  - {name: e, command: x, depends: side}
";

const OUTSIDE: Fate = Fate::Counts(State::Outside);

fn pick(workflow: &Workflow, from: &[&str], only: &[&str]) -> Selection {
    let find = |names: &[&str]| names.iter().filter_map(|name| workflow.find(name)).collect();
    Selection { resume: false, from: find(from), only: find(only), on_cells: false }
}

fn past(states: &[(&str, State)]) -> Past {
    let step = |&(name, state): &(&str, State)| {
        (name.to_owned(), PastStep { state, outputs: Vec::new(), stdout: None, task: None })
    };
    Past { run: "r7".to_owned(), steps: states.iter().map(step).collect() }
}

fn picked(text: &str, from: &[&str], only: &[&str], past: Option<&Past>) -> Sim {
    let workflow = workflow(text);
    let fates = fates(&workflow, &pick(&workflow, from, only), past);
    Sim::with(workflow, &fates, 0)
}

#[test]
fn from_runs_a_step_and_everything_downstream() {
    let workflow = workflow(GRAPH);
    let got = fates(&workflow, &pick(&workflow, &["b"], &[]), None);
    assert_eq!(got, [OUTSIDE, Fate::Picked, Fate::Run, OUTSIDE, Fate::Run, OUTSIDE]);
    let run = Sim::with(workflow, &got, 0).run();
    assert_eq!(run.started(), ["b", "c", "d"], "what is left out does not hold them up");
    let want = ["outside", "succeeded", "succeeded", "outside", "succeeded", "outside"];
    assert_eq!(run.states(), want);
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
}

#[test]
fn only_runs_a_step_and_nothing_else() {
    let run = picked(GRAPH, &[], &["c"], None).run();
    assert_eq!(run.started(), ["c"]);
    let run = picked(GRAPH, &[], &["d", "e"], None).run();
    assert_eq!(run.started(), ["d", "e"]);
    assert_eq!(run.took(), 10, "neither waits for the other");
}

#[test]
fn what_is_left_out_counts_as_it_ended_in_the_past() {
    let workflow = workflow(GRAPH);
    let past = past(&[
        ("a", State::Succeeded),
        ("b", State::Succeeded),
        ("c", State::Failed),
        ("side", State::FailedContinue),
        ("e", State::Skipped),
        ("d", State::Cancelled),
    ]);
    let got = fates(&workflow, &pick(&workflow, &["d"], &[]), Some(&past));
    let kept = Fate::Counts(State::Kept);
    let soft = Fate::Counts(State::FailedContinue);
    assert_eq!(got, [kept, kept, OUTSIDE, soft, Fate::Picked, Fate::Counts(State::Skipped)]);
}

#[test]
fn a_picked_step_runs_whatever_became_of_what_it_depends_on() {
    for state in [State::Failed, State::FailedContinue, State::Skipped, State::Cancelled] {
        let past = past(&[("a", state), ("b", state), ("side", state)]);
        let run = picked(GRAPH, &["c"], &[], Some(&past)).run();
        assert_eq!(run.started(), ["c", "d"], "{state}");
    }
}

#[test]
fn what_follows_a_picked_step_is_decided_as_always() {
    let text = "
steps:
  - {name: a, command: x, continue_on_error: true}
  - {name: b, command: x, depends: a}
  - {name: other, command: x}
  - {name: c, command: x, depends: [b, other], requires: all}";
    let run = picked(text, &["a"], &[], None).play("a", Script::exits(&[1])).run();
    assert_eq!(run.states(), ["failed_continue", "skipped", "outside", "skipped"]);
    let skipped = past(&[("other", State::Skipped)]);
    let run = picked(text, &["a"], &[], Some(&skipped)).run();
    assert_eq!(run.states(), ["succeeded", "succeeded", "skipped", "skipped"]);
}

#[test]
fn picked_steps_keep_their_order() {
    let run = picked(GRAPH, &[], &["a", "b"], None).run();
    assert_eq!(run.started(), ["a", "b"]);
    assert_eq!(run.commands("b"), ["10 main"], "b depends on a, which runs too");
    let run = picked(GRAPH, &["d", "b"], &[], None).run();
    assert_eq!(run.started(), ["b", "c", "d"]);
    assert_eq!(run.took(), 30);
    let past = past(&[("a", State::Skipped), ("side", State::Skipped)]);
    let run = picked(GRAPH, &["b", "c"], &[], Some(&past)).run();
    assert_eq!(run.started(), ["b", "c", "d"], "for what is left out, the hand vouches");
}

#[test]
fn a_picked_step_does_not_run_on_a_picked_failure() {
    let text = format!("on_failure: continue{GRAPH}");
    let run = picked(&text, &[], &["a", "b", "e"], None).play("a", Script::exits(&[1])).run();
    assert_eq!(run.states()[..2], ["failed", "skipped"]);
    assert_eq!(run.state("e"), State::Succeeded);
    let run = picked(GRAPH, &[], &["a", "b"], None).play("a", Script::exits(&[1])).run();
    assert_eq!(run.states()[..2], ["failed", "cancelled"]);
}

#[test]
fn nobody_who_is_left_out_tolerates_a_failure() {
    let text = "steps: [{name: bad, command: x},
                 {name: rescue, command: x, depends: [{step: bad, on: failure}]}]";
    let run = picked(text, &[], &["bad"], None).play("bad", Script::exits(&[1])).run();
    assert_eq!(run.states(), ["failed", "outside"]);
    assert_eq!(run.verdict.map(Verdict::exit_code), Some(1));
    let run = picked(text, &["bad"], &[], None).play("bad", Script::exits(&[1])).run();
    assert_eq!(run.states(), ["failed_continue", "succeeded"]);
    let run = picked(text, &[], &["bad", "rescue"], None).play("bad", Script::exits(&[1])).run();
    assert_eq!(run.states(), ["failed_continue", "succeeded"]);
}

fn said(
    text: &str,
    selection: impl Fn(&Workflow) -> Selection,
    past: Option<&Past>,
) -> Vec<String> {
    let workflow = workflow(text);
    let fates = fates(&workflow, &selection(&workflow), past);
    decisions(&workflow, &fates, past)
        .into_iter()
        .map(|decision| {
            let name = &workflow.step(decision.step).name;
            format!("{} {name}: {}", if decision.runs { "+" } else { "-" }, decision.why)
        })
        .collect()
}

const EVERY_REASON: &str = "
steps:
  - {name: last, depends: [join, one, two, three, four], requires: all}
  - {name: one, command: x}
  - {name: two, command: x, depends: one}
  - {name: three, command: x, depends: [one, {step: two, on: failure}]}
  - {name: four, command: x, depends: two, when: {predicate: date +%u, expected: 7}}
  - {name: join, depends: [{step: four, on: done}]}
  - {name: guarded, command: x, when: 'test -f x'}
";

#[test]
fn a_dry_run_says_what_would_run_and_why() {
    let want = [
        "+ one: depends on nothing",
        "+ guarded: depends on nothing; when `test -f x`",
        "+ two: after one",
        "+ three: after one, two (failure), if any is satisfied",
        "+ four: after two; when `date +%u` gives '7'",
        "+ join: after four (done); joins, does nothing itself",
        "+ last: after join, one, two, three and 1 more, if all are satisfied; joins, does nothing \
         itself",
    ];
    assert_eq!(said(EVERY_REASON, |_| Selection::default(), None), want);
}

#[test]
fn a_dry_run_of_a_resume_says_what_is_kept() {
    let past = past(&[
        ("a", State::Succeeded),
        ("b", State::Failed),
        ("side", State::Kept),
        ("c", State::Cancelled),
        ("d", State::Skipped),
    ]);
    let resume = |_: &Workflow| Selection { resume: true, ..Selection::default() };
    let want = [
        "- a: kept: succeeded in run r7",
        "- side: kept: succeeded in run r7",
        "+ b: after a; failed last time",
        "+ e: after side; never ran last time",
        "+ c: after b, side, if all are satisfied; cancelled last time",
        "+ d: after c; skipped last time",
    ];
    assert_eq!(said(GRAPH, resume, Some(&past)), want);
}

#[test]
fn a_dry_run_of_a_selection_says_what_was_selected() {
    let past = past(&[("a", State::Succeeded), ("side", State::Skipped)]);
    let want = [
        "- a: kept: succeeded in run r7",
        "- side: not selected: skipped in run r7",
        "- b: not selected",
        "- e: not selected",
        "+ c: selected",
        "+ d: after c; never ran last time",
    ];
    assert_eq!(said(GRAPH, |workflow| pick(workflow, &["c"], &[]), Some(&past)), want);
    let only = |workflow: &Workflow| pick(workflow, &[], &["e"]);
    let runs: Vec<_> =
        said(GRAPH, only, None).into_iter().filter(|it| it.starts_with('+')).collect();
    assert_eq!(runs, ["+ e: selected"]);
}

#[test]
fn a_decision_names_its_step() {
    let workflow = workflow(GRAPH);
    let fates = fates(&workflow, &Selection::default(), None);
    let steps: Vec<StepIx> =
        decisions(&workflow, &fates, None).iter().map(|decision| decision.step).collect();
    assert_eq!(steps, workflow.graph.order());
}
