//! Work that is done once.

use serde_json::json;

use super::Site;

#[test]
fn a_task_runs_completes_and_is_deleted() {
    let site = Site::up();
    let mut wanted = site.task("once", "echo 42 > answer; echo said");
    wanted["result_file"] = json!("answer");
    let made = site.ask("POST", "/v1/tasks", Some(&wanted)).expect(201).json();
    assert_eq!(made["state"], "PENDING");
    // Asked again, it is the same task.
    site.ask("POST", "/v1/tasks", Some(&wanted)).expect(200);
    let done = site.completed("once");
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
    site.ask("POST", "/v1/tasks", Some(&site.task("bad", "echo oh no >&2; exit 7"))).expect(201);
    let done = site.completed("bad");
    assert_eq!(done["failed"], true);
    assert_eq!(done["failure_reason"], "Exited with status 7: oh no");
    assert_eq!(done["exit_code"], 7);
}

#[test]
fn a_running_task_is_cancelled() {
    let site = Site::up();
    site.ask("POST", "/v1/tasks", Some(&site.task("long", "exec sleep 1000"))).expect(201);
    site.until("it to run", || (site.work().len() == 1).then_some(()));
    site.ask("DELETE", "/v1/tasks/long", None).expect(409);
    site.ask("POST", "/v1/tasks/long/cancel", None).expect(200);
    let done = site.completed("long");
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
    site.completed(guid.trim());
}
