//! Who changed what, as real processes note it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Site;
use super::site::ask;
use crate::bench::Bench;

/// All that `kapell audit` tells.
fn records(site: &Site, more: &[&str]) -> Vec<Value> {
    let told = site.kapell(&[&["audit", "-o", "json"], more].concat()).expect(0).stdout;
    told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What lies on the disk, whoever wrote it.
fn on_disk(site: &Site) -> String {
    let files = fs::read_dir(site.bench.path("state/audit")).expect("a directory");
    files.map(|it| fs::read_to_string(it.expect("an entry").path()).expect("text")).collect()
}

fn domain(name: &str) -> String {
    format!("/v1/domains/{name}")
}

#[test]
fn what_was_acknowledged_is_noted_though_the_host_is_killed_right_after() {
    let mut site = Site::up();
    for round in 0..5 {
        let name = format!("d{round}");
        site.ask("PUT", &domain(&name), None).expect(200);
        site.kill();
        assert!(on_disk(&site).contains(&format!(r#""domain":"{name}""#)), "{name}");
        site.start(&[]);
    }
    let all = records(&site, &[]);
    let all: Vec<_> = all.iter().filter(|it| it["op"] == "setDomain").collect();
    let names: Vec<_> =
        all.iter().map(|it| it["about"]["domain"].as_str().expect("text")).collect();
    assert_eq!(names, ["d0", "d1", "d2", "d3", "d4"]);
    for record in all {
        // Whoever was killed may not have come to say what came of it.
        let outcome = &record["outcome"];
        assert!(outcome.is_null() || outcome["status"] == 200, "{record}");
    }
}

#[test]
fn who_changed_what_is_told_to_whoever_may_know() {
    let site = Site::up();
    let create = ["token", "create", "--role", "reader", "--name", "ci"];
    let reader = site.kapell(&create).expect(0).stdout.trim().to_owned();
    ask(site.port, &reader, "PUT", &domain("a"), None).expect("an answer").expect(403);
    let env = json!([{"name": "PASSWORD", "value": "s3cret"}]);
    let task = json!({"task_guid": "t", "domain": "a", "action": {"run": {"path": "/bin/true", "env": env}}});
    site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    site.completed("t");
    let told = site.kapell(&["audit"]).expect(0).stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 3, "what the cell says is not told: {told}");
    assert!(lines[0].contains("201 createToken") && lines[0].contains("token_name=ci"), "{told}");
    assert!(lines[1].contains("403 forbidden setDomain domain=a by reader ci"), "{told}");
    assert!(lines[2].contains("201 createTask domain=a task_guid=t by operator"), "{told}");
    let disk = on_disk(&site);
    for secret in [reader.as_str(), "s3cret", &site.token()] {
        assert!(!disk.contains(secret), "{secret} in {disk}");
    }
    for entry in fs::read_dir(site.bench.path("state/audit")).expect("a directory") {
        let about = entry.expect("an entry").metadata().expect("a file");
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(records(&site, &["--since", "1h"]).len(), 3);
    assert_eq!(records(&site, &["--since", "2999-01-01T00:00:00Z"]).len(), 0);
    site.kapell(&["audit", "--since", "yesterday"]).expect(2).stderr_has("write a duration");
    let mut command = site.bench.kapell(&["audit"]);
    command.env("KAPELL_URL", site.url()).env("KAPELL_TOKEN", &reader);
    site.bench.run_command(command).expect(1).stderr_has("may not read who changed what");
    let mut following = site.begin(&["audit", "-f", "--since", "1h"]);
    following.until("createTask");
    site.ask("PUT", &domain("later"), None).expect(200);
    following.until("setDomain domain=later");
    following.signal(Signal::SIGINT);
    let told = following.finish().stdout;
    assert_eq!(told.lines().count(), 4, "each is told once: {told}");
}

#[test]
fn what_cannot_be_noted_is_refused_unless_nothing_is_to_be_noted() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("state")).expect("a directory");
    bench.write("state/audit", "not a directory");
    let mut site = Site::with(bench, &[]);
    let refused = site.ask("PUT", &domain("a"), None).expect(503);
    assert_eq!(refused.json()["code"], "audit_unavailable");
    assert_eq!(site.get("/v1/domains").as_array().expect("a list").len(), 0);
    site.end(Signal::SIGINT);
    site.bench.write("state/audit.yaml", "audit: off\n");
    let file = site.bench.path("state/audit.yaml");
    site.start(&["--config", file.to_str().expect("text")]);
    site.ask("PUT", &domain("a"), None).expect(200);
    site.kapell(&["audit"]).expect(1).stderr_has("audit: off");
}
