//! Files as people write them: everything that is accepted, everything that is refused.

mod after;
mod bad;
mod forms;
mod kubernetes;
mod looks;
mod many;
mod robust;
mod seed;
mod steps;

use super::{Loaded, Options, Workflow, load};
use crate::source::Problem;

fn loaded(text: &str) -> Loaded {
    match load(text.as_bytes(), "stem") {
        Ok(loaded) => loaded,
        Err(problems) => panic!("{}\n{text}", shown(&problems).join("\n")),
    }
}

fn workflow(text: &str) -> Workflow {
    loaded(text).workflow
}

/// The options of the only step that these lines describe.
fn options(lines: &str) -> Options {
    let workflow = workflow(&format!("steps:\n  - name: a\n{}", indented(lines)));
    (*workflow.steps[0].options).clone()
}

fn indented(lines: &str) -> String {
    lines.trim().lines().flat_map(|line| ["    ", line, "\n"]).collect()
}

/// Every problem as `line:column: message (help)`, in the order in which they are told.
fn shown(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// What is wrong with a bad file.
fn wrong(text: &str) -> Vec<String> {
    let problems = load(text.as_bytes(), "stem").expect_err("the file is bad");
    assert!(problems.iter().all(Problem::is_error), "{problems:?}");
    shown(&problems)
}
