//! `after: [X]` waits for X and everything that transitively depends on X.

use super::{workflow, wrong};

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
fn after_may_not_stand_for_millions_of_dependencies() {
    let mut text = String::from("steps:\n  - {name: c0}\n");
    for at in 1..3_000 {
        text.push_str(&format!("  - {{name: c{at}, depends: c{}}}\n", at - 1));
    }
    for at in 0..1_000 {
        text.push_str(&format!("  - {{name: a{at}, after: c0}}\n"));
    }
    let problems = crate::workflow::load(text.as_bytes(), "x").unwrap_err();
    assert!(problems[0].message.contains("more than 2000000 dependencies"), "{}", problems[0]);
}
