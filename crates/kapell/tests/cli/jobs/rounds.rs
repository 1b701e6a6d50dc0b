//! Rounds of kills at random points and at random times, with a restart or a failover after each.

use std::collections::BTreeMap;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::duo::{Duo, Machines};
use super::work::{NOWHERE, POINTS, Where};
use crate::bench::skip;
use crate::leadership::cluster::Kind;
use crate::platform::chance::Chance;

/// On what hosts are killed, a line each: they wait for leases most of the time, so lines go side by side.
const LINES: [(Kind, Machines); 4] = [
    (Kind::File, Machines::One),
    (Kind::Etcd, Machines::Two),
    (Kind::Postgres, Machines::One),
    (Kind::Etcd, Machines::One),
];
/// Points that only a cancelled run comes to.
const OF_STOPS: [&str; 2] = ["stop", "stopped"];
/// So often more is asked for, and so long is waited each time, until a host has come to its point; some never do.
const TRIES: usize = 10;
const PATIENCE: Duration = Duration::from_secs(1);

/// What happened, by name.
type Tally = BTreeMap<&'static str, u64>;

/// How many rounds in all; `KAPELL_JOBS_ROUNDS` says otherwise.
fn rounds() -> usize {
    let told = std::env::var("KAPELL_JOBS_ROUNDS").ok().and_then(|text| text.parse().ok());
    told.unwrap_or(LINES.len())
}

/// Some rounds on one store.
struct Line {
    duo: Duo,
    chance: Chance,
    tally: Tally,
}

impl Line {
    fn new(kind: Kind, machines: Machines, chance: Chance) -> Result<Self, String> {
        let mut duo = Duo::new(kind, machines, &[])?;
        // The first leads. Each round has a second one of its own.
        duo.fleet.hosts.remove(1).kill();
        for place in Where::ALL {
            // Some are over at once, some run for a while.
            let work = "test $KAPELL_ATTEMPT -gt 0 || exit 1; sleep $(($$ % 3)).2";
            duo.apply(&duo.ledger.job_of(place, work));
        }
        Ok(Self { duo, chance, tally: Tally::new() })
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn draw_point(&mut self) -> &'static str {
        let at = self.chance.index(POINTS.len() + OF_STOPS.len());
        POINTS.get(at).copied().unwrap_or_else(|| OF_STOPS[at - POINTS.len()])
    }

    /// Some runs of any kind.
    fn wish(&mut self) {
        for _ in 0..=self.chance.below(3) {
            let place = Where::ALL[self.chance.index(Where::ALL.len())];
            self.duo.trigger(place);
            self.chance.moment(Duration::from_millis(50));
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
        for _ in 0..TRIES {
            if self.duo.falls(PATIENCE) {
                self.count("kills at a point");
                return self.duo.bury().pop().unwrap_or_default();
            }
            self.wish();
            if OF_STOPS.contains(&point) {
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
        self.chance.moment(Duration::from_millis(1500));
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
        let about = format!("{about}, {point}");
        let runs = self.duo.all_is_well(&about);
        let odd = |run: &&Value| !matches!(run["state"].as_str(), Some("Completed" | "Cancelled"));
        let odd: Vec<&Value> = runs.iter().filter(odd).collect();
        assert!(odd.is_empty(), "{about}: {odd:?}");
    }
}

/// All rounds that fall to one line.
fn rounds_of(line: usize, seed: u64, rounds: usize) -> Result<Tally, String> {
    let (kind, machines) = LINES[line];
    let own = seed.wrapping_add(u64::try_from(line).unwrap_or_default());
    let mut it = Line::new(kind, machines, Chance::of(own))?;
    for round in (line..rounds).step_by(LINES.len()) {
        it.round(&format!("seed {seed}, round {round} on {kind:?}"));
        it.count("rounds");
    }
    let runs = u64::try_from(it.duo.runs().len()).unwrap_or_default();
    let launches = u64::try_from(it.duo.ledger.launches().len()).unwrap_or_default();
    it.tally.extend([("runs", runs), ("launches", launches)]);
    Ok(it.tally)
}

#[test]
#[expect(clippy::print_stdout, reason = "what happened is part of the outcome of a soak run")]
fn runs_outlive_kills_of_hosts_at_any_point_and_any_time() {
    let (seed, rounds) = (Chance::new().seed(), rounds());
    let done: Vec<Result<Tally, String>> = std::thread::scope(|scope| {
        let lines = 0..LINES.len();
        let lines: Vec<_> =
            lines.map(|line| scope.spawn(move || rounds_of(line, seed, rounds))).collect();
        let joined = lines.into_iter().map(ScopedJoinHandle::join);
        joined.map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut all = Tally::new();
    let mut missing = None;
    for done in done {
        match done {
            Ok(tally) => {
                for (what, count) in tally {
                    *all.entry(what).or_default() += count;
                }
            }
            Err(reason) => missing = Some(reason),
        }
    }
    let told: Vec<String> = all.iter().map(|(what, count)| format!("{what} {count}")).collect();
    println!("jobs: seed {seed}: {}", told.join(", "));
    if let Some(reason) = missing {
        let name = "jobs::rounds::runs_outlive_kills_of_hosts_at_any_point_and_any_time";
        skip(&format!("{name}, some of its stores"), &reason);
    }
}
