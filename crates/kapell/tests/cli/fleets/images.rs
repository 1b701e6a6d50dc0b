//! Work that brings its own root, run by runc.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use nix::sys::signal::Signal;
use serde_json::json;

use super::root::Root;
use crate::bench::{Bench, skip};
use crate::platform::Site;

/// A platform that may run such work, and a root with little in it.
fn site(name: &str) -> Option<(Site, String, Root)> {
    match Root::make() {
        Ok(root) => {
            let site = Site::with(Bench::new(), &root.arguments());
            Some((site, root.url(), root))
        }
        Err(reason) => {
            skip(&format!("fleets::images::{name}"), reason);
            None
        }
    }
}

#[test]
fn a_task_sees_the_root_it_brings_and_nothing_of_the_machine() {
    let Some((mut site, rootfs, _roots)) = site("task") else { return };
    let script = "id -u; cat /etc/hostname >/dev/null; ls /; ls /home 2>&1; echo $KAPELL_TASK_GUID";
    let task = json!({
        "task_guid": "inside", "domain": "test", "rootfs": rootfs, "memory_mb": 32, "max_pids": 20,
        "action": {"run": {"path": "/bin/sh", "args": ["-c", script]}},
    });
    site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    let done = site.completed("inside");
    assert_eq!(done["failed"], false, "{done}");
    let logs = site.kapell(&["logs", "task/inside"]).expect(0).stdout;
    assert!(logs.contains("inside") && logs.contains("No such file"), "{logs}");
    assert!(logs.lines().any(|line| line.trim_end() == "bin"), "{logs}");
    assert!(!logs.contains("root\n"), "only what the root has: {logs}");
    site.end(Signal::SIGINT);
}

#[test]
fn an_instance_listens_in_a_network_of_its_own_and_is_reached_and_checked() {
    let Some((mut site, rootfs, _roots)) = site("instance") else { return };
    let script = "echo well > /tmp/index.html; exec httpd -f -p 8080 -h /tmp";
    let lrp = json!({
        "process_guid": "web", "domain": "test", "rootfs": rootfs, "instances": 2, "ports": [8080],
        "memory_mb": 32, "check": {"http": {"port": 8080, "path": "/index.html"}},
        "action": {"run": {"path": "/bin/sh", "args": ["-c", script]}},
    });
    site.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect(201);
    for lrp in site.all_run("web", 2) {
        let port = lrp["net"]["ports"][0]["host_port"].as_u64().expect("a port");
        let port = u16::try_from(port).expect("a port");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.ends_with("well\n"), "{answer}");
    }
    // Killed, it would leave its ports led to containers that are gone.
    site.end(Signal::SIGINT);
}

#[test]
fn an_image_that_cannot_be_had_is_a_reason() {
    let Some((mut site, ..)) = site("missing") else { return };
    let task = json!({
        "task_guid": "none", "domain": "test", "rootfs": "dir:///etc",
        "action": {"run": {"path": "/bin/true"}},
    });
    site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    let done = site.completed("none");
    let reason = done["failure_reason"].as_str().unwrap_or_default();
    assert!(done["failed"] == true && reason.contains("/etc"), "{done}");
    site.end(Signal::SIGINT);
}
