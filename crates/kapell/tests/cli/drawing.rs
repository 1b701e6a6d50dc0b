//! `kapell workflow validate|graph|schema` and `--dry-run`.

use crate::bench::Bench;

const DIAMOND: &str = "
name: diamond
steps:
  - {name: get, command: touch ran}
  - {name: left, command: touch ran, depends: get}
  - {name: right, command: touch ran, depends: get, when: {predicate: touch ran, expected: ''}}
  - {name: rescue, command: touch ran, depends: [{step: right, on: failure}]}
  - {name: all, depends: [left, right, rescue], requires: all}
";

#[test]
fn validate_counts_steps_and_dependencies() {
    let bench = Bench::with(DIAMOND);
    bench.write("other.yaml", "steps: [{name: a, command: touch ran}]\n");
    let ran = bench.run(&["workflow", "validate", "flow.yaml", "other.yaml"]).expect(0);
    let want = "flow.yaml: ok, 5 steps, 6 dependencies\nother.yaml: ok, 1 step, 0 dependencies\n";
    assert_eq!((ran.out().as_str(), ran.err().as_str()), (want, ""));
    assert!(!bench.exists("ran") && !bench.exists("state"));
}

#[test]
fn validate_checks_every_file() {
    let bench = Bench::with(DIAMOND);
    bench.write("bad.yaml", "steps: []\n");
    let args = ["workflow", "validate", "bad.yaml", "flow.yaml", "bad.yaml"];
    let ran = bench.run(&args).expect(2);
    assert_eq!(ran.out(), "flow.yaml: ok, 5 steps, 6 dependencies\n");
    assert_eq!(ran.err().matches("error: `steps` is empty\n --> bad.yaml:1:8\n").count(), 2);
}

#[test]
fn graph_as_a_tree() {
    let bench = Bench::with(DIAMOND);
    let want = "\
diamond
get
├─ left
└─ right
   └─ rescue [on failure of right]
      └─ all (also after left, right)
";
    assert_eq!(bench.run(&["workflow", "graph", "flow.yaml"]).expect(0).out(), want);
    let ran = bench.run(&["workflow", "graph", "--format", "tree", "flow.yaml"]).expect(0);
    assert_eq!(ran.out(), want);
}

#[test]
fn graph_for_graphviz() {
    let bench = Bench::with(DIAMOND);
    let want = "\
digraph \"diamond\" {
  rankdir=LR;
  node [shape=box, style=rounded];
  \"get\";
  \"left\";
  \"right\";
  \"rescue\";
  \"all\";
  \"get\" -> \"left\";
  \"get\" -> \"right\";
  \"right\" -> \"rescue\" [label=\"failure\", style=dashed];
  \"left\" -> \"all\";
  \"right\" -> \"all\";
  \"rescue\" -> \"all\";
}
";
    let ran = bench.run(&["workflow", "graph", "--format", "dot", "flow.yaml"]).expect(0);
    assert_eq!(ran.out(), want);
}

#[test]
fn graph_for_mermaid() {
    let bench = Bench::with(DIAMOND);
    let want = "\
flowchart LR
  s0[\"get\"]
  s1[\"left\"]
  s2[\"right\"]
  s3[\"rescue\"]
  s4[\"all\"]
  s0 --> s1
  s0 --> s2
  s2 -. failure .-> s3
  s1 --> s4
  s2 --> s4
  s3 --> s4
";
    let ran = bench.run(&["workflow", "graph", "--format", "mermaid", "flow.yaml"]).expect(0);
    assert_eq!(ran.out(), want);
}

#[test]
fn schema_is_a_json_schema_of_the_file() {
    let bench = Bench::new();
    let ran = bench.run(&["workflow", "schema"]).expect(0);
    let schema: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(schema["$schema"].as_str().is_some_and(|at| at.contains("json-schema.org")));
    for key in "kind name description env params steps workers timeout on_failure handlers defaults"
        .split(' ')
    {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    let step = "name description command args script shell dir env depends after requires when \
                preconditions retry_policy timeout continue_on_error output console priority \
                executor";
    for key in step.split(' ') {
        assert!(schema["$defs"]["step"]["properties"][key].is_object(), "{key}");
    }
    assert_eq!(schema["required"], serde_json::json!(["steps"]));
}

#[test]
fn dry_run_says_what_would_run_and_why() {
    let bench = Bench::with(DIAMOND);
    let ran = bench.run(&["process", "--dry-run", "flow.yaml"]).expect(0);
    let want = "\
run   get     depends on nothing
run   left    after get
run   right   after get; when `touch ran` gives ''
run   rescue  after right (failure)
run   all     after left, right, rescue, if all are satisfied; joins, does nothing itself
5 of 5 steps would run
";
    assert_eq!((ran.out().as_str(), ran.err().as_str()), (want, ""));
    assert!(!bench.exists("ran") && !bench.exists("state"), "a dry run does nothing");
}

#[test]
fn dry_run_of_a_resume_says_what_is_kept() {
    let bench = Bench::with(
        "
workers: 1
steps:
  - {name: a, command: echo x}
  - {name: b, command: test -f ready, depends: a}
  - {name: c, command: echo x, depends: b}
  - {name: d, command: echo x, when: test -f ready}
",
    );
    bench.flow(&[]).expect(1);
    let ran = bench.run(&["process", "--dry-run", "--resume", "flow.yaml"]).expect(0);
    let want = "\
keep  a  kept: succeeded in run RUN
run   d  depends on nothing; when `test -f ready`; cancelled last time
run   b  after a; failed last time
run   c  after b; cancelled last time
3 of 4 steps would run
";
    assert_eq!(ran.out(), want);
    let ran = bench.run(&["process", "--dry-run", "--from", "b", "flow.yaml"]).expect(0);
    let want = "\
keep  a  kept: succeeded in run RUN
skip  d  not selected
run   b  selected
run   c  after b; cancelled last time
2 of 4 steps would run
";
    assert_eq!(ran.out(), want);
    let ran = bench.run(&["process", "--dry-run", "--only", "c", "flow.yaml"]).expect(0);
    ran.stdout_has("keep  a  kept").stdout_has("run   c  selected\n1 of 4 steps would run\n");
}
