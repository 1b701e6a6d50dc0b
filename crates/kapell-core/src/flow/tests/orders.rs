//! Every order in which running steps can end, one after the other: the outcome is the same.
//!
//! The original's first bug: a join behind a tolerated failure hung, or was skipped while another
//! parent still ran, depending on timing.

use std::collections::BTreeMap;

use super::driver::{Script, Sim};
use crate::flow::{Kind, State, Verdict};

/// Walks through all sequences of choices, like an odometer.
#[derive(Debug, Default)]
struct Choices {
    /// What was chosen, of how many.
    path: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.path.len() {
            self.path.push((0, of));
        }
        let (chosen, was_of) = self.path[self.at];
        assert_eq!(of, was_of, "the same choices lead to the same place");
        self.at += 1;
        chosen
    }

    /// Goes to the next sequence; false after the last.
    fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, of)) = self.path.pop() {
            if chosen + 1 < of {
                self.path.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

/// What a run came to: how every step ended and why, and how the run did.
#[derive(Debug, PartialEq)]
struct Outcome {
    states: Vec<&'static str>,
    reasons: BTreeMap<usize, String>,
    exit_code: u8,
}

fn outcome(run: &Sim) -> Outcome {
    let skipped = run.notes().filter(|note| note.kind == Kind::NodeSkipped);
    let reasons = skipped.filter_map(|note| Some((note.step?.index(), note.reason.clone()?)));
    Outcome {
        states: run.states(),
        reasons: reasons.collect(),
        exit_code: run.verdict.map_or(u8::MAX, Verdict::exit_code),
    }
}

/// Runs a workflow in every order. The named steps fail, always.
fn every_order(text: &str, failing: &[&str]) -> (Outcome, usize) {
    let mut choices = Choices::default();
    let mut first: Option<Outcome> = None;
    let mut orders = 0;
    loop {
        let sim =
            failing.iter().fold(Sim::of(text), |sim, name| sim.play(name, Script::exits(&[1])));
        let run = sim.run_choosing(|of| choices.choose(of));
        orders += 1;
        let this = outcome(&run);
        match &first {
            Some(first) => assert_eq!(*first, this, "order {orders}: {:?}", choices.path),
            None => first = Some(this),
        }
        if !choices.next() {
            return (first.expect("at least one order"), orders);
        }
    }
}

#[test]
fn a_join_behind_a_tolerated_failure_runs_in_every_order() {
    let (outcome, orders) = every_order(
        "steps:
          - {name: bad, command: x, continue_on_error: true}
          - {name: good, command: x}
          - {name: slow, command: x}
          - {name: join, command: x, depends: [bad, good, slow]}",
        &["bad"],
    );
    assert_eq!(orders, 6, "three parents end in any order");
    assert_eq!(outcome.states, ["failed_continue", "succeeded", "succeeded", "succeeded"]);
    assert_eq!(outcome.exit_code, 0);
}

#[test]
fn a_join_behind_tolerated_failures_only_is_skipped_in_every_order() {
    let (outcome, _) = every_order(
        "steps:
          - {name: a, command: x, continue_on_error: true}
          - {name: b, command: x, continue_on_error: true}
          - {name: join, command: x, depends: [a, b]}
          - {name: beyond, command: x, depends: join}
          - {name: other, command: x}",
        &["a", "b"],
    );
    let want = ["failed_continue", "failed_continue", "skipped", "skipped", "succeeded"];
    assert_eq!(outcome.states, want);
    assert_eq!(outcome.reasons[&2], "`a` failed, `b` failed");
    assert_eq!(outcome.reasons[&3], "`join` was skipped");
}

#[test]
fn a_join_that_requires_all_is_skipped_in_every_order() {
    let (outcome, _) = every_order(
        "steps:
          - {name: bad, command: x, continue_on_error: true}
          - {name: good, command: x}
          - {name: slow, command: x}
          - {name: join, command: x, depends: [bad, good, slow], requires: all}
          - {name: cleanup, command: x, depends: [{step: join, on: done}]}",
        &["bad"],
    );
    let want = ["failed_continue", "succeeded", "succeeded", "skipped", "succeeded"];
    assert_eq!(outcome.states, want);
    assert_eq!(outcome.reasons[&3], "`bad` failed");
}

#[test]
fn a_diamond_with_a_tolerated_failure_ends_the_same_in_every_order() {
    let (outcome, orders) = every_order(
        "steps:
          - {name: top, command: x}
          - {name: left, command: x, depends: top, continue_on_error: true}
          - {name: right, command: x, depends: top}
          - {name: below-left, command: x, depends: left}
          - {name: below-right, command: x, depends: right}
          - {name: bottom, command: x, depends: [below-left, below-right]}
          - {name: aside, command: x}",
        &["left"],
    );
    assert!(orders > 10, "{orders}");
    let want = [
        "succeeded",
        "failed_continue",
        "succeeded",
        "skipped",
        "succeeded",
        "succeeded",
        "succeeded",
    ];
    assert_eq!(outcome.states, want);
}

#[test]
fn conditional_dependencies_end_the_same_in_every_order() {
    let (outcome, _) = every_order(
        "steps:
          - {name: a, command: x}
          - {name: b, command: x}
          - {name: c, command: x, depends: [{step: a, on: failure}, {step: b, on: success}]}
          - {name: d, command: x, depends: [{step: a, on: failure}], requires: all}
          - {name: e, command: x, depends: [{step: d, on: skipped}, {step: b, on: failure}]}
          - {name: f, command: x, depends: [c, d, e], requires: all}",
        &["a"],
    );
    let want = ["failed_continue", "succeeded", "succeeded", "succeeded", "skipped", "skipped"];
    assert_eq!(outcome.states, want);
}

#[test]
fn what_depends_on_one_of_two_failures_names_the_same_one_in_every_order() {
    let (outcome, _) = every_order(
        "on_failure: continue
steps:
  - {name: good, command: x}
  - {name: one, command: x}
  - {name: two, command: x}
  - {name: join, command: x, depends: [good, one, two]}
  - {name: beyond, command: x, depends: [join, good]}
  - {name: free, command: x, depends: good}
  - {name: report, command: x, depends: [{step: beyond, on: skipped}]}",
        &["one", "two"],
    );
    let want = ["succeeded", "failed", "failed", "skipped", "skipped", "succeeded", "succeeded"];
    assert_eq!(outcome.states, want);
    assert_eq!(outcome.reasons[&3], "`one` failed");
    assert_eq!(outcome.reasons[&4], "`one` failed");
    assert_eq!(outcome.exit_code, 1);
}

#[test]
fn a_retried_parent_ends_the_same_in_every_order() {
    let text = "workers: 2
steps:
  - {name: flaky, command: x, retry_policy: {limit: 2}}
  - {name: bad, command: x, retry_policy: {limit: 1}, continue_on_error: true}
  - {name: good, command: x}
  - {name: join, command: x, depends: [flaky, bad, good]}";
    let mut choices = Choices::default();
    loop {
        let sim = Sim::of(text).play("flaky", Script::exits(&[1, 1, 0]));
        let run = sim.play("bad", Script::exits(&[1])).run_choosing(|of| choices.choose(of));
        let want = ["succeeded", "failed_continue", "succeeded", "succeeded"];
        assert_eq!(run.states(), want, "{:?}", choices.path);
        if !choices.next() {
            break;
        }
    }
}

#[test]
fn a_skipped_condition_and_a_failure_join_the_same_in_every_order() {
    let text = "
steps:
  - {name: off, command: x, when: 'false'}
  - {name: bad, command: x, continue_on_error: true}
  - {name: good, command: x, when: 'true'}
  - {name: any, command: x, depends: [off, bad, good]}
  - {name: none, command: x, depends: [off, bad]}
  - {name: last, command: x, depends: [any, none]}";
    let mut choices = Choices::default();
    let mut orders = 0;
    loop {
        let sim = Sim::of(text).play("off", Script::default().checks(&[(1, "")]));
        let run = sim.play("bad", Script::exits(&[1])).run_choosing(|of| choices.choose(of));
        orders += 1;
        let states = run.states();
        let want = ["skipped", "failed_continue", "succeeded", "succeeded", "skipped", "succeeded"];
        assert_eq!(states, want, "{:?}", choices.path);
        assert_eq!(run.state("any"), State::Succeeded);
        if !choices.next() {
            break;
        }
    }
    assert!(orders >= 12, "{orders}");
}
