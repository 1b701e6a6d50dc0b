//! How long a run takes when every step takes the same time T (RULINGS 25).

use std::fmt::Write as _;

use super::driver::{Script, Sim, T};
use crate::flow::Verdict;

#[test]
fn a_chain_of_four_takes_4t() {
    let run = Sim::of(
        "steps:
          - {name: a, command: x}
          - {name: b, command: x, depends: a}
          - {name: c, command: x, depends: b}
          - {name: d, command: x, depends: c}",
    )
    .run();
    assert_eq!(run.took(), 4 * T);
    assert_eq!(run.started(), ["a", "b", "c", "d"]);
}

#[test]
fn four_in_parallel_take_t() {
    let run = Sim::of(
        "steps: [{name: a, command: x}, {name: b, command: x}, {name: c, command: x},
                 {name: d, command: x}]",
    )
    .run();
    assert_eq!(run.took(), T);
}

#[test]
fn a_diamond_takes_3t() {
    let run = Sim::of(
        "steps:
          - {name: a, command: x}
          - {name: b, command: x, depends: a}
          - {name: c, command: x, depends: a}
          - {name: d, command: x, depends: [b, c]}",
    )
    .run();
    assert_eq!(run.took(), 3 * T);
}

#[test]
fn a_tree_of_1_10_100_with_ten_workers_takes_12t() {
    let mut text = "workers: 10\nsteps:\n  - {name: root, command: x}\n".to_owned();
    for limb in 0..10 {
        writeln!(text, "  - {{name: l{limb}, command: x, depends: root}}").unwrap();
        for leaf in 0..10 {
            writeln!(text, "  - {{name: l{limb}-{leaf}, command: x, depends: l{limb}}}").unwrap();
        }
    }
    let run = Sim::of(&text).run();
    assert_eq!(run.verdict, Some(Verdict::Succeeded));
    assert_eq!(run.started().len(), 111);
    assert_eq!(run.took(), 12 * T);
}

#[test]
fn the_higher_priority_starts_first_and_the_file_decides_a_tie() {
    let run = Sim::of(
        "workers: 1
steps:
  - {name: a, command: x}
  - {name: low, command: x, priority: -1}
  - {name: b, command: x}
  - {name: high, command: x, priority: 7}",
    )
    .run();
    assert_eq!(run.started(), ["high", "a", "b", "low"]);
}

#[test]
fn a_join_point_takes_no_time_and_keeps_the_order() {
    let run = Sim::of(
        "steps:
          - {name: a, command: x}
          - {name: b, command: x}
          - {name: both, depends: [a, b], requires: all}
          - {name: c, command: x, depends: both}",
    )
    .play("b", Script::lasts(3 * T))
    .run();
    assert_eq!(run.took(), 4 * T);
    assert_eq!(run.started(), ["a", "b", "both", "c"]);
    assert!(run.commands("both").is_empty(), "a join point executes nothing");
}
