//! kill -9 of a host before and after each call to the cluster; what there was of pods the cluster itself has counted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::scene::{PATIENT, job};
use crate::bench::{Bench, LIMIT, try_eventually};
use crate::jobs::work::{FAILPOINT, NOWHERE};
use crate::platform::site::Site;
use crate::running::Running;

/// What brings a host to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// A run from its beginning to its end.
    Run,
    Cancel,
    CancelAtOnce,
    /// Another host was killed while a run was under way, and this one takes it over.
    TakeOver,
}

pub(super) const POINTS: [(&str, Course); 15] = [
    ("cluster-create", Course::Run),
    ("cluster-stop", Course::Cancel),
    ("cluster-list", Course::TakeOver),
    ("cluster-delete-pod", Course::CancelAtOnce),
    ("cluster-create-done", Course::Run),
    ("cluster-stop-done", Course::Cancel),
    ("cluster-list-done", Course::TakeOver),
    ("cluster-delete-pod-done", Course::CancelAtOnce),
    ("cluster-log", Course::Run),
    ("cluster-pods", Course::Cancel),
    ("cluster-seen", Course::TakeOver),
    ("cluster-log-done", Course::Run),
    ("cluster-pods-done", Course::Cancel),
    ("cluster-delete", Course::Run),
    ("cluster-delete-done", Course::Run),
];
/// So many hosts at once: they wait for pods most of the time.
const LINES: usize = 4;

impl Course {
    const fn script(self) -> &'static str {
        match self {
            Self::Run => "echo done",
            Self::Cancel | Self::CancelAtOnce => PATIENT,
            Self::TakeOver => "sleep 4",
        }
    }

    const fn outcome(self) -> &'static str {
        match self {
            Self::Run | Self::TakeOver => "Completed",
            Self::Cancel | Self::CancelAtOnce => "Cancelled",
        }
    }
}

struct Play<'a> {
    cluster: &'a Cluster,
    site: Site,
    point: &'static str,
}

impl<'a> Play<'a> {
    fn new(cluster: &'a Cluster, (point, course): (&'static str, Course)) -> Self {
        let first = if course == Course::TakeOver { NOWHERE } else { point };
        let site = Site::with(cluster.bench().set(FAILPOINT, first), &[]);
        let job = job(point, course.script(), &json!({}));
        site.ask("POST", "/v1/jobs", Some(&job)).expect(201);
        Self { cluster, site, point }
    }

    fn has_died(&mut self) -> bool {
        self.site.running.as_mut().is_none_or(Running::has_ended)
    }

    fn dies_at(&mut self, point: &str) {
        let bench = std::mem::replace(&mut self.site.bench, Bench::new());
        self.site.bench = bench.set(FAILPOINT, point);
    }

    fn run(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        super::run(&self.site, self.point, is_so)
    }

    /// Brings the host to its point.
    fn begin(&mut self, course: Course) {
        let trigger = format!("/v1/jobs/{}/trigger", self.point);
        drop(self.site.try_ask("POST", &trigger, Some(&json!({"parameters": {}}))));
        if course == Course::Run {
            return;
        }
        let run = self.run(|run| run["state"] == "Running");
        if course == Course::TakeOver {
            self.site.kill();
            self.dies_at(self.point);
            self.site.launch(&[]);
            return;
        }
        let path = format!("/v1/runs/{}/cancel", run["run_id"].as_str().expect("an id"));
        let body = json!({"at_once": course == Course::CancelAtOnce});
        drop(self.site.try_ask("POST", &path, Some(&body)));
    }

    /// The host dies at its point; the next one leads the run to its end.
    fn survives(mut self, course: Course) {
        self.begin(course);
        let point = self.point;
        let died = try_eventually(LIMIT, || self.has_died().then_some(()));
        assert!(died.is_some(), "{point}: the host never came to this point");
        drop(self.site.running.take());
        self.dies_at(NOWHERE);
        self.site.start(&[]);
        let run = self.run(|run| run["completed_at"].is_number());
        assert_eq!(run["state"], course.outcome(), "{point}: {run:#}");
        let id = run["run_id"].as_str().expect("an id");
        assert_eq!(self.cluster.pods_of(id), BTreeMap::from([(0, 1)]), "{point}: {run:#}");
        self.cluster.has_nothing_of(id);
    }
}

#[test]
fn a_run_on_kubernetes_outlives_a_kill_of_the_host_before_and_after_every_call() {
    let name = "a_run_on_kubernetes_outlives_a_kill_of_the_host_before_and_after_every_call";
    let Some(cluster) = Cluster::find(&format!("jobs::kubernetes::killed::{name}")) else { return };
    std::thread::scope(|scope| {
        let lines: [_; LINES] = std::array::from_fn(|line| {
            let cluster = &cluster;
            scope.spawn(move || {
                for play in POINTS.into_iter().skip(line).step_by(LINES) {
                    Play::new(cluster, play).survives(play.1);
                }
            })
        });
        for line in lines {
            line.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}
