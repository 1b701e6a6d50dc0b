//! `kapell task`.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Site;
use super::commands::parsed;

fn run<'a>(more: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut args = vec!["task", "run"];
    args.extend_from_slice(more);
    args.extend(["--", "sh", "-c", script]);
    args
}

/// The guid that stands on standard error.
fn guid(stderr: &str) -> String {
    let line = stderr.lines().find_map(|line| line.strip_prefix("task "));
    line.and_then(|rest| rest.split(' ').next()).expect("its guid").to_owned()
}

#[test]
fn waiting_ends_as_the_task_does() {
    let site = Site::up();
    for code in [0, 1, 2, 77, 255] {
        let script = format!("echo out; echo err >&2; exit {code}");
        let ran = site.kapell(&run(&["--wait"], &script)).expect(code);
        assert_eq!(ran.stdout, "out\n");
        assert_eq!(ran.stderr.lines().nth(1), Some("err"), "{}", ran.stderr);
        assert!(guid(&ran.stderr).starts_with("sh-"));
    }
    // As shells tell it.
    site.kapell(&run(&["-w"], "kill -9 $$")).expect(137);
    site.kapell(&run(&["-w"], "kill -TERM $$; sleep 9")).expect(143);
    let missing = site.kapell(&["task", "run", "--wait", "--", "/no/such/program"]);
    assert_ne!(missing.code(), 0);
    missing.stderr_has("/no/such/program");
    site.kapell(&["task", "run", "--wait"]).expect(2);
    site.kapell(&["task", "run", "--rm", "--", "true"]).expect(2);
}

#[test]
fn a_task_gets_what_the_command_line_says() {
    let site = Site::up();
    let more =
        ["--wait", "--name", "mine", "--domain", "d", "-e", "A=b c", "--result-file", "answer"];
    let ran = site.kapell(&run(&more, "printf '%s' \"$A\" > answer")).expect(0);
    assert_eq!((ran.stdout.as_str(), guid(&ran.stderr).as_str()), ("", "mine"));
    let shown = parsed(&site.kapell(&["task", "show", "mine", "-o", "json"]).expect(0));
    assert_eq!((&shown["result"], &shown["domain"]), (&json!("b c"), &json!("d")));
    site.kapell(&["task", "show", "mine"]).expect(0).stdout_has("COMPLETED").stdout_has("b c");
    // The same name is the same task, and another one is refused.
    site.kapell(&run(&["--name", "mine"], "other")).expect(1).stderr_has("differs in");
    site.kapell(&run(&["--wait", "--rm", "--name", "gone"], "true")).expect(0);
    site.kapell(&["task", "show", "gone"]).expect(1).stderr_has("there is no task `gone`");
    let large = site.kapell(&run(&["--wait"], "seq 200000")).expect(0);
    assert_eq!(
        (large.stdout.lines().count(), large.stdout.lines().last()),
        (200_000, Some("200000"))
    );
}

#[test]
fn an_interrupted_wait_cancels_the_task() {
    let site = Site::up();
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut running = site.begin(&run(&["--wait"], "echo up; exec sleep 1000"));
        running.until("up\n");
        running.signal(signal);
        let ran = running.finish().expect(code);
        ran.stderr_has("cancelled");
        let task = site.get(&format!("/v1/tasks/{}", guid(&ran.stderr)));
        assert_eq!(task["failure_reason"], "cancelled", "{task}");
    }
    site.until("the shims to be gone", || site.shims().is_empty().then_some(()));
}

#[test]
fn tasks_are_listed_cancelled_and_deleted() {
    let site = Site::up();
    assert_eq!(site.kapell(&["task", "list"]).expect(0).stdout, "no tasks\n");
    let long = site.kapell(&run(&["--name", "long"], "exec sleep 1000")).expect(0);
    assert_eq!(long.stdout, "long\n");
    site.kapell(&run(&["--wait", "--name", "short"], "echo no >&2; exit 3")).expect(3);
    let list = site.kapell(&["task", "list"]).expect(0);
    list.stdout_has("failed: Exited with status 3: no").stdout_has("long");
    let all = parsed(&site.kapell(&["task", "ls", "-o", "json"]).expect(0));
    assert_eq!(all.as_array().map(Vec::len), Some(2));
    site.kapell(&["task", "list", "-o", "yaml"]).expect(0).stdout_has("task_guid: long");
    let early = site.kapell(&["task", "delete", "long"]).expect(1);
    early.stderr_has(
        "error: only a COMPLETED task can be deleted: `long` is RUNNING on cell `local`",
    );
    site.kapell(&["task", "cancel", "long"]).expect(0).stderr_has("long cancelled");
    let late = site.kapell(&["task", "cancel", "long"]).expect(1);
    late.stderr_has(
        "error: task `long` cannot be cancelled: it is already COMPLETED on cell `local`",
    );
    let gone = site.kapell(&["task", "rm", "long", "short"]).expect(0);
    gone.stderr_has("long deleted").stderr_has("short deleted");
    site.kapell(&["task", "show", "long"]).expect(1).stderr_has("there is no task `long`");
    assert_eq!(site.get("/v1/tasks"), Value::Array(Vec::new()));
}

#[test]
fn waiting_goes_on_over_a_restart_of_the_platform() {
    let mut site = Site::up();
    let gate = site.bench.path("tmp/gate");
    std::fs::write(&gate, "").expect("a file");
    let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    for dir in [site.bench.dir().to_path_buf(), site.bench.path("tmp")] {
        std::fs::set_permissions(dir, open.clone()).expect("our own");
    }
    let script = format!(
        "echo begun; while [ -e {} ]; do sleep 0.02; done; echo ended; exit 6",
        gate.display()
    );
    let mut running = site.begin(&run(&["--wait"], &script));
    running.until("begun\n");
    site.kill();
    site.start(&[]);
    std::fs::remove_file(&gate).expect("it is there");
    assert_eq!(running.finish().expect(6).stdout, "begun\nended\n");
}

#[test]
fn a_program_that_cannot_be_started_ends_as_in_a_shell() {
    let site = Site::up();
    site.bench.write("plain", "no program");
    let plain = site.bench.path("plain");
    let plain = plain.to_str().expect("text");
    for (program, code) in [("no-such-program", 127), ("/no/such/program", 127), (plain, 126)] {
        let ran = site.kapell(&["task", "run", "--wait", "--rm", "--", program]).expect(code);
        ran.stderr_has("failed: `");
    }
}
