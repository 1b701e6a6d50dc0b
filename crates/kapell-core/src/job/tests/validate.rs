use serde_json::{Value as Json, json};

use super::job;
use crate::job::definition::{Multiplier, Overlap};
use crate::job::faults::Fault;
use crate::job::validate::{LARGEST, job as faults};

fn told(more: Json) -> Vec<String> {
    faults(&job(more))
}

#[test]
fn an_ordinary_job_is_fine() {
    assert_eq!(told(json!({})), [""; 0]);
}

#[test]
fn what_no_file_can_say_is_refused_too() {
    let mut bad = job(json!({"retry": {"max_retries": 101, "jitter_percent": 200}}));
    bad.max_concurrent_runs = 0;
    bad.pause_after_failures = Some(0);
    bad.history.succeeded = 10_001;
    bad.history.skipped = 10_002;
    bad.retry.as_mut().unwrap().backoff_multiplier = Multiplier(f64::NAN);
    bad.actions = json!([]);
    bad.command = None;
    assert_eq!(
        faults(&bad),
        [
            "max_concurrent_runs: must be 1 to 10000, not 0",
            "pause_after_failures: must be 1 to 10000, not 0",
            "history.succeeded: must be 0 to 10000, not 10001",
            "history.skipped: must be 0 to 10000, not 10002",
            "retry.max_retries: must be 0 to 100, not 101",
            "retry.backoff_multiplier: must be a number from 1 to 1000, not NaN",
            "retry.jitter_percent: must be 0 to 100, not 200",
            "the job: must have exactly one of `command`, `task`, `workflow` and `kubernetes`",
            "actions: must be a mapping of at most 32 names, each with an action",
        ]
    );
    for (multiplier, shown) in [
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (0.0, "0"),
        (-2.0, "-2"),
        (0.999, "0.999"),
        (1e9, "1000000000"),
    ] {
        let mut bad = job(json!({"retry": {"max_retries": 1}}));
        bad.retry.as_mut().unwrap().backoff_multiplier = Multiplier(multiplier);
        let want =
            format!("retry.backoff_multiplier: must be a number from 1 to 1000, not {shown}");
        assert_eq!(faults(&bad)[0], want);
    }
}

#[test]
fn a_limit_beside_allow_is_refused() {
    let mut bad = job(json!({"max_concurrent_runs": 2, "overlap": "allow"}));
    let want =
        "overlap: `allow` is no limit, but `max_concurrent_runs` says 2; leave one of them out";
    assert_eq!(faults(&bad), [want]);
    bad.max_concurrent_runs = 1;
    bad.constraints = vec![json!({"maxConcurrentRuns": 1})];
    let want = "constraints[0]: `allow` is no limit, but `max_concurrent_runs` says 1; leave one of them out";
    assert_eq!(faults(&bad), [want]);
    bad.overlap = Overlap::Queue;
    assert_eq!(faults(&bad), [""; 0]);
}

#[test]
fn a_job_that_asks_how_the_run_before_ended_keeps_it() {
    let asks =
        |history: Json| job(json!({"constraints": ["requirePreviousSuccess"], "history": history}));
    let want = |field: &str| {
        format!(
            "{field}: must be at least 1 beside `requirePreviousSuccess`: the run before is asked for"
        )
    };
    let none = json!({"succeeded": 0, "failed": 0, "skipped": 0});
    let all = [want("history.succeeded"), want("history.failed")];
    assert_eq!(faults(&asks(none.clone())), all);
    assert_eq!(faults(&asks(json!({"failed": 0}))), all[1..]);
    assert_eq!(faults(&asks(json!({"succeeded": 1, "failed": 1, "skipped": 0}))), [""; 0]);
    assert_eq!(faults(&job(json!({"history": none}))), [""; 0]);
}

#[test]
fn a_constraint_that_says_otherwise_than_its_field_is_refused() {
    assert_eq!(
        told(json!({"constraints": [{"maxConcurrentRuns": 3}, {"maxAllowedRunTime": "1h"}]})),
        [
            "constraints[0]: says 3, but `max_concurrent_runs` says 1; leave one of them out",
            "constraints[1]: says 1h, but `max_allowed_run_time` says nothing; leave one of them out",
        ]
    );
}

#[test]
fn what_only_a_run_knows_is_refused_in_a_task() {
    let mut bad = job(json!({"task": {"action": {"run": {"path": ""}}}}));
    bad.command = None;
    let task = bad.task.as_mut().unwrap();
    task.0.task_guid = "x".into();
    task.0.domain = "a/b".into();
    task.0.completion_callback_url = "no url".into();
    assert_eq!(
        faults(&bad),
        [
            "task.action.run.path: must not be empty",
            "task.task_guid: must not be there: each run has its own",
            "task.domain: must not be there: each run has its own",
            "task.completion_callback_url: must not be there: each run has its own",
        ]
    );
}

#[test]
fn lists_and_texts_have_bounds() {
    let many = |count: usize| (0..count).map(|at| format!("t{at}")).collect::<Vec<_>>();
    let long = "x".repeat(1_001);
    for (more, want) in [
        (json!({"schedule": vec!["@daily"; 33]}), "schedule: must hold at most 32, not 33"),
        (json!({"tags": many(65)}), "tags: must hold at most 64, not 65"),
        (json!({"name": long}), "name: must be at most 200 bytes, not 1001"),
        (json!({"suspend_note": long}), "suspend_note: must be at most 1000 bytes, not 1001"),
        (
            json!({"command": {"command": "x", "args": many(1_001)}}),
            "command.args: must hold at most 1000, not 1001",
        ),
        (
            json!({"exclude": [{"dates": vec!["12-24"; 1_001]}]}),
            "exclude[0].dates: must hold at most 1000, not 1001",
        ),
        (
            json!({"parameters": [{"name": "A", "options": many(101)}]}),
            "parameters[0].options: must hold at most 100, not 101",
        ),
        (
            json!({"parameters": [{"name": "A", "about": long}]}),
            "parameters[0].about: must be at most 1000 bytes, not 1001",
        ),
        (
            json!({"group": {"name": "g", "limit": 10_001}}),
            "group.limit: must be 1 to 10000, not 10001",
        ),
    ] {
        assert_eq!(told(more), [want]);
    }
    let calendars = vec![json!({"weekdays": ["sat"]}); 33];
    assert_eq!(told(json!({"exclude": calendars})), ["exclude: must hold at most 32, not 33"]);
    let parameters: Vec<Json> = many(65).iter().map(|it| json!({"name": it})).collect();
    let want = "parameters: must hold at most 64, not 65";
    assert_eq!(told(json!({"parameters": parameters})), [want]);
}

#[test]
fn a_definition_is_at_most_64_kib() {
    let sized = |length: usize| job(json!({"command": {"command": "x".repeat(length)}}));
    let rest = serde_json::to_vec(&sized(1)).unwrap().len() - 1;
    assert_eq!(faults(&sized(LARGEST - rest)), [""; 0]);
    let want = "the whole job: must be at most 64 KiB, not 65537 bytes";
    assert_eq!(faults(&sized(LARGEST - rest + 1)), [want]);
}

#[test]
fn a_fault_is_a_text_with_its_field() {
    let mut fault =
        Fault { field: "schedule[0]".into(), within: None, wrong: "is bad".into(), right: None };
    assert_eq!(fault.to_string(), "schedule[0]: is bad");
    fault.right = Some("write it well".into());
    assert_eq!(fault.to_string(), "schedule[0]: is bad (write it well)");
}
