//! Two hosts on one store, one of which leads until it dies while the other stands by.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::work::{FAILPOINT, Ledger, NOWHERE, Where};
use crate::bench::{Bench, LIMIT, try_eventually};
use crate::leadership::cluster::Kind;
use crate::platform::fleet::Fleet;

/// What two hosts have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Machines {
    /// One machine: whoever leads next finds the processes of the other.
    One,
    /// The store alone.
    Two,
}

pub(super) struct Duo {
    pub(super) fleet: Fleet,
    pub(super) ledger: Ledger,
    /// Runs that somebody was told of.
    pub(super) told: BTreeSet<String>,
    points: Vec<String>,
    /// Has the file of clusters in it.
    _clusters: Option<Bench>,
}

impl Duo {
    /// Two hosts, the first of which leads, a cell, and a job of each kind. Hosts end at these points, in the order in which
    /// they are started; when there are no more of them nothing happens to any.
    pub(super) fn new(kind: Kind, machines: Machines, points: &[&str]) -> Result<Self, String> {
        let mut fleet = Fleet::without_cells(kind, 0, &[])?;
        if machines == Machines::Two {
            fleet.set_apart();
        }
        let ledger = Ledger::new(&fleet.traces());
        let points = points.iter().rev().map(|&point| point.to_owned()).collect();
        let mut duo = Self { fleet, ledger, told: BTreeSet::new(), points, _clusters: None };
        duo.next_point();
        duo.fleet.add_host();
        duo.fleet.hosts[0].leads(1);
        duo.next_point();
        duo.fleet.add_host();
        duo.fleet.add_cell();
        for place in Where::ALL {
            duo.apply(&duo.ledger.job(place));
        }
        Ok(duo)
    }

    /// A host that leads, and knows a Kubernetes cluster; it has no jobs yet.
    pub(super) fn on_kubernetes(clusters: Bench) -> Result<Self, String> {
        let mut fleet = Fleet::without_cells(Kind::File, 0, &[])?;
        let file = clusters.path("clusters.yaml").display().to_string();
        fleet.set_for_hosts("KAPELL_KUBERNETES_CLUSTERS", &file);
        let ledger = Ledger::new(&fleet.traces());
        let (told, points) = (BTreeSet::new(), Vec::new());
        let mut duo = Self { fleet, ledger, told, points, _clusters: Some(clusters) };
        duo.next_point();
        duo.fleet.add_host();
        duo.fleet.hosts[0].leads(1);
        Ok(duo)
    }

    fn next_point(&mut self) {
        let point = self.points.pop().unwrap_or_else(|| NOWHERE.to_owned());
        self.dies_at(&point);
    }

    pub(super) fn apply(&self, job: &Value) {
        let answer = self.fleet.ask("POST", "/v1/jobs", Some(job));
        assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
    }

    /// Which host is dead that nobody has buried yet.
    fn fallen(&mut self) -> Option<usize> {
        self.fleet.hosts.iter_mut().position(|host| host.running.has_ended())
    }

    /// Has a job run, unless its leader dies before it says so.
    pub(super) fn trigger(&mut self, place: Where) {
        self.trigger_job(place.name());
    }

    pub(super) fn trigger_job(&mut self, job: &str) {
        let path = format!("/v1/jobs/{job}/trigger");
        let body = json!({"parameters": {}});
        let taken = try_eventually(LIMIT, || {
            let answer = self.fleet.try_ask("POST", &path, Some(&body));
            match answer {
                Some(answer) if answer.status == 201 => {
                    let run = answer.json()["run_id"].as_str().expect("an id").to_owned();
                    self.told.insert(run);
                    Some(())
                }
                Some(answer) if !matches!(answer.status, 502..=504) => {
                    panic!("{}: {}", answer.status, answer.body)
                }
                Some(_) | None => self.fallen().map(drop),
            }
        });
        assert!(taken.is_some(), "nobody takes a wish for {job}");
    }

    /// Waits until a host is dead.
    pub(super) fn falls(&mut self, within: Duration) -> bool {
        try_eventually(within, || self.fallen()).is_some()
    }

    /// Takes away the dead, and tells where they were.
    pub(super) fn bury(&mut self) -> Vec<String> {
        let mut places = Vec::new();
        while let Some(at) = self.fallen() {
            let host = self.fleet.hosts.remove(at);
            places.push(host.address);
            host.running.finish();
        }
        places
    }

    /// Another host in the place of each that is gone, with the next point.
    pub(super) fn replace(&mut self) {
        self.next_point();
        self.start_behind();
    }

    /// Starts what is gone, once whoever stood by leads or is dead: so hosts come to their points in order.
    pub(super) fn start_behind(&mut self) {
        let led = try_eventually(LIMIT, || {
            let mut left = self.fleet.hosts.iter_mut();
            left.any(|host| host.has_led() || host.running.has_ended()).then_some(())
        });
        assert!(led.is_some() || self.fleet.hosts.is_empty(), "nobody leads");
        self.fleet.start_hosts();
    }

    /// Where hosts end that are started from now on.
    pub(super) fn dies_at(&mut self, point: &str) {
        self.fleet.set_for_hosts(FAILPOINT, point);
    }

    pub(super) fn runs(&self) -> Vec<Value> {
        self.fleet.get("/v1/runs?limit=10000").as_array().cloned().unwrap_or_default()
    }

    /// Waits until every run has ended, and checks that none is lost and nothing was done twice.
    #[track_caller]
    pub(super) fn all_is_well(&self, about: &str) -> Vec<Value> {
        let has_ended = |run: &Value| run["completed_at"].is_number();
        let ended = try_eventually(LIMIT, || {
            let runs = self.runs();
            runs.iter().all(has_ended).then_some(runs)
        });
        let runs = ended.unwrap_or_else(|| {
            let mut runs = self.runs();
            runs.retain(|run| !has_ended(run));
            panic!("{about}: no end: {runs:?}")
        });
        self.ledger.nothing_twice(about);
        let ids: BTreeSet<String> =
            runs.iter().filter_map(|run| run["run_id"].as_str().map(str::to_owned)).collect();
        let lost: Vec<&String> = self.told.difference(&ids).collect();
        assert!(lost.is_empty(), "{about}: lost: {lost:?}");
        runs
    }

    /// Whichever host is asked tells the same.
    #[track_caller]
    pub(super) fn both_tell_the_same(&self) {
        let told = |at: usize| {
            let mut command =
                self.fleet.cluster.bench.kapell(&["run", "list", "-n", "1000", "--output", "json"]);
            command.env("KAPELL_URL", format!("http://{}", self.fleet.address(at)));
            self.fleet.cluster.bench.run_command(command).expect(0).stdout
        };
        let [first, second] = [told(0), told(1)];
        assert!(first.len() > 2 && first == second, "{first}\n{second}");
    }
}
