//! A host that knows the cluster, and runs of its jobs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::IMAGE;
use super::cluster::Cluster;
use crate::bench::{Bench, LIMIT, try_eventually};
use crate::leadership::proxy::Proxy;
use crate::platform::site::Site;

/// Runs until it is told to end, and does so at once then.
pub(in crate::jobs) const PATIENT: &str = "trap 'exit 143' TERM; sleep 600 & wait";

pub(in crate::jobs) struct Scene {
    pub(in crate::jobs) cluster: Cluster,
    pub(in crate::jobs) site: Site,
}

impl Scene {
    /// Without a cluster the test counts as skipped, not as passed.
    pub(in crate::jobs) fn new(test: &str) -> Option<Self> {
        let cluster = Cluster::find(test)?;
        let bench = cluster.bench();
        Some(Self::on(cluster, bench))
    }

    pub(in crate::jobs) fn on(cluster: Cluster, bench: Bench) -> Self {
        Self { cluster, site: Site::with(bench, &[]) }
    }

    /// The same with something between the host and the cluster.
    pub(in crate::jobs) fn behind_proxy(test: &str) -> Option<(Self, Proxy)> {
        let cluster = Cluster::find(test)?;
        let proxy = Proxy::to(&cluster.server());
        let bench = cluster.bench_with(|kubeconfig| proxy.instead_of_server(&kubeconfig));
        Some((Self::on(cluster, bench), proxy))
    }

    /// A job whose pod does this.
    pub(in crate::jobs) fn apply(&self, id: &str, script: &str) {
        self.apply_with(id, script, &json!({}));
    }

    pub(in crate::jobs) fn apply_with(&self, id: &str, script: &str, more: &Value) {
        self.site.ask("POST", "/v1/jobs", Some(&job(id, script, more))).expect(201);
    }

    /// Has a job run; the id of the run.
    pub(in crate::jobs) fn trigger(&self, job: &str) -> String {
        let path = format!("/v1/jobs/{job}/trigger");
        let run = self.site.ask("POST", &path, Some(&json!({"parameters": {}}))).expect(201).json();
        run["run_id"].as_str().expect("an id").to_owned()
    }

    /// The same, once its pod is at work.
    #[track_caller]
    pub(in crate::jobs) fn runs(&self, job: &str) -> String {
        let run = self.trigger(job);
        self.becomes(&run, |run| run["state"] == "Running");
        run
    }

    pub(in crate::jobs) fn cancel(&self, run: &str) {
        let path = format!("/v1/runs/{run}/cancel");
        let answer = self.site.ask("POST", &path, Some(&json!({"at_once": false})));
        assert!(matches!(answer.status, 200..=202), "{}", answer.body);
    }

    /// A run, once it is so.
    #[track_caller]
    pub(in crate::jobs) fn becomes(&self, run: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let (path, mut seen) = (format!("/v1/runs/{run}"), Value::Null);
        let found = try_eventually(LIMIT, || {
            let answer = self.site.try_ask("GET", &path, None)?;
            seen = answer.json();
            (answer.status == 200 && is_so(&seen)).then(|| seen.clone())
        });
        found.unwrap_or_else(|| panic!("never so: {seen:#}"))
    }

    #[track_caller]
    pub(in crate::jobs) fn ends(&self, run: &str) -> Value {
        self.becomes(run, |run| run["completed_at"].is_number())
    }

    /// Waits until a run has ended like this, in its first attempt; it had one pod, and nothing is left of it.
    #[track_caller]
    pub(in crate::jobs) fn ends_as(&self, run: &str, state: &str) -> Value {
        let ended = self.ends(run);
        let (is, attempt) = (&ended["state"], &ended["attempt"]);
        assert_eq!((is, attempt), (&json!(state), &Value::Null), "{ended:#}");
        assert_eq!(self.cluster.pods_of(run), BTreeMap::from([(0, 1)]), "{ended:#}");
        self.cluster.has_nothing_of(run);
        ended
    }

    /// All that the host has told so far.
    pub(in crate::jobs) fn told(&mut self) -> String {
        self.site.running.as_mut().expect("it runs").stderr_so_far()
    }
}

/// A job whose pod does this, with more keys.
pub(in crate::jobs) fn job(id: &str, script: &str, more: &Value) -> Value {
    let pod = json!({
        "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "main", "image": IMAGE, "command": ["sh", "-c", script]}],
    });
    let mut job = json!({"job_id": id, "kubernetes": {"pod_spec": pod}});
    if let (Some(all), Some(more)) = (job.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    job
}
