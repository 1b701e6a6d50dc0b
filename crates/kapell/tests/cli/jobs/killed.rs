//! kill -9 of a host before and after everything that it waits for in the course of a run.
//!
//! The work counts itself: a line a launch, with the number of its attempt.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::bench::{Bench, LIMIT, try_eventually};
use crate::platform::site::Site;
use crate::running::Running;

const FAILPOINT: &str = "KAPELL_FAILPOINT";

/// What is run, and where.
#[derive(Clone, Copy)]
enum Where {
    Host,
    Cell,
    Workflow,
}

/// A host that ends at a point of a run, and the same host once more.
struct Play {
    site: Site,
    counted: PathBuf,
}

impl Play {
    /// A job whose first attempt fails, and whose second does not; a constraint with an action comes before it and
    /// another one after it.
    fn new(place: Where, point: &str) -> Self {
        let bench = Bench::new();
        let counted = bench.path("counted");
        let site = Site::with(bench.set(FAILPOINT, point), &[]);
        let play = Self { site, counted };
        play.site.ask("POST", "/v1/jobs", Some(&play.job(place)));
        play
    }

    fn job(&self, place: Where) -> Value {
        let script = format!(
            "echo $KAPELL_RUN_ID $KAPELL_ATTEMPT >> {}; exit $((KAPELL_ATTEMPT < 1))",
            self.counted.display()
        );
        let work = match place {
            Where::Host => json!({"command": {"command": script}}),
            Where::Cell => {
                json!({"task": {"action": {"run": {"path": "sh", "args": ["-c", script]}}}})
            }
            Where::Workflow => {
                let step = json!({"name": "one", "command": script}).to_string();
                json!({"workflow": {"text": format!("steps: [{step}]")}})
            }
        };
        let mut job = json!({
            "job_id": "count",
            "retry": {"max_retries": 3, "initial_delay": "100ms"},
            "constraints": [
                {"time_window": {"config": {"start": "00:00", "end": "24:00"}, "onMet": [{"log": {"message": "goes"}}]}},
                {"maxExpectedRunTime": {"config": "1h"}},
            ],
        });
        if let (Some(all), Some(work)) = (job.as_object_mut(), work.as_object()) {
            all.extend(work.clone());
        }
        job
    }

    fn has_died(&mut self) -> bool {
        self.site.running.as_mut().is_none_or(Running::has_ended)
    }

    /// The same host, which nothing happens to any more.
    fn start_again(&mut self) {
        drop(self.site.running.take());
        let bench = std::mem::replace(&mut self.site.bench, Bench::new());
        self.site.bench = bench.set(FAILPOINT, "none");
        self.site.start(&[]);
    }

    /// Has it run, by whoever is there to take the wish.
    fn trigger(&self) {
        let body = json!({"parameters": {}});
        drop(self.site.try_ask("POST", "/v1/jobs/count/trigger", Some(&body)));
    }

    fn runs(&self) -> Vec<Value> {
        self.site.get("/v1/runs?job=count").as_array().cloned().unwrap_or_default()
    }

    /// How often each attempt of each run was launched, as the work itself has it.
    fn launches(&self) -> BTreeMap<String, usize> {
        let text = fs::read_to_string(&self.counted).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    }

    /// The host dies at its point; the next one leads the run to its end.
    fn survives(mut self, point: &str) {
        self.trigger();
        let died = try_eventually(LIMIT, || self.has_died().then_some(()));
        assert!(died.is_some(), "{point}: the host never came to this point: {:?}", self.runs());
        self.start_again();
        if self.runs().is_empty() {
            // The wish died with the host, unanswered.
            self.trigger();
        }
        let ended = try_eventually(LIMIT, || {
            let runs = self.runs();
            runs.iter().all(|run| run["completed_at"].is_number()).then_some(runs)
        });
        let runs = ended.unwrap_or_else(|| panic!("{point}: no end: {:?}", self.runs()));
        assert_eq!(runs.len(), 1, "{point}: {runs:?}");
        let launches = self.launches();
        assert!(
            launches.values().all(|count| *count == 1),
            "{point}: launched twice: {launches:?}"
        );
        assert_eq!(runs[0]["state"], "Completed", "{point}: {:?} {launches:?}", runs[0]);
    }
}

/// Everything that a run waits for, before and after.
const POINTS: [&str; 18] = [
    "check",
    "checked",
    "act",
    "acted",
    "intent",
    "intent-stored",
    "launch",
    "launched",
    "started",
    "started-stored",
    "check-post",
    "checked-post",
    "retry",
    "retry-stored",
    "ended",
    "ended-stored",
    "release",
    "released",
];

fn at_every_point(place: Where) {
    std::thread::scope(|scope| {
        let lines = [0, 1, 2, 3].map(|line| {
            scope.spawn(move || {
                for point in POINTS.iter().skip(line).step_by(4) {
                    Play::new(place, point).survives(point);
                }
            })
        });
        for line in lines {
            line.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

#[test]
fn a_run_on_the_host_outlives_a_kill_of_the_host_at_every_point() {
    at_every_point(Where::Host);
}

#[test]
fn a_run_on_a_cell_outlives_a_kill_of_the_host_at_every_point() {
    at_every_point(Where::Cell);
}

#[test]
fn a_workflow_outlives_a_kill_of_the_host_at_every_point() {
    at_every_point(Where::Workflow);
}

#[test]
fn every_moment_is_run_once_over_kills_of_the_host() {
    for point in ["advance:2", "advanced:2"] {
        let mut play = Play::new(Where::Host, point);
        let mut job = play.job(Where::Host);
        job["schedule"] = json!(["* * * * * *"]);
        job["catch_up"] = json!({"policy": "all", "window": "1h"});
        job["overlap"] = json!("allow");
        drop(play.site.try_ask("POST", "/v1/jobs", Some(&job)));
        let died = try_eventually(LIMIT, || play.has_died().then_some(()));
        assert!(died.is_some(), "{point}: the host never came to this point");
        play.start_again();
        let ended = try_eventually(LIMIT, || {
            let runs = play.runs();
            let done = |run: &&Value| run["completed_at"].is_number();
            (runs.iter().filter(done).count() >= 6).then_some(runs)
        });
        let runs = ended.unwrap_or_else(|| panic!("{point}: {:?}", play.runs()));
        let mut moments: Vec<i64> =
            runs.iter().filter_map(|run| run["scheduled_at"].as_i64()).collect();
        moments.sort_unstable();
        let steps: Vec<i64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| *step == 1000), "{point}: {moments:?}");
        let launches = play.launches();
        assert!(launches.values().all(|count| *count == 1), "{point}: {launches:?}");
    }
}
