//! Runs on a real Kubernetes cluster, led by a whole host.

mod bad;
pub(super) mod cluster;
mod cut;
mod killed;
mod leftovers;
mod limits;
mod rounds;
pub(super) mod scene;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::bench::{Bench, skip, try_eventually};
use crate::platform::site::Site;

const IMAGE: &str = "localhost/busybox:1.35";
const PATIENCE: Duration = Duration::from_secs(60);
const JOBS: &str = r#"
kind: job
job_id: well
kubernetes: {image: "localhost/busybox:1.35", command: [sh, -c], args: ["echo $GREETING from $KAPELL_JOB_ID"], env: {GREETING: hello}}
---
kind: job
job_id: badly
retry: {max_retries: 1, initial_delay: 1s}
kubernetes: {image: "localhost/busybox:1.35", command: [sh, -c, "exit 3"]}
---
kind: job
job_id: never
start_timeout: 5s
kubernetes: {image: "localhost:1/none:1"}
---
kind: job
job_id: slow
kubernetes:
  podSpec: |
    terminationGracePeriodSeconds: 1
    containers:
      - {name: main, image: "localhost/busybox:1.35", command: [sh, -c, "sleep 12; echo done"]}
"#;

/// A host that knows a cluster, with all jobs; without a cluster the test counts as skipped, not as passed.
fn site(test: &str) -> Option<Site> {
    let Some(kubeconfig) = std::env::var_os("KAPELL_TEST_KUBERNETES").map(PathBuf::from) else {
        skip(&format!("jobs::kubernetes::{test}"), "KAPELL_TEST_KUBERNETES names no kubeconfig");
        return None;
    };
    let bench = Bench::new();
    let clusters =
        format!("main: {{kubeconfig: '{}', namespaces: [default]}}\n", kubeconfig.display());
    bench.write("clusters.yaml", clusters);
    bench.write("jobs.yaml", JOBS);
    let file = bench.path("clusters.yaml");
    let site = Site::with(bench.set("KAPELL_KUBERNETES_CLUSTERS", file), &[]);
    site.kapell(&["job", "apply", "-f", "jobs.yaml"]).expect(0);
    Some(site)
}

/// The only run of a job, once it is so.
#[track_caller]
fn run(site: &Site, job: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut seen = Value::Null;
    let found = try_eventually(PATIENCE, || {
        let runs = site.try_ask("GET", &format!("/v1/runs?job={job}"), None)?.json();
        let listed = runs.as_array().and_then(|runs| runs.first().cloned())?;
        let path = format!("/v1/runs/{}", listed["run_id"].as_str()?);
        seen = site.try_ask("GET", &path, None)?.json();
        is_so(&seen).then(|| seen.clone())
    });
    found.unwrap_or_else(|| panic!("never so: {seen:#}"))
}

#[test]
fn a_run_on_kubernetes_has_its_outcome_its_log_and_its_figures() {
    let Some(site) = site("a_run_on_kubernetes_has_its_outcome_its_log_and_its_figures") else {
        return;
    };
    site.kapell(&["job", "trigger", "--wait", "well"]).expect(0);
    let well = run(&site, "well", |run| run["state"] == "Completed");
    let figures = &well["metrics"];
    assert_eq!(figures["pod_exit_code"], 0, "{well:#}");
    let calls = figures["kubernetes_api_calls"].as_u64().expect("a number");
    assert!((1..=4).contains(&calls), "{well:#}");
    assert!(figures["pod_start_latency_ms"].as_u64().expect("a number") > 0, "{well:#}");
    let id = well["run_id"].as_str().expect("an id");
    let heard = try_eventually(PATIENCE, || {
        let logs = site.kapell(&["run", "logs", id]).out();
        logs.contains("hello from well").then_some(())
    });
    assert!(heard.is_some(), "{}", site.kapell(&["run", "logs", id]).out());
    site.kapell(&["job", "trigger", "badly"]).expect(0);
    let badly = run(&site, "badly", |run| run["state"] == "Failed");
    assert_eq!(badly["reason"], "Exited with status 3", "{badly:#}");
    assert_eq!((&badly["exit_code"], &badly["attempt"]), (&3.into(), &1.into()), "{badly:#}");
    site.kapell(&["job", "trigger", "never"]).expect(0);
    let never = run(&site, "never", |run| run["state"] == "Failed");
    let reason = never["reason"].as_str().expect("text");
    assert!(
        reason.starts_with("it did not start within 5s (start_timeout): image cannot be pulled: "),
        "{reason}"
    );
}

#[test]
fn a_host_that_is_killed_and_comes_back_finds_its_job_on_kubernetes() {
    let Some(mut site) = site("a_host_that_is_killed_and_comes_back_finds_its_job_on_kubernetes")
    else {
        return;
    };
    site.kapell(&["job", "trigger", "slow"]).expect(0);
    run(&site, "slow", |run| run["state"] == "Running");
    site.kill();
    site.start(&[]);
    let slow = run(&site, "slow", |run| run["state"] == "Completed");
    // The first attempt is not written.
    assert_eq!((&slow["exit_code"], &slow["attempt"]), (&0.into(), &Value::Null), "{slow:#}");
    assert!(slow.to_string().contains("adopted"), "{slow:#}");
}
