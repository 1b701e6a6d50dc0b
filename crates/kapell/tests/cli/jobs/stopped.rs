//! What becomes of runs when `kapell up` is stopped by a person.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::bench::{LIMIT, try_eventually};
use crate::platform::site::Site;

fn runs(site: &Site, job: &str) -> Vec<Value> {
    site.get(&format!("/v1/runs?job={job}")).as_array().cloned().unwrap_or_default()
}

#[test]
fn an_interrupt_ends_the_work_of_runs_too_and_the_next_start_says_so() {
    let mut site = Site::up();
    let [alive, heeded] = ["alive", "heeded"].map(|name| site.bench.path(name));
    let script = format!(
        "trap 'echo x > {1}; exit 9' TERM; echo $$ > {0}; while :; do sleep 0.05; done",
        alive.display(),
        heeded.display()
    );
    let step = json!({"name": "one", "command": "sleep 1000"}).to_string();
    let jobs = [
        json!({"job_id": "command", "command": {"command": script}, "retry": {"max_retries": 0}}),
        json!({"job_id": "flow", "workflow": {"text": format!("steps: [{step}]")}, "retry": {"max_retries": 0}}),
    ];
    for job in &jobs {
        site.ask("POST", "/v1/jobs", Some(job)).expect(201);
        let id = job["job_id"].as_str().unwrap_or_default();
        site.ask("POST", &format!("/v1/jobs/{id}/trigger"), Some(&json!({}))).expect(201);
    }
    let runs_now = || {
        jobs.iter().all(|job| {
            let id = job["job_id"].as_str().unwrap_or_default();
            runs(&site, id).iter().any(|run| run["state"] == "Running")
        })
    };
    let both = try_eventually(LIMIT, || (runs_now() && alive.exists()).then_some(()));
    assert!(both.is_some(), "{:?}", runs(&site, "command"));
    site.end(Signal::SIGINT).expect(0);
    assert!(heeded.exists(), "it was asked to end before anything else was done to it");
    let pid = fs::read_to_string(&alive).unwrap_or_default();
    assert!(!fs::exists(format!("/proc/{}", pid.trim())).unwrap_or(true), "nothing is left of it");
    site.bench.all_gone_within(std::time::Duration::from_secs(1));
    site.start(&[]);
    for (job, reason) in [("command", "Exited with status 9"), ("flow", "interrupted")] {
        let ended = try_eventually(LIMIT, || {
            runs(&site, job).pop().filter(|run| run["completed_at"].is_number())
        });
        let run = ended.unwrap_or_else(|| panic!("{:?}", runs(&site, job)));
        assert_eq!(run["state"], "Failed", "{run}");
        assert!(run["reason"].as_str().unwrap_or_default().contains(reason), "{run}");
    }
}
