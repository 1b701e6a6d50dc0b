//! What may be desired: all that is wrong with a request is told at once.

use serde_json::{Value, json};

use super::Site;
use super::api::{JSON, post, send};

/// Every place of `want` must be told, and nothing else.
#[track_caller]
fn tells(problems: &Value, want: &[&str]) {
    let told: Vec<&str> =
        problems.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let missing: Vec<_> =
        want.iter().filter(|text| !told.iter().any(|each| each.contains(**text))).collect();
    assert!(missing.is_empty(), "not told: {missing:#?}\nof {told:#?}");
    assert_eq!(told.len(), want.len(), "{told:#?}");
}

/// Each rule of the specification that a well-formed request can break, broken.
#[test]
pub(super) fn every_rule_that_a_process_breaks_is_told() {
    let site = Site::up();
    let nothing = |name: &str| json!({name: {"actions": []}});
    let lrp = json!({
        "process_guid": "with space", "domain": "", "instances": 100_001, "rootfs": "no-scheme",
        "memory_mb": 0, "disk_mb": 0, "max_pids": 0,
        "setup": {"timeout": {"timeout_ms": 0, "action": nothing("parallel")}},
        "action": {"serial": {"actions": [{"run": {"path": ""}}, nothing("serial"), nothing("codependent")]}},
        "monitor": {"try": {"action": {"run": {"path": "x", "env": [{"name": "A=B", "value": ""}]}}}},
        "env": [{"name": "", "value": "x"}],
        "check": {"tcp": {"port": 81}}, "readiness": {},
        "ports": [0, 80, 80],
        "placement_tags": [""],
        "annotation": "x".repeat(10 * 1024 + 1),
        "routes": {"big": "x".repeat(128 * 1024)},
    });
    let details = post(&site, "/v1/desired-lrps", &lrp).refused(422, "invalid");
    tells(
        &details["problems"],
        &[
            "process_guid: must be 1 to 200 letters, digits, `-` or `_`, not `with space`",
            "domain: must be 1 to 200 bytes",
            "instances: must be at most 100000",
            "rootfs: must be a URL with a scheme",
            "placement_tags: must not hold an empty tag",
            "env[0].name: must be non-empty",
            "setup.timeout.timeout_ms: must be more than 0",
            "setup.timeout.parallel.actions: must hold at least one action",
            "action.serial.actions[0].run.path: must not be empty",
            "action.serial.actions[1].serial.actions: must hold at least one action",
            "action.serial.actions[2].codependent.actions: must hold at least one action",
            "monitor.try.run.env[0].name: must be non-empty",
            "ports: must be 1 to 65535, not 0",
            "ports: must name each port once, not 80 again",
            "annotation: must be at most 10 KiB",
            "routes: must be at most 128 KiB",
            "check: cannot stand beside `monitor`",
            "check.tcp.port: must be one of `ports`, not 81",
            "readiness: must have exactly one of `http` and `tcp`",
        ],
    );
    assert_eq!(site.get("/v1/desired-lrps"), json!([]));
}

/// Numbers below zero, ports above all, what is needed and missing, what nobody knows.
#[test]
pub(super) fn what_does_not_fit_is_told_together_with_the_rules() {
    let site = Site::up();
    let body = r#"{
  "process_guid": "with space",
  "instances": -1, "memory_mb": -2, "disk_mb": -3, "max_pids": -4,
  "ports": [70000],
  "rootfs": "no-scheme",
  "env": [{"name": "", "value": "x"}],
  "setup": {"run": {}},
  "colour": "red"
}"#;
    let details = send(&site, "POST", "/v1/desired-lrps", &[JSON], body).refused(422, "invalid");
    tells(
        &details["problems"],
        &[
            "has no `domain`",
            "has no `action`",
            "process_guid: must be 1 to 200 letters",
            "`instances` must be a whole number, not `-1`; write a number from 0 to 4294967295 (line 3, column 16)",
            "`memory_mb` must be a whole number",
            "`disk_mb` must be a whole number",
            "`max_pids` must be a whole number",
            "a port must be a whole number, not `70000`; write a number from 1 to 65535",
            "rootfs: must be a URL with a scheme",
            "env[0].name: must be non-empty",
            "`run` has no `path`",
            "unknown key `colour`",
        ],
    );
}

#[test]
pub(super) fn every_rule_that_a_task_breaks_is_told() {
    let site = Site::up();
    let task = json!({
        "task_guid": "a/b", "domain": "a/b", "rootfs": ":", "env": [{"name": "=", "value": "\u{0}"}],
        "action": {"run": {"path": "", "user": "", "args": ["\u{0}"]}},
        "completion_callback_url": "ftp://host/", "result_file": "\u{0}",
        "annotation": "x".repeat(10 * 1024 + 1),
    });
    let details = post(&site, "/v1/tasks", &task).refused(422, "invalid");
    tells(
        &details["problems"],
        &[
            "task_guid: must be",
            "domain: must be",
            "rootfs: must be a URL",
            "env[0].name: must be non-empty",
            "env[0].value: must not contain a NUL byte",
            "action.run.path: must not be empty",
            "action.run.args[0]: must not contain a NUL byte",
            "action.run.user: must not be empty",
            "result_file: must not contain a NUL byte",
            "completion_callback_url: must be a URL",
            "annotation: must be at most 10 KiB",
        ],
    );
    send(&site, "PUT", "/v1/domains/a%2Fb", &[], "").refused(422, "invalid");
    assert_eq!(site.get("/v1/tasks"), json!([]));
}
