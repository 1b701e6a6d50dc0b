//! Programs that make it hard.

use serde_json::{Value, json};

use super::Site;
use super::life::{STAYS, text};

#[test]
fn one_that_ignores_sigterm_is_killed_after_its_grace() {
    let site = Site::up();
    let mut lrp = site.lrp("deaf", 1, "trap '' TERM; echo up; while :; do sleep 0.1; done");
    lrp["stop_grace_ms"] = json!(300);
    site.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect(201);
    site.all_run("deaf", 1);
    site.ask("DELETE", "/v1/desired-lrps/deaf", None).expect(204);
    site.until("it to be gone", || {
        (site.instances("deaf").is_empty() && site.work().is_empty()).then_some(())
    });
}

#[test]
fn one_that_forks_leaves_nothing_behind() {
    let site = Site::up();
    site.desire("forks", 1, "setsid sleep 1000 & (sleep 1000 &) ; echo up; exec sleep 1000");
    site.all_run("forks", 1);
    site.until("three processes", || (site.work().len() == 3).then_some(()));
    site.ask("DELETE", "/v1/desired-lrps/forks", None).expect(204);
    site.until("all to be gone", || site.work().is_empty().then_some(()));
}

#[test]
fn a_daemon_that_leaves_its_program_behind_is_a_crash_and_ends_with_it() {
    let site = Site::up();
    site.desire("daemon", 1, "(setsid setsid sleep 1000 >/dev/null 2>&1 &); exit 0");
    let crashed = site.until("a crash", || {
        site.instances("daemon").pop().filter(|lrp| lrp["crash_count"].as_u64() >= Some(1))
    });
    assert!(text(&crashed, "crash_reason").contains("Exited with status 0"), "{crashed}");
    site.until("the daemon to be gone", || {
        let lrp = site.instances("daemon").pop()?;
        (lrp["state"] == "CRASHED" && site.work().is_empty()).then_some(())
    });
    site.explains("lrp/daemon/0", "Exited with status 0");
}

#[test]
fn a_gigabyte_of_output_is_taken_in_and_bounded() {
    let site = Site::up();
    site.desire(
        "loud",
        1,
        "head -c 1000000000 /dev/zero | tr '\\0' 'x'; echo; echo done; exec sleep 1000",
    );
    site.all_run("loud", 1);
    site.until("the end of it", || {
        let log = site.kapell(&["logs", "--tail", "1", "loud/0"]);
        (log.stdout.trim() == "done").then_some(())
    });
    let kept = size_of(&site.dir().join("cell/logs"));
    assert!(kept < 100 << 20, "{kept} bytes are kept");
    assert_eq!(site.instances("loud")[0]["state"], "RUNNING");
}

fn size_of(path: &std::path::Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => size_of(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[test]
fn output_that_is_no_text_comes_back_byte_for_byte() {
    let site = Site::up();
    site.desire("raw", 1, "printf 'a\\377\\376\\000b\\n'; exec sleep 1000");
    site.all_run("raw", 1);
    let mut curl = site.bench.command("curl");
    let header = format!("Authorization: Bearer {}", site.token());
    curl.args(["-s", "-H", &header, &format!("{}/v1/logs/lrp/raw/0", site.url())]);
    site.until("the bytes", || {
        let again = std::process::Command::new("curl")
            .args(curl.get_args())
            .output()
            .expect("curl is there");
        (again.stdout == b"a\xff\xfe\0b\n").then_some(())
    });
}

/// Waits until an instance has crashed with this reason, told by `kapell explain` too.
#[track_caller]
fn crashes_with(site: &Site, lrp: &Value, reason: &str) {
    site.ask("POST", "/v1/desired-lrps", Some(lrp)).expect(201);
    let guid = text(lrp, "process_guid");
    let crashed = site.until(&format!("{guid} to crash"), || {
        site.instances(guid).pop().filter(|lrp| lrp["crash_count"].as_u64() >= Some(1))
    });
    assert!(text(&crashed, "crash_reason").contains(reason), "{crashed}");
    site.explains(&format!("lrp/{guid}/0"), reason);
}

#[test]
fn what_cannot_be_started_is_named_and_the_cell_is_none_the_worse() {
    let site = Site::up();
    let traces = site.traces();
    let plain = traces.join("plain");
    std::fs::write(&plain, "no program").expect("our own");
    let plain = plain.to_str().expect("text");
    let run = |guid: &str, run: Value| {
        let mut lrp = site.lrp(guid, 1, "");
        lrp["action"] = json!({ "run": run });
        lrp
    };
    let missing = run("missing", json!({"path": "/no/such/program"}));
    crashes_with(&site, &missing, "`/no/such/program` is not there");
    let unknown = run("unknown", json!({"path": "no-such-program"}));
    crashes_with(&site, &unknown, "`no-such-program` was not found in PATH");
    crashes_with(&site, &run("plain", json!({"path": plain})), "may not be executed");
    let nowhere = run("nowhere", json!({"path": "/bin/true", "dir": "/no/such/dir"}));
    crashes_with(&site, &nowhere, "directory `/no/such/dir` is not there");
    let mut task = site.task("task", "");
    task["action"] = json!({"run": {"path": "/no/such/program"}});
    site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    let done = site.completed("task");
    assert!(text(&done, "failure_reason").contains("`/no/such/program` is not there"), "{done}");
    site.explains("task/task", "`/no/such/program` is not there");
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
}

#[test]
fn a_port_that_is_taken_is_told_by_the_instance_itself() {
    let site = Site::up();
    let taken = site.port;
    let listen = "IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", LocalPort => $p, Listen => 1)";
    let script = format!("perl -MIO::Socket::INET -e '$p = {taken}; {listen} or die \"$!\"'");
    crashes_with(&site, &site.lrp("server", 1, &script), "Address already in use");
}

#[test]
fn a_port_of_its_own_is_handed_out_and_shown() {
    let site = Site::up();
    let listen =
        "IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", LocalPort => $ENV{PORT}, Listen => 5)";
    let serve =
        format!("exec perl -MIO::Socket::INET -e '$s = {listen} or die; 1 while $s->accept'");
    let mut lrp = site.lrp("web", 2, &serve);
    lrp["ports"] = json!([8080]);
    site.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect(201);
    site.all_run("web", 2);
    let endpoints = site.get("/v1/endpoints/web");
    let ports: Vec<u64> = endpoints
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["ports"][0]["host_port"].as_u64().expect("a port"))
        .collect();
    assert!(ports.len() == 2 && ports[0] != ports[1], "{endpoints}");
    for port in ports {
        let port = u16::try_from(port).expect("a port");
        site.until("it to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    }
}
