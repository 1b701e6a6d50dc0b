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
    assert_eq!(found[200], "and 300 more problems");
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
    assert_eq!(shown(&problems)[200], "and 9800 more problems");
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
    assert_eq!(problems[200].left_out, 9_800);
}

#[test]
fn more_warnings_than_are_kept_do_not_refuse_a_file() {
    let mut text = "steps:\n  - {name: a, command: x, output: V}\n".to_owned();
    for at in 0..300 {
        writeln!(text, "  - {{name: b{at}, command: echo $V}}").unwrap();
    }
    let warnings = load(text.as_bytes(), "stem").unwrap().warnings;
    assert_eq!(warnings.len(), 201);
    assert_eq!(shown(&warnings)[200], "and 100 more problems");
    assert_eq!((warnings[200].left_out, warnings[200].is_error()), (100, false));
}

#[test]
fn forty_thousand_variables_are_read_quickly() {
    let mut env = String::new();
    for at in 0..40_000 {
        writeln!(env, "      V{at}: x").unwrap();
    }
    let text = format!("env:\n{env}steps:\n  - name: a\n    env:\n{env}");
    let loaded = quickly(|| load(text.as_bytes(), "stem")).unwrap();
    assert_eq!(loaded.workflow.env.len(), 40_000);
    assert_eq!(loaded.workflow.steps[0].options.env.len(), 40_000);
    let twice = "env: [A=1, B=2, A=3]\nsteps: [{name: a}]\n";
    assert_eq!(wrong(twice), ["1:17: variable `A` is set twice (remove one of the two)"]);
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
