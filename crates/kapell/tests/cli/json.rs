//! The JSON logger: for programs.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use serde_json::{Map, Value, json};

use crate::bench::{Bench, Ran};
use crate::gate::Gate;

const FIELDS: [&str; 10] = [
    "ts",
    "event",
    "workflow",
    "run",
    "node",
    "attempt",
    "exit_code",
    "duration_ms",
    "reason",
    "error",
];

/// Every line as an object, with what differs from run to run checked and replaced.
fn events(ran: &Ran) -> Vec<Value> {
    let line = |line: &str| {
        let mut event: Map<String, Value> = serde_json::from_str(line).expect("one object a line");
        let unknown: Vec<_> = event.keys().filter(|key| !FIELDS.contains(&key.as_str())).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let ts = event.remove("ts").expect("every event has a time");
        let ts = ts.as_str().expect("times are text");
        assert_eq!((ts.len(), &ts[10..11], &ts[23..]), (24, "T", "Z"), "{ts}");
        if let Some(duration) = event.get_mut("duration_ms") {
            assert!(duration.is_u64(), "{duration}");
            *duration = json!(0);
        }
        if let Some(run) = event.get_mut("run") {
            assert!(run.as_str().is_some_and(|run| !run.is_empty()));
            *run = json!("RUN");
        }
        Value::Object(event)
    };
    ran.stdout.lines().map(line).collect()
}

const EVERYTHING: &str = r"
workers: 1
steps:
  - {name: shaky, command: exit 4, continue_on_error: true}
  - {name: child, command: echo x, depends: shaky}
  - {name: unmet, command: echo x, when: {predicate: echo a, expected: b}}
  - name: flaky
    command: test -f again || { touch again; exit 75; }
    retry_policy: {limit: 1}
  - {name: fatal, command: 'echo it broke >&2; exit 3', depends: flaky}
  - {name: last, command: echo x, depends: fatal}
";

#[test]
fn json_tells_everything_of_a_failed_run() {
    let bench = Bench::with(EVERYTHING);
    let ran = bench.run(&["process", "-l", "json", "flow.yaml"]).expect(1);
    let want = json!([
        {"event": "workflow_started", "workflow": "flow", "run": "RUN"},
        {"event": "node_started", "node": "shaky", "attempt": 0},
        {"event": "node_failed_continue", "node": "shaky", "attempt": 0, "exit_code": 4,
         "duration_ms": 0, "error": "exit status 4"},
        {"event": "node_skipped", "node": "child", "attempt": 0, "reason": "`shaky` failed"},
        {"event": "node_skipped", "node": "unmet", "attempt": 0,
         "reason": "condition not met: expected 'b', got 'a'"},
        {"event": "node_started", "node": "flaky", "attempt": 0},
        {"event": "node_retrying", "node": "flaky", "attempt": 0, "exit_code": 75,
         "duration_ms": 0, "reason": "attempt 2 of 2 in 0ms", "error": "exit status 75"},
        {"event": "node_started", "node": "flaky", "attempt": 1},
        {"event": "node_completed", "node": "flaky", "attempt": 1, "exit_code": 0,
         "duration_ms": 0},
        {"event": "node_started", "node": "fatal", "attempt": 0},
        {"event": "node_failed", "node": "fatal", "attempt": 0, "exit_code": 3,
         "duration_ms": 0, "error": "exit status 3"},
        {"event": "node_cancelled", "node": "last", "attempt": 0, "reason": "`fatal` failed"},
        {"event": "workflow_failed", "workflow": "flow", "run": "RUN", "duration_ms": 0,
         "error": "step `fatal` failed: exit status 3"},
    ]);
    assert_eq!(json!(events(&ran)), want);
    ran.stderr_has("✗ first failure: fatal: exit status 3\n  │ it broke\n");
}

#[test]
fn json_tells_everything_of_a_success() {
    let bench = Bench::with("name: n\nsteps: [{name: a, command: echo x}]\n");
    let ran = bench.run(&["process", "--logger=json", "flow.yaml"]).expect(0);
    let want = json!([
        {"event": "workflow_started", "workflow": "n", "run": "RUN"},
        {"event": "node_started", "node": "a", "attempt": 0},
        {"event": "node_completed", "node": "a", "attempt": 0, "exit_code": 0, "duration_ms": 0},
        {"event": "workflow_completed", "workflow": "n", "run": "RUN", "duration_ms": 0},
    ]);
    assert_eq!(json!(events(&ran)), want);
}

#[test]
fn json_reaches_all_ten_events() {
    let bench = Bench::with(EVERYTHING);
    let mut seen = BTreeSet::new();
    let mut take = |ran: &Ran| {
        seen.extend(events(ran).iter().map(|event| event["event"].as_str().unwrap().to_owned()));
    };
    take(&bench.run(&["process", "-l", "json", "flow.yaml"]).expect(1));
    bench.write("good.yaml", "steps: [{name: a, command: echo x}]\n");
    take(&bench.run(&["process", "-l", "json", "good.yaml"]).expect(0));
    let want = [
        "node_cancelled",
        "node_completed",
        "node_failed",
        "node_failed_continue",
        "node_retrying",
        "node_skipped",
        "node_started",
        "workflow_completed",
        "workflow_failed",
        "workflow_started",
    ];
    assert!(seen.iter().eq(want), "{seen:?}");
}

#[test]
fn json_of_an_interruption_names_the_signal() {
    let bench = Bench::with("steps: [{name: long, command: read _ < gate}]\n");
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "-l", "json", "flow.yaml"]);
    let _waiting = gate.reached();
    running.signal(Signal::SIGTERM);
    let ran = running.finish().expect(143);
    let want = json!([
        {"event": "workflow_started", "workflow": "flow", "run": "RUN"},
        {"event": "node_started", "node": "long", "attempt": 0},
        {"event": "node_cancelled", "node": "long", "attempt": 0, "duration_ms": 0,
         "reason": "stopped: interrupted by SIGTERM"},
        {"event": "workflow_failed", "workflow": "flow", "run": "RUN", "duration_ms": 0,
         "error": "interrupted by SIGTERM"},
    ]);
    assert_eq!(json!(events(&ran)), want);
}

#[test]
fn json_keeps_standard_output_to_itself() {
    let bench = Bench::with(
        "steps: [{name: a, command: 'echo \"{not json\"; printf x; echo y >&2', console: true}]\n",
    );
    let ran = bench.run(&["process", "-l", "json", "flow.yaml"]).expect(0);
    assert_eq!(events(&ran).len(), 4);
    ran.stderr_has("{not json\nx");
}

#[test]
fn json_survives_any_name_and_text() {
    let bench = Bench::with(
        r#"
name: "a \"b\" \\ ü"
steps:
  - {name: "st ep\"\\\u00e9", command: "exit 1", continue_on_error: true}
"#,
    );
    let ran = bench.run(&["process", "-l", "json", "flow.yaml"]).expect(0);
    let events = events(&ran);
    assert_eq!(events[0]["workflow"], "a \"b\" \\ ü");
    assert_eq!(events[1]["node"], "st ep\"\\é");
}

#[test]
fn none_is_silent() {
    for name in ["none", "noop"] {
        let bench = Bench::with("steps: [{name: a, command: 'echo x; exit 3', console: true}]\n");
        let ran = bench.run(&["process", "-l", name, "flow.yaml"]).expect(1);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
}
