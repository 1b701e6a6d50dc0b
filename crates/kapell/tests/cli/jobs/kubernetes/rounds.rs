//! Rounds of kills at random calls and at random times, with a restart or a failover after each.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use serde_json::json;

use super::cluster::Cluster;
use super::killed::{Course, POINTS};
use super::scene::job;
use crate::jobs::duo::Duo;
use crate::jobs::work::{NOWHERE, POINTS as OF_ALL};
use crate::platform::chance::Chance;

/// Hosts wait for pods most of the time, so lines go side by side.
const LINES: usize = 3;
/// Some are over at once, some run for a while; the first attempt of one fails.
const JOBS: [(&str, &str); 3] =
    [("short", "true"), ("long", "sleep 4"), ("again", "exit $((KAPELL_ATTEMPT < 1))")];
/// So often more is asked for, and so long is waited each time, until a host has come to its point; some never do.
const TRIES: usize = 6;
const PATIENCE: Duration = Duration::from_secs(3);

/// What happened, by name.
type Tally = BTreeMap<&'static str, u64>;

/// How many rounds in all; `KAPELL_KUBERNETES_ROUNDS` says otherwise.
fn rounds() -> usize {
    let told = std::env::var("KAPELL_KUBERNETES_ROUNDS").ok().and_then(|text| text.parse().ok());
    told.unwrap_or(1)
}

/// Some rounds on one store.
struct Line<'a> {
    cluster: &'a Cluster,
    duo: Duo,
    chance: Chance,
    tally: Tally,
    /// Runs of which nothing is left.
    settled: BTreeSet<String>,
}

impl<'a> Line<'a> {
    fn new(cluster: &'a Cluster, chance: Chance) -> Result<Self, String> {
        let mut duo = Duo::on_kubernetes(cluster.bench())?;
        // Each round has a second host of its own.
        duo.fleet.add_host();
        duo.fleet.hosts.remove(1).kill();
        for (id, script) in JOBS {
            // Attempts are lost with hosts, too.
            let retry = json!({"max_retries": 20, "initial_delay": "100ms", "max_delay": "1s", "on": ["launch"]});
            let more = json!({"overlap": "allow", "retry": retry, "history": {"succeeded": 10_000, "failed": 10_000}});
            duo.apply(&job(id, script, &more));
        }
        Ok(Self { cluster, duo, chance, tally: Tally::new(), settled: BTreeSet::new() })
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn draw_point(&mut self) -> &'static str {
        let at = self.chance.index(POINTS.len() + OF_ALL.len());
        POINTS.get(at).map_or_else(|| OF_ALL[at - POINTS.len()], |(point, _)| *point)
    }

    /// Some runs of any kind.
    fn wish(&mut self) {
        for _ in 0..=self.chance.below(2) {
            let (id, _) = JOBS[self.chance.index(JOBS.len())];
            self.duo.trigger_job(id);
            self.chance.moment(Duration::from_millis(100));
        }
    }

    fn cancel_one(&mut self) {
        let active = self.duo.fleet.try_ask("GET", "/v1/runs?active=true", None);
        let active = active.filter(|answer| answer.status == 200).map(|answer| answer.json());
        let active = active.and_then(|list| list.as_array().cloned()).unwrap_or_default();
        if active.is_empty() {
            return;
        }
        let run = active[self.chance.index(active.len())]["run_id"].clone();
        let path = format!("/v1/runs/{}/cancel", run.as_str().unwrap_or_default());
        let body = json!({"at_once": self.chance.below(2) == 0});
        drop(self.duo.fleet.try_ask("POST", &path, Some(&body)));
        self.count("cancels");
    }

    /// Waits until whoever leads has come to its point. Some points take more wishes, and some are never come to.
    fn dies_at(&mut self, point: &str) -> String {
        let cancels = POINTS.iter().any(|(name, course)| {
            *name == point && matches!(course, Course::Cancel | Course::CancelAtOnce)
        });
        for _ in 0..TRIES {
            if self.duo.falls(PATIENCE) {
                self.count("kills at a point");
                return self.duo.bury().pop().unwrap_or_default();
            }
            self.wish();
            if cancels {
                self.cancel_one();
            }
        }
        self.count("points not come to");
        self.duo.fleet.kill_leader()
    }

