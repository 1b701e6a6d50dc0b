//! What becomes of instances on one machine.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Site;
use crate::bench::Bench;
use crate::running::send;

/// Prints that it runs, and goes on until it is told to stop.
pub(crate) const STAYS: &str = "echo up; exec sleep 1000";

fn text<'a>(lrp: &'a Value, field: &str) -> &'a str {
    lrp[field].as_str().unwrap_or_default()
}

#[test]
fn instances_run_scale_and_go() {
    let site = Site::up();
    site.desire("web", 3, STAYS);
    let all = site.all_run("web", 3);
    assert_eq!(site.work().len(), 3);
    let guids: std::collections::BTreeSet<&str> =
        all.iter().map(|lrp| text(lrp, "instance_guid")).collect();
    assert_eq!(guids.len(), 3);
    site.ask("PATCH", "/v1/desired-lrps/web", Some(&json!({"instances": 5}))).expect(200);
    site.all_run("web", 5);
    site.ask("PATCH", "/v1/desired-lrps/web", Some(&json!({"instances": 1}))).expect(200);
    let left = site.all_run("web", 1);
    assert_eq!(left[0]["index"], 0);
    assert_eq!(left[0]["instance_guid"], all[0]["instance_guid"], "index 0 never stopped");
    site.until("the others to be gone", || (site.work().len() == 1).then_some(()));
    site.ask("DELETE", "/v1/desired-lrps/web", None).expect(204);
    site.until("all to be gone", || {
        (site.instances("web").is_empty() && site.work().is_empty()).then_some(())
    });
    site.until("the shims to be gone", || site.shims().is_empty().then_some(()));
}

#[test]
fn a_crashed_instance_is_back_at_once() {
    let site = Site::up();
    site.desire("web", 1, STAYS);
    let before = site.all_run("web", 1).remove(0);
    let victim = site.work().remove(0);
    let killed = Instant::now();
    send(victim.pid, Signal::SIGKILL);
    let after = site.until("another instance", || {
        let lrp = site.instances("web").pop()?;
        let is_new = lrp["instance_guid"] != before["instance_guid"] && lrp["state"] == "RUNNING";
        is_new.then_some(lrp)
    });
    assert_eq!(after["crash_count"], 1);
    assert!(text(&after, "crash_reason").contains("signal 9"), "{after}");
    assert!(killed.elapsed() < Duration::from_secs(5), "took {:?}", killed.elapsed());
}

#[test]
fn a_crash_loop_backs_off_and_says_when_it_is_tried_again() {
    let bench = Bench::new().set("KAPELL_CRASH_WAIT", "1s");
    let site = Site::with(bench, &[]);
    site.desire("bad", 1, "echo no luck >&2; exit 3");
    let crashed = site
        .until("CRASHED", || site.instances("bad").pop().filter(|lrp| lrp["state"] == "CRASHED"));
    assert_eq!(crashed["crash_count"], 4);
    assert_eq!(text(&crashed, "crash_reason"), "Exited with status 3: no luck");
    let why = site.get("/v1/explain/lrp/bad/0");
    assert!(why["next_try_at"].as_i64().is_some(), "{why}");
    assert!(why.to_string().contains("Exited with status 3"), "{why}");
    // The wait after the fourth crash is twice the first one.
    site.until("the fifth crash", || {
        site.instances("bad").pop().filter(|lrp| lrp["crash_count"].as_u64() >= Some(5))
    });
    let since = crashed["since"].as_i64().expect("a time");
    let later =
        site.instances("bad").pop().expect("it is there")["since"].as_i64().expect("a time");
    assert!(later - since >= 2_000, "only {} ms", later - since);
}

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

#[test]
fn a_program_that_is_not_there_is_named() {
    let site = Site::up();
    let mut lrp = site.lrp("none", 1, "");
    lrp["action"] = json!({"run": {"path": "/no/such/program"}});
    site.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect(201);
    let crashed = site.until("a crash", || {
        site.instances("none").pop().filter(|lrp| lrp["crash_count"].as_u64() >= Some(1))
    });
    assert!(text(&crashed, "crash_reason").contains("/no/such/program"), "{crashed}");
    // The cell is none the worse for it.
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
}

#[test]
fn a_port_that_is_taken_is_told_by_the_instance_itself() {
    let site = Site::up();
    let taken = site.port;
    let listen = "IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", LocalPort => $p, Listen => 1)";
    let script = format!("perl -MIO::Socket::INET -e '$p = {taken}; {listen} or die \"$!\"'");
    site.desire("server", 1, &script);
    let crashed = site.until("a crash", || {
        site.instances("server").pop().filter(|lrp| lrp["crash_count"].as_u64() >= Some(1))
    });
    assert!(text(&crashed, "crash_reason").contains("Address already in use"), "{crashed}");
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
