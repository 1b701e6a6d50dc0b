//! What work must not get at, and what tests must not leave behind.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::sys::signal::Signal;
use serde_json::json;

use super::Site;
use super::fleet::Fleet;
use super::life::{STAYS, text};
use crate::bench::{Bench, skip};
use crate::census::running;
use crate::leadership::cluster::Kind;
use crate::running::send;

#[test]
fn a_result_file_that_is_not_the_tasks_own_is_not_read() {
    if !nix::unistd::geteuid().is_root() {
        let name = "platform::safety::a_result_file_that_is_not_the_tasks_own_is_not_read";
        skip(name, "needs root");
        return;
    }
    let site = Site::up();
    let mut task = site.task("thief", "true");
    task["action"]["run"]["dir"] = json!("/etc");
    task["result_file"] = json!("shadow");
    site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    let done = site.completed("thief");
    assert!(done["failed"] == true && done["result"].is_null(), "{done}");
    assert!(text(&done, "failure_reason").contains("it belongs to user 0"), "{done}");
}

#[test]
fn one_whose_shim_is_stopped_is_stopped_nonetheless() {
    let site = Site::up();
    let mut lrp = site.lrp("frozen", 1, STAYS);
    lrp["stop_grace_ms"] = json!(300);
    site.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect(201);
    site.all_run("frozen", 1);
    for shim in site.shims() {
        send(shim.pid, Signal::SIGSTOP);
    }
    site.ask("DELETE", "/v1/desired-lrps/frozen", None).expect(204);
    site.until("it to be gone", || site.instances("frozen").is_empty().then_some(()));
    site.until_dead();
}

#[test]
fn what_cleans_its_environment_and_leaves_its_session_ends_with_a_killed_shim() {
    if !nix::unistd::geteuid().is_root() {
        let name = "platform::safety::what_cleans_its_environment_and_leaves_its_session_ends_with_a_killed_shim";
        skip(name, "needs root");
        return;
    }
    let site = Site::up();
    // Its arguments are all that tells of it.
    let number = format!("{}.{}", 100_000 + std::process::id(), site.port);
    let script = format!("env -i /usr/bin/setsid /bin/sleep {number} & exec sleep 1000");
    let escaped = || running(|command| command.trim_end() == format!("/bin/sleep {number}"));
    site.desire("escapes", 1, &script);
    site.all_run("escapes", 1);
    let old = site.until("it to escape", || escaped().pop());
    for shim in site.shims() {
        send(shim.pid, Signal::SIGKILL);
    }
    site.until("it to be ended", || {
        escaped().iter().all(|process| process.pid != old.pid).then_some(())
    });
    site.ask("DELETE", "/v1/desired-lrps/escapes", None).expect(204);
    site.until("all to be gone", || {
        (site.shims().is_empty() && escaped().is_empty()).then_some(())
    });
}

#[test]
fn a_second_cell_with_the_same_id_ends_and_the_first_works_on() {
    let mut fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    fleet.desire("web", 2, STAYS);
    let before = super::fleet::guids(&fleet.all_run("web", 2));
    let bench = Bench::new().set("KAPELL_STATE_DIR", fleet.cluster.bench.path("state"));
    let url = format!("http://{}", fleet.address(0));
    let dir = bench.path("other");
    let other = ["cell", "--url", &url, "--id", "cell-0", "--dir", dir.to_str().expect("text")];
    let ran = bench.start(&other).finish();
    assert_eq!(ran.status.code(), Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("another cell with the id `cell-0` is present"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--id"), "{}", ran.stderr);
    assert_eq!(super::fleet::guids(&fleet.all_run("web", 2)), before);
    // A restarted agent of the same directory is no other.
    fleet.kill_cell(0);
    fleet.start_cell(0);
    assert_eq!(super::fleet::guids(&fleet.all_run("web", 2)), before);
}

#[test]
fn a_test_that_fails_leaves_nothing_behind() {
    for starts_again in [false, true] {
        let mut dir = String::new();
        let failed = catch_unwind(AssertUnwindSafe(|| {
            let mut site = Site::up();
            dir = site.dir().display().to_string();
            site.desire("web", 3, "setsid sleep 1000 & exec sleep 1000");
            site.all_run("web", 3);
            if starts_again {
                site.kill();
                // It ends at once, and this panics before it counts as running.
                site.start(&["--no-such-argument"]);
            }
            panic!("the test fails");
        }));
        assert!(failed.is_err());
        let left = running(|command| command.contains(&dir));
        assert!(left.is_empty(), "{left:?}");
    }
}
