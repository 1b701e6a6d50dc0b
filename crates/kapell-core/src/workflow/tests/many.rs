//! Many mistakes at once: all are told, in the order of the file, and quickly.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::{shown, wrong};
use crate::workflow::load;

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let text = "nmae: x
timeout: soon
workers: 0
handlers: {exit: {comand: x}}
steps:
  - name: a
    command: x
    script: y
  - name: b
    depends: [nobody, c]
    timeout: later
  - name: c
    depends: b
    retry_policy: {delay: 1s}
  - name: a
    continue_on_error: maybe
  - command: x
params: [{name: p}, {name: p}]
on_failure: panic
env: {1: x}
";
    let found = wrong(text);
    let places: Vec<&str> =
        found.iter().map(|problem| &problem[..problem.find(": ").unwrap()]).collect();
    let want = [
        "1:1", "2:10", "3:10", "4:19", "8:5", "10:15", "10:23", "11:14", "14:19", "15:11", "16:24",
        "17:5", "18:28", "19:13", "20:7",
    ];
    assert_eq!(places, want, "{found:#?}");
    assert!(found[6].contains("steps wait for each other: b → c → b"), "{found:#?}");
}

#[test]
fn a_million_mistakes_are_cut_to_what_a_person_reads() {
    let mut text = "steps: [{name: a}]\n".to_owned();
    for at in 0..500 {
        writeln!(text, "key{at}: x").unwrap();
    }
    let found = wrong(&text);
    assert_eq!(found.len(), 201);
    assert!(found[0].starts_with("2:1: unknown key `key0`"), "{}", found[0]);
    assert_eq!(found[200], "1:1: and 300 more problems");
}

fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let begin = Instant::now(); // tidy: allow(clock) measures the machine, decides nothing
    let result = work();
    assert!(begin.elapsed() < Duration::from_secs(10), "took {:?}", begin.elapsed());
    result
}

#[test]
fn ten_thousand_missing_dependencies_are_told_quickly() {
    let mut text = "steps:\n".to_owned();
    for at in 0..10_000 {
        writeln!(text, "  - {{name: n{at}, depends: [m{at}x]}}").unwrap();
    }
    let problems = quickly(|| load(text.as_bytes(), "stem")).unwrap_err();
    assert_eq!(problems.len(), 201);
    assert_eq!(shown(&problems)[200], "1:1: and 9800 more problems");
}

#[test]
fn ten_thousand_cycles_are_told_quickly() {
    let mut text = "steps:\n".to_owned();
    for at in 0..10_000 {
        writeln!(text, "  - {{name: a{at}, depends: b{at}}}").unwrap();
        writeln!(text, "  - {{name: b{at}, depends: a{at}}}").unwrap();
    }
    let problems = quickly(|| load(text.as_bytes(), "stem")).unwrap_err();
    assert_eq!(problems.len(), 201);
}

#[test]
fn ten_thousand_duplicates_are_told_quickly() {
    let mut text = "steps:\n".to_owned();
    for at in 0..20_000 {
        writeln!(text, "  - {{name: s{}}}", at % 10_000).unwrap();
    }
    let problems = quickly(|| load(text.as_bytes(), "stem")).unwrap_err();
    assert_eq!(problems.len(), 201);
}

#[test]
fn ten_thousand_steps_load_quickly() {
    let mut text = "steps:\n".to_owned();
    for at in 0..10_000_u32 {
        let parents: Vec<String> =
            (at.saturating_sub(10)..at).map(|parent| format!("s{parent}")).collect();
        let depends = parents.join(", ");
        writeln!(text, "  - {{name: s{at}, command: x, depends: [{depends}]}}").unwrap();
    }
    let loaded = quickly(|| load(text.as_bytes(), "stem")).unwrap();
    assert_eq!((loaded.workflow.len(), loaded.workflow.graph.edge_count()), (10_000, 99_945));
}
