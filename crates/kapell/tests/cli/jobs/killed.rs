//! kill -9 of a host before and after everything that it waits for in the course of a run.

use serde_json::{Value, json};

use super::work::{BRIEF, FAILPOINT, Ledger, NOWHERE, POINTS, Where};
use crate::bench::{Bench, LIMIT, try_eventually};
use crate::platform::site::Site;
use crate::running::Running;

/// What a message of a run comes to besides: it is kept until it was taken or given up.
const OF_A_MESSAGE: [&str; 3] = ["post", "post-stored", "posted"];
/// What a host comes to that takes over a run under way.
const OF_AN_ADOPTION: [&str; 2] = ["find", "found"];
/// The first attempt fails, and nothing of it is over before a host has died that was to die with work under way.
const LASTING: &str = "sleep 1; exit $((KAPELL_ATTEMPT < 1))";

/// A host that ends at a point of a run, and the same host once more.
struct Play {
    site: Site,
    ledger: Ledger,
    place: Where,
}

impl Play {
    fn new(place: Where, point: &str, work: &str) -> Self {
        let site = Site::with(Bench::new().set(FAILPOINT, point), &[]);
        let ledger = Ledger::new(&site.traces());
        let mut job = ledger.job_of(place, work);
        if let Some(actions) = job["constraints"][0]["time_window"]["onMet"].as_array_mut() {
            // Nobody listens there: it is given up at once.
            let place = json!({"url": "http://127.0.0.1:9/", "max_attempts": 1});
            actions.push(json!({"webhook": place}));
        }
        site.ask("POST", "/v1/jobs", Some(&job));
        Self { site, ledger, place }
    }

    fn has_died(&mut self) -> bool {
        self.site.running.as_mut().is_none_or(Running::has_ended)
    }

    /// The host comes to its point.
    fn dies(&mut self, point: &str) {
        let died = try_eventually(LIMIT, || self.has_died().then_some(()));
        assert!(died.is_some(), "{point}: the host never came to this point: {:?}", self.runs());
    }

    /// The next one is to end there.
    fn is_to_die_at(&mut self, point: &str) {
        drop(self.site.running.take());
        let bench = std::mem::replace(&mut self.site.bench, Bench::new());
        self.site.bench = bench.set(FAILPOINT, point);
    }

    /// The same host, which nothing happens to any more.
    fn start_again(&mut self) {
        self.is_to_die_at(NOWHERE);
        self.site.start(&[]);
    }

    /// Has it run, by whoever is there to take the wish.
    fn trigger(&self) {
        let body = json!({"parameters": {}});
        let path = format!("/v1/jobs/{}/trigger", self.place.name());
        drop(self.site.try_ask("POST", &path, Some(&body)));
    }

    fn runs(&self) -> Vec<Value> {
        self.site.get("/v1/runs").as_array().cloned().unwrap_or_default()
    }

    /// The host dies at its point; the next one leads the run to its end.
    fn survives(mut self, point: &str) {
        self.trigger();
        self.dies(point);
        self.leads_on(point);
    }

    /// The host dies with work under way, the next one while it finds out what became of that, and one more leads on.
    fn survives_adoption(mut self, first: &str, then: &str) {
        self.trigger();
        self.dies(first);
        self.is_to_die_at(then);
        self.site.launch(&[]);
        self.dies(then);
        self.leads_on(&format!("{first}, {then}"));
    }

    fn leads_on(mut self, point: &str) {
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
        self.ledger.nothing_twice(point);
        assert_eq!(runs[0]["state"], "Completed", "{point}: {:?}", runs[0]);
    }
}

fn at_every_point(place: Where) {
    std::thread::scope(|scope| {
        let lines = [0, 1, 2, 3].map(|line| {
            scope.spawn(move || {
                for point in POINTS.iter().chain(&OF_A_MESSAGE).skip(line).step_by(4) {
                    Play::new(place, point, BRIEF).survives(point);
                }
                if let Some(point) = OF_AN_ADOPTION.get(line) {
                    for first in ["launch", "launched", "started-stored"] {
                        Play::new(place, first, LASTING).survives_adoption(first, point);
                    }
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
        let mut play = Play::new(Where::Host, point, BRIEF);
        let mut job = play.ledger.job(Where::Host);
        job["schedule"] = json!(["* * * * * *"]);
        job["catch_up"] = json!({"policy": "all", "window": "1h"});
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
        play.ledger.nothing_twice(point);
    }
}
