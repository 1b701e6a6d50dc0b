//! `after: [X]` waits for X and everything that transitively depends on X.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{workflow, wrong};
use crate::workflow::after::unfold;
use crate::workflow::{Graph, On, StepIx, load};

/// What a step waits for, by name, sorted.
fn waits_for(text: &str, name: &str) -> Vec<String> {
    let workflow = workflow(text);
    let step = workflow.find(name).expect("a step of the file");
    let edges = workflow.graph.parents(step).iter();
    let mut names: Vec<_> = edges.map(|edge| workflow.step(edge.step).name.to_string()).collect();
    names.sort();
    names
}

const TREE: &str = "
steps:
  - {name: last, command: x, after: [x]}
  - {name: x, command: x}
  - {name: child, command: x, depends: x}
  - {name: grandchild, command: x, depends: [child, other]}
  - {name: other, command: x}
  - {name: on-failure, command: x, depends: [{step: child, on: failure}]}
";

#[test]
fn after_waits_for_a_step_and_all_that_depends_on_it() {
    assert_eq!(waits_for(TREE, "last"), ["child", "grandchild", "on-failure", "x"]);
    assert!(waits_for(TREE, "other").is_empty());
}

#[test]
fn after_takes_one_name_or_several() {
    let text = "steps:
          - {name: a}
          - {name: b}
          - {name: c, depends: b}
          - {name: one, after: a}
          - {name: both, after: [a, b]}";
    assert_eq!(waits_for(text, "one"), ["a"]);
    assert_eq!(waits_for(text, "both"), ["a", "b", "c"]);
}

#[test]
fn after_and_depends_go_together() {
    let text = "steps:
          - {name: a}
          - {name: b, depends: a}
          - {name: z}
          - {name: c, depends: z, after: a}";
    assert_eq!(waits_for(text, "c"), ["a", "b", "z"]);
}

#[test]
fn after_does_not_wait_for_what_depends_on_the_step_itself() {
    let text = "steps:
          - {name: x}
          - {name: child, depends: x}
          - {name: me, after: x}
          - {name: mine, depends: [me, x]}
          - {name: mine-too, depends: mine}";
    assert_eq!(waits_for(text, "me"), ["child", "x"]);
}

#[test]
fn two_that_come_after_the_same_do_not_wait_for_each_other() {
    let text = "steps:
          - {name: x}
          - {name: one, after: x}
          - {name: two, after: x}";
    assert_eq!(waits_for(text, "one"), ["x"]);
    assert_eq!(waits_for(text, "two"), ["x"]);
}

const HELP: &str = "(`→` reads \"waits for\"; remove one of these dependencies)";

#[test]
fn mutual_after_is_a_cycle() {
    let text = "steps:\n  - {name: a, after: b}\n  - {name: b, after: a}\n";
    let want = format!("2:22: steps wait for each other: a → b → a {HELP}");
    assert_eq!(wrong(text), [want]);
}

#[test]
fn a_cycle_through_what_after_stands_for_is_told_at_the_step() {
    let text = "steps:
  - {name: a, after: x}
  - {name: x, depends: a}
";
    let want = format!("2:22: steps wait for each other: a → x → a {HELP}");
    assert_eq!(wrong(text), [want]);
    // `b` waits for `child` too, because that depends on `x`.
    let text = "steps:
  - {name: x}
  - {name: child, depends: x, after: b}
  - {name: b, after: x}
";
    let want = format!("3:38: steps wait for each other: child → b → child {HELP}");
    assert_eq!(wrong(text), [want]);
}

#[test]
fn after_may_not_stand_for_tens_of_millions_of_dependencies() {
    let mut text = String::from("steps:\n  - {name: c0}\n");
    for at in 1..5_000 {
        text.push_str(&format!("  - {{name: c{at}, depends: c{}}}\n", at - 1));
    }
    for at in 0..4_100 {
        text.push_str(&format!("  - {{name: a{at}, after: c0}}\n"));
    }
    let problems = load(text.as_bytes(), "x").unwrap_err();
    assert!(problems[0].message.contains("more than 20000000 dependencies"), "{}", problems[0]);
}

#[test]
fn thousands_may_come_after_thousands() {
    let mut text = String::from("steps:\n  - {name: r}\n");
    for at in 0..2_000 {
        text.push_str(&format!("  - {{name: d{at}, depends: r}}\n"));
        text.push_str(&format!("  - {{name: a{at}, after: r}}\n"));
    }
    let workflow = workflow(&text);
    assert_eq!(workflow.graph.edge_count(), 2_000 + 2_000 * 2_001);
}

/// A chain of steps that all come after `z`, with `more` steps besides.
fn chain(more: &str) -> String {
    let mut text = format!("steps:\n  - {{name: z}}\n{more}  - {{name: s0, after: z}}\n");
    for at in 1..20_000 {
        text.push_str(&format!("  - {{name: s{at}, depends: s{}, after: z}}\n", at - 1));
    }
    text
}

#[test]
fn a_long_chain_after_one_step_loads_quickly() {
    let end = "  - {name: other, depends: z}\n  - {name: last, depends: [z, s19999]}\n";
    for (more, each) in [("", 1), (end, 2)] {
        let text = chain(more);
        let begin = Instant::now(); // tidy: allow(clock) measures the machine, decides nothing
        let workflow = workflow(&text);
        assert!(begin.elapsed() < Duration::from_secs(8), "took {:?}", begin.elapsed());
        let middle = workflow.find("s100").unwrap();
        assert_eq!(workflow.graph.parents(middle).len(), 1 + each);
    }
}

proptest! {
    /// Against the definition, step by step: batches must not mix up whose followers are whose.
    #[test]
    fn after_is_what_it_says(
        depends in vec((0_usize..150, 0_usize..150), 0..200),
        afters in vec((0_usize..150, 0_usize..150), 0..300),
    ) {
        let ix = StepIx::new;
        let mut edges: Vec<_> = depends
            .iter()
            .filter(|(a, b)| a != b)
            .map(|&(a, b)| (ix(a.max(b)), ix(a.min(b)), On::Success))
            .collect();
        let mut afters: Vec<_> = afters.iter().map(|&(a, b)| (ix(a), ix(b))).collect();
        afters.sort_unstable();
        let graph = Graph::build(150, &edges);
        let mut want = edges.clone();
        for &(step, parent) in &afters {
            let own = graph.descendants(step);
            want.push((step, parent, On::Success));
            let others = graph.descendants(parent).into_iter();
            let others = others.filter(|other| *other != step && !own.contains(other));
            want.extend(others.map(|other| (step, other, On::Success)));
        }
        unfold(150, &mut edges, &afters).unwrap();
        edges.sort_unstable();
        want.sort_unstable();
        prop_assert_eq!(edges, want);
    }
}
