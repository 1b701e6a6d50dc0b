//! `kapell exec`.

use std::fs::File;

use nix::sys::signal::Signal;

use super::Site;

#[test]
fn programs_run_in_instances_and_tasks() {
    let site = Site::up();
    site.desire("web", 1, "exec sleep 1000");
    site.all_run("web", 1);
    let script = "echo \"I am $INSTANCE_INDEX of $KAPELL_PROCESS\"; echo no >&2; exit 5";
    let ran = site.kapell(&["exec", "web/0", "--", "sh", "-c", script]).expect(5);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("I am 0 of exec\n", "no\n"));
    std::fs::write(site.bench.path("input"), "a\nb\n").expect("a file");
    let mut cat = site.bench.kapell(&["exec", "-i", "web/0", "--", "cat", "-n"]);
    cat.env("KAPELL_URL", site.url());
    cat.stdin(File::open(site.bench.path("input")).expect("a file"));
    assert_eq!(site.bench.run_command(cat).expect(0).stdout, "     1\ta\n     2\tb\n");
    site.kapell(&["exec", "web/0", "--", "sh", "-c", "kill -9 $$"]).expect(137);
    let none = site.kapell(&["exec", "web/0", "--", "no-such-program"]).expect(1);
    none.stderr_has("`no-such-program` was not found in PATH");
    site.kapell(&["exec", "web/7", "--", "true"]).expect(1).stderr_has("it runs on no cell now");
    site.kapell(&["exec", "web", "--", "true"]).expect(1).stderr_has("write web/0 or task/GUID");
    site.ask("POST", "/v1/tasks", Some(&site.task("job", "exec sleep 1000"))).expect(201);
    site.until("the task runs", || {
        let ran = site.kapell(&["exec", "task/job", "--", "echo", "here"]);
        (ran.stdout == "here\n").then_some(())
    });
}

#[test]
fn a_program_ends_with_whoever_wanted_it() {
    let site = Site::up();
    site.desire("web", 1, "exec sleep 1000");
    site.all_run("web", 1);
    let before = site.work().len();
    let script = "echo ready; exec sleep 1000";
    let mut running = site.begin(&["exec", "web/0", "--", "sh", "-c", script]);
    running.until("ready\n");
    assert_eq!(site.work().len(), before + 1);
    running.signal(Signal::SIGKILL);
    running.finish();
    site.until("it is gone", || (site.work().len() == before).then_some(()));
}
