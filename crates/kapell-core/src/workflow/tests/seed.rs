//! The examples of the seed and of the original's format, as they stand there.

use super::{options, workflow};
use crate::workflow::{Condition, Work};

#[test]
fn the_seeds_mapping_example_loads() {
    let workflow = workflow(
        r#"
name: "workflow_name"
env:
  KEY: "value"
params: ["p1", "p2"]
steps:
  - name: "step0"
    command: "cmd"
  - name: "step1"
    command: "cmd"
    depends: ["step0"]
"#,
    );
    assert_eq!(workflow.name, "workflow_name");
    assert_eq!(workflow.env, [("KEY".to_owned(), "value".to_owned())]);
    assert_eq!(workflow.params.positional, ["p1", "p2"]);
    assert_eq!(workflow.graph.edge_count(), 1);
}

#[test]
fn the_seeds_parameter_example_loads() {
    let workflow = workflow(
        r#"
params: ["input.csv", "output.json"]
steps:
  - name: "process"
    command: "python script.py --input $1 --output $2"
"#,
    );
    assert_eq!(workflow.params.positional, ["input.csv", "output.json"]);
    let want = Work::Shell("python script.py --input $1 --output $2".into());
    assert_eq!(workflow.steps[0].work, want);
}

#[test]
fn the_seeds_condition_examples_load() {
    let condition = |predicate: &str, expected: &str| Condition {
        predicate: predicate.to_owned(),
        expected: Some(expected.to_owned()),
    };
    let got = options(
        r#"
preconditions:
  - predicate: "test -f input.csv"
    expected: ""
  - predicate: "wc -l < input.csv"
    expected: "100"
when:
  predicate: "echo $ENVIRONMENT"
  expected: "production"
"#,
    );
    let want = [condition("test -f input.csv", ""), condition("wc -l < input.csv", "100")];
    assert_eq!(got.preconditions, want);
    assert_eq!(got.when, Some(condition("echo $ENVIRONMENT", "production")));
}

#[test]
fn the_seeds_retry_example_loads() {
    let got = options("retry_policy:\n  limit: 3  # Total attempts = 4 (initial + 3 retries)\n");
    assert_eq!(got.retry.limit, 3);
}

#[test]
fn every_key_of_the_original_loads() {
    let workflow = workflow(
        r"
name: original
env: {MODE: test}
params: [one, two]
steps:
  - name: fetch
    description: gets it
    command: curl
    args: [-O, $1]
    output: {stdout: PAGE, stderr: LOG}
    console: {stdout: true, stderr: false}
    retry_policy: {limit: 2}
  - name: count
    script: |
      echo $PARAM_1
      wc -l
    depends: [fetch]
    preconditions: [{predicate: echo true, expected: true}, {predicate: echo 1, expected: 1}]
    when: {predicate: echo x, expected: x}
    continue_on_error: true
  - name: all-done
    after: [fetch]
",
    );
    assert_eq!(workflow.len(), 3);
    assert_eq!(workflow.steps[2].work, Work::Join);
    let after: Vec<_> = workflow.graph.parents(workflow.find("all-done").unwrap()).to_vec();
    assert_eq!(after.len(), 2);
    let expected = workflow.steps[1].options.preconditions[0].expected.as_deref();
    assert_eq!(expected, Some("true"), "a YAML bool counts as text");
}
