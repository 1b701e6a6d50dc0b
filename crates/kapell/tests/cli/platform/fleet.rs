//! Hosts on one store and cells that belong to them, as processes of their own.

use serde_json::Value;

use super::site::{Answer, WORK, ask};
use crate::bench::{Bench, LIMIT, try_eventually};
use crate::census::{Process, with};
use crate::leadership::cluster::{Cluster, Host, Kind};
use crate::running::{Running, send};
use nix::sys::signal::Signal;

pub(crate) struct Fleet {
    pub(crate) cluster: Cluster,
    pub(crate) hosts: Vec<Host>,
    pub(crate) cells: Vec<Agent>,
}

/// One `kapell cell`.
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) bench: Bench,
    pub(crate) running: Option<Running>,
}

impl Fleet {
    /// So many hosts, the first of which leads, and one cell; the reason if there is no server.
    pub(crate) fn new(kind: Kind, hosts: usize) -> Result<Self, String> {
        let cluster = Cluster::new(kind)?;
        let mut fleet = Self { cluster, hosts: Vec::new(), cells: Vec::new() };
        for number in 0..hosts {
            let mut host = fleet.cluster.host(&[]);
            if number == 0 {
                host.leads(1);
            } else {
                host.listens();
            }
            fleet.hosts.push(host);
        }
        fleet.add_cell();
        Ok(fleet)
    }

    fn urls(&self) -> String {
        let urls: Vec<String> =
            self.hosts.iter().map(|host| format!("http://{}", host.address)).collect();
        urls.join(",")
    }

    pub(crate) fn add_cell(&mut self) {
        let id = format!("cell-{}", self.cells.len());
        let bench = Bench::new().set("KAPELL_STATE_DIR", self.cluster.bench.path("state"));
        self.cells.push(Agent { id, bench, running: None });
        self.start_cell(self.cells.len() - 1);
    }

    /// Starts the agent of a cell, again after it was killed.
    pub(crate) fn start_cell(&mut self, at: usize) {
        let urls = self.urls();
        let cell = &mut self.cells[at];
        let dir = cell.bench.path("cell");
        let dir = dir.to_str().expect("text");
        let mut running = cell
            .bench
            .start(&["cell", "--url", &urls, "--id", &cell.id, "--dir", dir, "--log", "json"]);
        running.until_told("\"message\":\"present\"", 1);
        cell.running = Some(running);
    }

    pub(crate) fn kill_cell(&mut self, at: usize) {
        let running = self.cells[at].running.take().expect("it runs");
        running.signal(Signal::SIGKILL);
        running.finish();
    }

    pub(crate) fn mark(&self) -> String {
        self.cluster.bench.dir().file_name().expect("a name").to_string_lossy().into_owned()
    }

    pub(crate) fn work(&self) -> Vec<Process> {
        with(WORK, &self.mark())
    }

    pub(crate) fn lrp(&self, guid: &str, instances: u32, script: &str) -> Value {
        serde_json::json!({
            "process_guid": guid,
            "domain": "test",
            "instances": instances,
            "action": {"run": {"path": "/bin/sh", "args": ["-c", script]}},
            "env": [{"name": WORK, "value": self.mark()}],
        })
    }

    /// Asks whoever answers, leader or not.
    pub(crate) fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
        let token = std::fs::read_to_string(self.cluster.token()).ok()?;
        self.hosts.iter().find_map(|host| {
            let port = host.listen.rsplit_once(':')?.1.parse().ok()?;
            ask(port, token.trim(), method, path, body)
        })
    }

    /// Asks until there is an answer that is not "nobody leads right now".
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let answer = try_eventually(LIMIT, || {
            self.try_ask(method, path, body).filter(|answer| answer.status != 503)
        });
        answer.unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    #[track_caller]
    pub(crate) fn all_run(&self, guid: &str, count: usize) -> Vec<Value> {
        let path = format!("/v1/actual-lrps?process_guid={guid}");
        let mut seen = String::new();
        let all = try_eventually(LIMIT, || {
            let answer = self.ask("GET", &path, None).expect(200);
            seen.clone_from(&answer.body);
            let all = answer.json().as_array().expect("a list").clone();
            let fine = all.len() == count && all.iter().all(|lrp| lrp["state"] == "RUNNING");
            fine.then_some(all)
        });
        all.unwrap_or_else(|| panic!("waited {LIMIT:?} for {count} of {guid}: {seen}"))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.cells.iter_mut().for_each(|cell| drop(cell.running.take()));
        for cell in &self.cells {
            let dir = cell.bench.dir().display().to_string();
            let is_ours = |line: &str| line.contains("kapell-shim") && line.contains(&dir);
            for process in crate::census::running(is_ours) {
                send(process.pid, Signal::SIGKILL);
            }
        }
        for process in self.work() {
            send(process.pid, Signal::SIGKILL);
        }
    }
}