    /// A host that nothing happens to leads, and a second one that ends at a point stands by. Both die, one by one.
    fn round(&mut self, about: &str) {
        let point = self.draw_point();
        self.duo.dies_at(point);
        self.duo.fleet.start_hosts();
        self.wish();
        if self.chance.below(2) == 0 {
            self.cancel_one();
        }
        self.chance.moment(Duration::from_secs(5));
        self.duo.fleet.kill_leader();
        self.count("kills at any time");
        self.duo.dies_at(NOWHERE);
        let restarts = self.chance.below(2) == 0;
        if !restarts {
            self.duo.start_behind();
        }
        self.wish();
        let place = self.dies_at(point);
        if restarts {
            self.duo.fleet.start_host(&place);
        }
        self.count(if restarts { "restarts" } else { "failovers" });
        self.all_is_well(&format!("{about}, {point}"));
    }

    /// All runs have ended; each attempt had at most one pod, the last one of what was completed exactly one, and nothing is
    /// left.
    fn all_is_well(&mut self, about: &str) {
        let runs = self.duo.all_is_well(about);
        let pods = self.cluster.pods_of_all();
        for run in &runs {
            let id = run["run_id"].as_str().expect("an id");
            let had = pods.get(id).cloned().unwrap_or_default();
            assert!(had.values().all(|count| *count == 1), "{about}: {had:?} of {run}");
            let last = run["attempt"].as_u64().and_then(|it| it.try_into().ok()).unwrap_or(0);
            match run["state"].as_str() {
                Some("Completed") => assert!(had.contains_key(&last), "{about}: {had:?} of {run}"),
                Some("Cancelled") => {}
                Some(_) | None => panic!("{about}: {run}"),
            }
        }
        for id in runs.iter().filter_map(|run| run["run_id"].as_str()) {
            if self.settled.insert(id.to_owned()) {
                self.cluster.has_nothing_of(id);
            }
        }
    }
}

/// All rounds that fall to one line.
fn rounds_of(cluster: &Cluster, line: usize, seed: u64, rounds: usize) -> Result<Tally, String> {
    let own = seed.wrapping_add(u64::try_from(line).unwrap_or_default());
    let mut it = Line::new(cluster, Chance::of(own))?;
    for round in (line..rounds).step_by(LINES) {
        it.round(&format!("seed {seed}, round {round}"));
        it.count("rounds");
    }
    let pods = cluster.pods_of_all();
    let of_run = |run: &String| pods.get(run).map_or(0, |had| had.values().sum());
    let count = |number: usize| u64::try_from(number).unwrap_or_default();
    let pods = count(it.settled.iter().map(of_run).sum());
    it.tally.extend([("runs", count(it.settled.len())), ("pods", pods)]);
    Ok(it.tally)
}

#[test]
#[expect(clippy::print_stdout, reason = "what happened is part of the outcome of a soak run")]
fn runs_on_kubernetes_outlive_kills_of_hosts_at_any_call_and_any_time() {
    let name = "runs_on_kubernetes_outlive_kills_of_hosts_at_any_call_and_any_time";
    let Some(cluster) = Cluster::find(&format!("jobs::kubernetes::rounds::{name}")) else { return };
    let (seed, rounds) = (Chance::new().seed(), rounds());
    let done: Vec<Tally> = std::thread::scope(|scope| {
        let lines = 0..LINES.min(rounds);
        let cluster = &cluster;
        let lines: Vec<_> =
            lines.map(|line| scope.spawn(move || rounds_of(cluster, line, seed, rounds))).collect();
        let joined = lines.into_iter().map(ScopedJoinHandle::join);
        let joined = joined.map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.map(|it| it.expect("a store in a directory needs no server")).collect()
    });
    let mut all = Tally::new();
    for (what, count) in done.into_iter().flatten() {
        *all.entry(what).or_default() += count;
    }
    let told: Vec<String> = all.iter().map(|(what, count)| format!("{what} {count}")).collect();
    println!("kubernetes: seed {seed}: {}", told.join(", "));
}
