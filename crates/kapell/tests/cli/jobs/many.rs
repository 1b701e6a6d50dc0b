//! Very many jobs on one host.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::platform::site::Site;

const IN_A_FILE: usize = 5_000;

/// A file of jobs, a line each, as a program would write it.
fn file(jobs: impl Iterator<Item = Value>) -> String {
    jobs.map(|job| format!("---\n{job}\n")).collect()
}

/// One that is never due.
fn idle(number: usize) -> Value {
    json!({"kind": "job", "job_id": format!("job-{number}"), "schedule": "0 0 29 2 *", "command": "true"})
}

fn count(site: &Site, path: &str) -> usize {
    site.get(path).as_array().map_or(0, Vec::len)
}

#[test]
#[expect(clippy::print_stdout, reason = "how long it takes is part of the outcome")]
fn a_file_with_thousands_of_jobs_is_applied_whole_or_not_at_all() {
    let site = Site::up();
    let jobs = || (0..IN_A_FILE).map(idle);
    let wrong = |number: usize, job: Value| {
        file(jobs().enumerate().map(move |(at, it)| if at == number { job.clone() } else { it }))
    };
    site.bench.write("jobs.yaml", file(jobs()));

    // A line of cron that is wrong: seen here.
    let mut bad = idle(4_321);
    bad["schedule"] = json!("0 0 31 2 8");
    site.bench.write("bad.yaml", wrong(4_321, bad));
    let refused = site.kapell(&["job", "apply", "-f", "bad.yaml"]).expect(2);
    refused.stderr_has("bad.yaml:8644:").stderr_has("0 0 31 2 8");
    assert_eq!(count(&site, "/v1/jobs"), 0, "nothing was changed");
    // A workflow that only hosts could have: seen there.
    let mut bad = json!({"kind": "job", "job_id": "job-77"});
    bad["workflow"] = json!({"file": "/nowhere/flow.yaml"});
    site.bench.write("bad.yaml", wrong(77, bad));
    let refused = site.kapell(&["job", "apply", "-f", "bad.yaml"]);
    assert!(matches!(refused.code(), 1 | 2), "{}", refused.stderr);
    refused.stderr_has("/nowhere/flow.yaml");
    assert_eq!(count(&site, "/v1/jobs"), 0, "nothing was changed");

    let first = site.kapell(&["job", "apply", "-f", "jobs.yaml"]).expect(0);
    assert_eq!(first.stdout.lines().filter(|line| line.ends_with(" created")).count(), IN_A_FILE);
    assert_eq!(count(&site, "/v1/jobs"), IN_A_FILE);
    let again = site.kapell(&["job", "apply", "-f", "jobs.yaml"]).expect(0);
    assert_eq!(again.stdout.lines().filter(|line| line.ends_with(" unchanged")).count(), IN_A_FILE);
    let revisions: BTreeSet<u64> = site
        .get("/v1/jobs")
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|job| job["revision"].as_u64())
        .collect();
    assert_eq!(revisions, BTreeSet::from([1]), "nothing was changed");
    println!("{IN_A_FILE} jobs applied in {:?}, again in {:?}", first.took, again.took);
}
