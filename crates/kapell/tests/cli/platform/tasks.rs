//! Work that is done once.

use serde_json::{Value, json};

use super::Site;
use super::site::WORK;

fn task(site: &Site, guid: &str, script: &str) -> Value {
    let lrp = site.lrp("x", 1, script);
    let mark = lrp["env"][0]["value"].clone();
    json!({
        "task_guid": guid,
        "domain": "test",
        "action": lrp["action"],
        "env": [{"name": WORK, "value": mark}],
    })
}

#[track_caller]
fn completed(site: &Site, guid: &str) -> Value {
    let path = format!("/v1/tasks/{guid}");
    site.until(&format!("{guid} to complete"), || {
        let task = site.ask("GET", &path, None);
        (task.status == 200).then(|| task.json()).filter(|task| task["state"] == "COMPLETED")
    })
}

#[test]
fn a_task_runs_completes_and_is_deleted() {
    let site = Site::up();
    let mut wanted = task(&site, "once", "echo 42 > answer; echo said");
    wanted["result_file"] = json!("answer");
    let made = site.ask("POST", "/v1/tasks", Some(&wanted)).expect(201).json();
    assert_eq!(made["state"], "PENDING");
    // Asked again, it is the same task.
    site.ask("POST", "/v1/tasks", Some(&wanted)).expect(200);
    let done = completed(&site, "once");
    assert_eq!((&done["failed"], &done["result"]), (&json!(false), &json!("42\n")), "{done}");
    assert!(done["first_completed_at"].as_i64().is_some());
    assert_eq!(site.kapell(&["logs", "task/once"]).expect(0).stdout, "said\n");
    site.ask("POST", "/v1/tasks/once/cancel", None).expect(409);
    site.ask("DELETE", "/v1/tasks/once", None).expect(204);
    site.ask("GET", "/v1/tasks/once", None).expect(404);
}

#[test]
fn a_task_that_fails_says_how() {
    let site = Site::up();
    site.ask("POST", "/v1/tasks", Some(&task(&site, "bad", "echo oh no >&2; exit 7"))).expect(201);
    let done = completed(&site, "bad");
    assert_eq!(done["failed"], true);
    assert_eq!(done["failure_reason"], "Exited with status 7: oh no");
    assert_eq!(done["exit_code"], 7);
}

#[test]
fn a_running_task_is_cancelled() {
    let site = Site::up();
    site.ask("POST", "/v1/tasks", Some(&task(&site, "long", "exec sleep 1000"))).expect(201);
    site.until("it to run", || (site.work().len() == 1).then_some(()));
    site.ask("DELETE", "/v1/tasks/long", None).expect(409);
    site.ask("POST", "/v1/tasks/long/cancel", None).expect(200);
    let done = completed(&site, "long");
    assert_eq!((&done["failed"], &done["failure_reason"]), (&json!(true), &json!("cancelled")));
    site.until("it to be gone", || site.work().is_empty().then_some(()));
}

#[test]
fn the_command_line_runs_a_task_and_ends_as_it_did() {
    let site = Site::up();
    let ran =
        site.kapell(&["task", "run", "--wait", "--", "sh", "-c", "echo out; echo err >&2; exit 5"]);
    let ran = ran.expect(5);
    assert_eq!(ran.stdout, "out\n");
    ran.stderr_has("err");
    let guid = site.kapell(&["task", "run", "--", "true"]).expect(0).stdout;
    completed(&site, guid.trim());
}

#[test]
fn a_task_runs_at_most_once_whenever_the_platform_is_killed() {
    let mut site = Site::up();
    let count = site.bench.path("count");
    std::fs::create_dir(&count).expect("a directory");
    set_open(&count);
    for round in 0..crate::leadership::rounds(12) {
        let guid = format!("task-{round}");
        // The task counts itself: each start makes a file of its own.
        let script = format!("mktemp {}/{guid}.XXXXXX >/dev/null; sleep 0.05", count.display());
        let wanted = task(&site, &guid, &script);
        let asked = site.try_ask("POST", "/v1/tasks", Some(&wanted));
        // Later and later in the life of a task: the platform dies between any two of its steps.
        crate::bench::pause(std::time::Duration::from_millis(round as u64 * 4));
        site.kill();
        site.start(&[]);
        let created = asked.is_some_and(|answer| answer.status == 201);
        if created {
            let done = completed(&site, &guid);
            let starts = starts(&count, &guid);
            assert!(starts <= 1, "{guid} ran {starts} times");
            let failed = done["failed"] == true;
            assert!(
                failed || starts == 1,
                "{guid} is said to have succeeded and never ran: {done}"
            );
        }
    }
}

fn starts(dir: &std::path::Path, guid: &str) -> usize {
    let names = std::fs::read_dir(dir).expect("a directory").flatten();
    let prefix = format!("{guid}.");
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
}

/// Work may run as another user.
fn set_open(dir: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for dir in dir.ancestors().take(2) {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).expect("our own");
    }
}
