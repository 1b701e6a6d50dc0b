//! Everything at random: at the end all is as desired, and nothing is left over.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::IMPATIENT;
use crate::bench::{pause, skip, try_eventually};
use crate::leadership::cluster::Kind;
use crate::platform::chance::Chance;
use crate::platform::fleet::{Fleet, counts_itself, starts};
use crate::running::send;

const CELLS: usize = 3;
const PROCESSES: u64 = 4;
/// Beyond any time after which somebody acts.
const LONGEST_FREEZE: Duration = Duration::from_secs(4);
/// After the last fault, by when all is as desired: a crash that came late waits for its turn.
const PATIENCE: Duration = Duration::from_secs(60);
const MORE: [(&str, &str); 3] =
    [("KAPELL_STOP_GRACE", "1s"), ("KAPELL_CRASH_WAIT", "1s"), ("KAPELL_LONGEST_CRASH_WAIT", "4s")];

/// How long it goes on, in seconds; `KAPELL_CHAOS_SECONDS` says otherwise.
fn duration() -> Duration {
    let seconds = std::env::var("KAPELL_CHAOS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(20))
}

#[test]
fn whatever_happens_in_the_end_all_is_as_desired_and_nothing_is_left_over() {
    let mut fleet = match Fleet::without_cells(Kind::Etcd, 2, &[&IMPATIENT[..], &MORE].concat()) {
        Ok(fleet) => fleet,
        Err(reason) => return skip("fleets::chaos", &reason),
    };
    for zone in ["z1", "z2", "z3"] {
        fleet.add_cell_with(None, &["--zone", zone]);
    }
    // What a cell brings back that nobody desires any more is stopped.
    fleet.ask("PUT", "/v1/domains/test", None).expect(200);
    let mut chaos = Chaos {
        chance: Chance::new(),
        desired: BTreeMap::new(),
        unknown: BTreeSet::new(),
        frozen: Vec::new(),
        tasks: 0,
        counts: BTreeMap::new(),
        fleet,
    };
    let begun = Instant::now();
    while begun.elapsed() < duration() {
        let deed = chaos.deed();
        *chaos.counts.entry(deed).or_default() += 1;
        chaos.chance.moment(Duration::from_millis(600));
    }
    chaos.heal();
    chaos.check();
}

struct Chaos {
    fleet: Fleet,
    chance: Chance,
    /// What was acknowledged last.
    desired: BTreeMap<String, usize>,
    /// What nobody answered may have been done or not.
    unknown: BTreeSet<String>,
    frozen: Vec<JoinHandle<()>>,
    tasks: usize,
    counts: BTreeMap<&'static str, usize>,
}

impl Chaos {
    /// Does something, and says what.
    fn deed(&mut self) -> &'static str {
        match self.chance.below(20) {
            0..=3 => self.desire(),
            4 => self.forget(),
            5..=7 => self.task(),
            8..=10 => self.kill_work(),
            11 | 12 => self.kill_shim(),
            13 | 14 => self.kill_agent(),
            15 => self.kill_machine(),
            16 => self.evacuate(),
            17 => self.kill_host(),
            18 => self.freeze_host(),
            _ => self.freeze_agent(),
        }
    }

    fn desire(&mut self) -> &'static str {
        let guid = format!("web-{}", self.chance.below(PROCESSES));
        let instances = u32::try_from(self.chance.below(9)).expect("a few");
        let done = if self.desired.contains_key(&guid) {
            let patch = serde_json::json!({"instances": instances});
            self.change("PATCH", &guid, Some(&patch))
        } else {
            // It ends as it likes, or only by force.
            let stubborn = self.chance.below(4) == 0;
            let trap = if stubborn { "trap '' TERM;" } else { "" };
            let script = format!("{trap} (setsid sleep 1000 &) ; while :; do sleep 0.2; done");
            let lrp = self.fleet.lrp(&guid, instances, &script);
            self.change("POST", &guid, Some(&lrp))
        };
        if done {
            self.desired.insert(guid, instances as usize);
        }
        "desires"
    }

    fn forget(&mut self) -> &'static str {
        if let Some(guid) = self.pick_process()
            && self.change("DELETE", &guid, None)
        {
            self.desired.remove(&guid);
        }
        "deletes"
    }

    /// Whether it was acknowledged.
    fn change(&mut self, method: &str, guid: &str, body: Option<&Value>) -> bool {
        if self.unknown.contains(guid) {
            return false;
        }
        let all = "/v1/desired-lrps".to_owned();
        let path = if method == "POST" { all } else { format!("{all}/{guid}") };
        let answer = self.fleet.try_ask(method, &path, body);
        match answer.map(|answer| answer.status) {
            Some(200..300) => true,
            Some(status @ 400..500) => panic!("{method} {path}: {status}"),
            Some(_) | None => {
                self.unknown.insert(guid.to_owned());
                false
            }
        }
    }

    fn pick_process(&mut self) -> Option<String> {
        let at = self.chance.below(self.desired.len() as u64);
        self.desired.keys().nth(usize::try_from(at).ok()?).cloned()
    }

    fn task(&mut self) -> &'static str {
        let name = format!("task-{}", self.tasks);
        self.tasks += 1;
        let script = format!("{}; sleep 0.5", counts_itself(&self.fleet.traces(), &name));
        // An answer that got lost may stand for a task that is there.
        let _answer =
            self.fleet.try_ask("POST", "/v1/tasks", Some(&self.fleet.task(&name, &script)));
        "tasks"
    }

    fn kill_work(&mut self) -> &'static str {
        let work = self.fleet.work();
        if let Some(victim) = work.get(self.below(work.len())) {
            send(victim.pid, Signal::SIGKILL);
        }
        "processes killed"
    }

    fn kill_shim(&mut self) -> &'static str {
        let cell = self.below(CELLS);
        let shims = self.fleet.shims(cell);
        if let Some(victim) = shims.get(self.below(shims.len())) {
            send(victim.pid, Signal::SIGKILL);
        }
        "shims killed"
    }

    fn kill_agent(&mut self) -> &'static str {
        let cell = self.below(CELLS);
        if self.fleet.cells[cell].running.is_some() {
            self.fleet.kill_cell(cell);
        } else {
            self.fleet.begin_cell(cell);
        }
        "agents killed or started"
    }

    /// Agent, shims and work together.
    fn kill_machine(&mut self) -> &'static str {
        let cell = self.below(CELLS);
        if self.fleet.cells[cell].running.is_some() {
            self.fleet.kill_cell(cell);
        }
        for shim in self.fleet.shims(cell) {
            send(shim.pid, Signal::SIGKILL);
        }
        "machines killed"
    }

    fn evacuate(&mut self) -> &'static str {
        let cell = self.below(CELLS);
        let id = self.fleet.cells[cell].id.clone();
        // It may be gone, or nobody may lead.
        let _answer = self.fleet.try_ask("POST", &format!("/v1/cells/{id}/evacuate"), None);
        "evacuations"
    }

    fn kill_host(&mut self) -> &'static str {
        if self.fleet.hosts.len() > 1 {
            let at = self.below(self.fleet.hosts.len());
            self.fleet.hosts.remove(at).kill();
        } else {
            self.restart_hosts();
        }
        "hosts killed or started"
    }

    /// One that was frozen for too long has ended itself, and whoever watches over it starts it again.
    fn restart_hosts(&mut self) {
        for host in self.fleet.hosts.drain(..) {
            host.kill();
        }
        self.fleet.start_hosts();
    }

    fn freeze_host(&mut self) -> &'static str {
        let at = self.below(self.fleet.hosts.len());
        let pid = self.fleet.hosts[at].running.pid();
        self.freeze(pid);
        "hosts frozen"
    }

    fn freeze_agent(&mut self) -> &'static str {
        let cell = self.below(CELLS);
        if let Some(running) = &self.fleet.cells[cell].running {
            let pid = running.pid();
            self.freeze(pid);
        }
        "agents frozen"
    }

    fn freeze(&mut self, pid: i32) {
        let most = u64::try_from(LONGEST_FREEZE.as_millis()).expect("a few seconds");
        let time = Duration::from_millis(self.chance.below(most));
        send(pid, Signal::SIGSTOP);
        self.frozen.push(std::thread::spawn(move || {
            pause(time);
            send(pid, Signal::SIGCONT);
        }));
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.chance.below(count as u64)).expect("a small number")
    }

    /// Ends all faults.
    fn heal(&mut self) {
        for frozen in self.frozen.drain(..) {
            frozen.join().expect("it only waits");
        }
        self.restart_hosts();
        for cell in 0..CELLS {
            // One that was evacuated has ended by itself, or is about to.
            if self.fleet.cells[cell].running.is_some() {
                self.fleet.kill_cell(cell);
            }
            // Nor does it go on with that.
            self.fleet.cells[cell].more.push("--stay".to_owned());
            self.fleet.begin_cell(cell);
        }
        for guid in std::mem::take(&mut self.unknown) {
            let answer = self.fleet.ask("DELETE", &format!("/v1/desired-lrps/{guid}"), None);
            assert!(matches!(answer.status, 204 | 404), "{answer:?}");
            self.desired.remove(&guid);
        }
    }

    fn check(&self) {
        let mut wrong = String::new();
        let fine = try_eventually(PATIENCE, || {
            wrong = self.wrong();
            wrong.is_empty().then_some(())
        });
        assert!(fine.is_some(), "{wrong}\nafter {:?}", self.counts);
        let traces = self.fleet.traces();
        for number in 0..self.tasks {
            let name = format!("task-{number}");
            assert!(starts(&traces, &name) <= 1, "{name} ran twice, after {:?}", self.counts);
        }
    }

    /// What is not as it should be.
    fn wrong(&self) -> String {
        let lrps = self.fleet.get("/v1/actual-lrps?all=true");
        let lrps = lrps.as_array().expect("a list");
        let mut wrong = String::new();
        let all: usize = self.desired.values().sum();
        let running = lrps.iter().filter(|lrp| lrp["state"] == "RUNNING").count();
        if (lrps.len(), running) != (all, all) {
            wrong += &format!("of {all} desired, {running} run and {} are known\n", lrps.len());
        }
        let of = |lrp: &Value| lrp["instance_guid"].as_str().unwrap_or_default().to_owned();
        let mut known: Vec<String> = lrps.iter().map(of).collect();
        known.sort();
        let tasks = self.fleet.get("/v1/tasks");
        let busy = |task: &&Value| matches!(task["state"].as_str(), Some("PENDING" | "RUNNING"));
        let busy = tasks.as_array().expect("a list").iter().filter(busy).count();
        if busy > 0 {
            wrong += &format!("{busy} tasks are not complete\n");
        }
        let mut found = crate::platform::fleet::guids_of_processes(&self.fleet.work());
        found.dedup();
        if found != known {
            wrong += &format!("records of {known:?}\nprocesses of {found:?}\n");
        }
        let cells = self.fleet.get("/v1/cells").as_array().map_or(0, Vec::len);
        if cells != CELLS {
            wrong += &format!("{cells} cells are there\n");
        }
        wrong
    }
}
