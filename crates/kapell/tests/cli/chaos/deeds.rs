//! What happens to a fleet, one at a time.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{CELLS, Chaos};
use crate::bench::pause;
use crate::census::Process;
use crate::platform::fleet::counts_itself;
use crate::running::{Running, send};

const PLAIN: u64 = 4;
const WITH_ROOT: u64 = 3;
/// So many of each at most, with and without a root.
const MOST_PLAIN: u64 = 8;
const MOST_WITH_ROOT: u64 = 4;
/// Beyond any time after which somebody acts.
const LONGEST_FREEZE: Duration = Duration::from_secs(4);
const PORT: u16 = 8080;

/// Drawn before anybody looks at what is there: the same seed makes the same deeds, however they go.
#[derive(Debug, Clone, Copy)]
struct Draw {
    deed: u64,
    whom: u64,
    how: u64,
}

impl Draw {
    /// One of so many.
    fn one_of(self, count: usize) -> usize {
        usize::try_from(self.whom % count.max(1) as u64).expect("a small number")
    }
}

impl Chaos {
    pub(super) fn deed(&mut self) {
        let mut any = || self.chance.below(1 << 32);
        let draw = Draw { deed: any() % 24, whom: any(), how: any() };
        match draw.deed {
            0..=3 => self.desire(draw),
            4 => self.forget(draw),
            5..=7 => self.task(draw),
            8..=10 => self.kill_work(draw),
            11 | 12 => self.kill_shim(draw),
            13 | 14 => self.kill_agent(draw),
            15 => self.kill_machine(draw),
            16 => self.evacuate(draw),
            17 => self.kill_host(draw),
            18 => self.freeze_host(draw),
            19 => self.freeze_agent(draw),
            20..=22 => self.start_agents(),
            _ => self.start_hosts(),
        }
    }

    fn desire(&mut self, draw: Draw) {
        let kinds = PLAIN + if self.root.is_some() { WITH_ROOT } else { 0 };
        let number = draw.whom % kinds;
        let (guid, most) = if number < PLAIN {
            (format!("web-{number}"), MOST_PLAIN)
        } else {
            (format!("box-{}", number - PLAIN), MOST_WITH_ROOT)
        };
        let instances = u32::try_from(draw.how % (most + 1)).expect("a few");
        let done = if self.desired.contains_key(&guid) {
            self.change("PATCH", &guid, Some(&json!({"instances": instances})))
        } else {
            // It ends as it likes, or only by force.
            let stubborn = (draw.how >> 16).is_multiple_of(4);
            let lrp = self.lrp(&guid, instances, stubborn);
            self.change("POST", &guid, Some(&lrp))
        };
        self.diary.count("desires", &format!("{instances} of {guid}: {done}"));
        if done {
            self.desired.insert(guid, instances as usize);
        }
    }

    fn lrp(&self, guid: &str, instances: u32, stubborn: bool) -> Value {
        let trap = if stubborn { "trap '' TERM;" } else { "" };
        let script = format!("{trap} (setsid sleep 1000 &) ; while :; do sleep 0.5; done");
        let mut lrp = self.fleet.lrp(guid, instances, &script);
        if let Some(root) = self.root.as_ref().filter(|_| guid.starts_with("box-")) {
            lrp["rootfs"] = root.url().into();
            lrp["ports"] = json!([PORT]);
            lrp["memory_mb"] = 32.into();
            lrp["max_pids"] = 20.into();
            if guid == "box-0" {
                let script = format!(
                    "echo well > /tmp/index.html; (setsid sleep 1000 &); exec httpd -f -p {PORT} -h /tmp"
                );
                lrp["action"]["run"]["args"] = json!(["-c", script]);
                lrp["check"] = json!({"http": {"port": PORT, "path": "/index.html"}});
            }
        }
        lrp
    }

    fn forget(&mut self, draw: Draw) {
        let at = draw.one_of(self.desired.len());
        let Some(guid) = self.desired.keys().nth(at).cloned() else { return };
        let done = self.change("DELETE", &guid, None);
        self.diary.count("deletes", &format!("{guid}: {done}"));
        if done {
            self.desired.remove(&guid);
        }
    }

    /// Whether it was acknowledged.
    fn change(&mut self, method: &str, guid: &str, body: Option<&Value>) -> bool {
        if self.unknown.contains(guid) {
            return false;
        }
        let all = "/v1/desired-lrps".to_owned();
        let path = if method == "POST" { all } else { format!("{all}/{guid}") };
        let answer = self.fleet.try_ask(method, &path, body);
        match answer.map(|answer| (answer.status, answer.body)) {
            Some((200..300, _)) => true,
            Some((status @ 400..500, body)) => panic!("{method} {path}: {status}: {body}"),
            Some(_) | None => {
                self.unknown.insert(guid.to_owned());
                false
            }
        }
    }

    fn task(&mut self, draw: Draw) {
        let name = format!("task-{}", self.tasks);
        self.tasks += 1;
        let root = self.root.as_ref().filter(|_| draw.how.is_multiple_of(3));
        let counts = counts_itself(&self.fleet.traces(), &name);
        let counts = if root.is_some() { "true" } else { counts.as_str() };
        let mut task = self.fleet.task(&name, &format!("{counts}; sleep 0.5"));
        if let Some(root) = root {
            task["rootfs"] = root.url().into();
            task["memory_mb"] = 32.into();
        }
        let kind = if root.is_some() { "tasks with roots" } else { "tasks" };
        // An answer that got lost may stand for a task that is there.
        let answer = self.fleet.try_ask("POST", "/v1/tasks", Some(&task));
        self.diary.count(kind, &format!("{name}: {:?}", answer.map(|answer| answer.status)));
    }

    fn kill_work(&mut self, draw: Draw) {
        self.remains.note(&self.fleet);
        let work = self.fleet.work();
        let victim = work.get(draw.one_of(work.len()));
        self.diary.count("processes killed", &format!("{victim:?}"));
        kill(victim);
    }

    fn kill_shim(&mut self, draw: Draw) {
        let shims = self.fleet.shims(draw.one_of(CELLS));
        let at = usize::try_from(draw.how).expect("a number") % shims.len().max(1);
        self.diary.count("shims killed", &format!("{:?}", shims.get(at)));
        kill(shims.get(at));
    }

    fn kill_agent(&mut self, draw: Draw) {
        let cell = draw.one_of(CELLS);
        if self.fleet.cells[cell].running.is_some() {
            self.fleet.kill_cell(cell);
            self.diary.count("agents killed", &format!("cell-{cell}"));
        }
    }

    /// All that are away, killed or evacuated.
    fn start_agents(&mut self) {
        for cell in 0..CELLS {
            let agent = &mut self.fleet.cells[cell].running;
            if agent.as_mut().is_none_or(Running::has_ended) {
                agent.take().map(Running::finish);
                self.fleet.begin_cell(cell);
                self.diary.count("agents started", &format!("cell-{cell}"));
            }
        }
    }

    /// Agent, shims and work together.
    fn kill_machine(&mut self, draw: Draw) {
        let cell = draw.one_of(CELLS);
        if self.fleet.cells[cell].running.is_some() {
            self.fleet.kill_cell(cell);
        }
        let (shims, id) = (self.fleet.shims(cell), self.fleet.cells[cell].id.clone());
        let work = self.fleet.work();
        let here = work.iter().filter(|process| is_told(process, "KAPELL_CELL_ID", &id));
        for victim in shims.iter().chain(here) {
            kill(Some(victim));
        }
        self.diary.count("machines killed", &format!("{id} with {} shims", shims.len()));
    }

    fn evacuate(&mut self, draw: Draw) {
        let id = self.fleet.cells[draw.one_of(CELLS)].id.clone();
        // It may be gone, or nobody may lead.
        let answer = self.fleet.try_ask("POST", &format!("/v1/cells/{id}/evacuate"), None);
        let told = answer.map(|answer| answer.status);
        self.diary.count("evacuations", &format!("{id}: {told:?}"));
    }

    fn kill_host(&mut self, draw: Draw) {
        if self.fleet.hosts.len() > 1 {
            let host = self.fleet.hosts.remove(draw.one_of(self.fleet.hosts.len()));
            self.diary.count("hosts killed", &host.address);
            host.kill();
        }
    }

    /// All that are away: killed, or ended by themselves because they were frozen for too long.
    fn start_hosts(&mut self) {
        self.fleet.hosts.retain_mut(|host| !host.running.has_ended());
        let there = self.fleet.hosts.len();
        self.fleet.start_hosts();
        for host in &self.fleet.hosts[there..] {
            self.diary.count("hosts started", &host.address);
        }
    }

    fn freeze_host(&mut self, draw: Draw) {
        let at = draw.one_of(self.fleet.hosts.len());
        let Some(host) = self.fleet.hosts.get(at) else { return };
        let (pid, address) = (host.running.pid(), host.address.clone());
        let time = self.freeze(pid, draw);
        self.diary.count("hosts frozen", &format!("{address} for {time:?}"));
    }

    fn freeze_agent(&mut self, draw: Draw) {
        let cell = draw.one_of(CELLS);
        let Some(running) = &self.fleet.cells[cell].running else { return };
        let time = self.freeze(running.pid(), draw);
        self.diary.count("agents frozen", &format!("cell-{cell} for {time:?}"));
    }

    fn freeze(&mut self, pid: i32, draw: Draw) -> Duration {
        let most = u64::try_from(LONGEST_FREEZE.as_millis()).expect("a few seconds");
        let time = Duration::from_millis(draw.how % most);
        send(pid, Signal::SIGSTOP);
        self.frozen.push(std::thread::spawn(move || {
            pause(time);
            send(pid, Signal::SIGCONT);
        }));
        time
    }

    /// Ends all faults.
    pub(super) fn heal(&mut self) {
        self.diary.note("all faults end");
        for frozen in self.frozen.drain(..) {
            frozen.join().expect("it only waits");
        }
        for host in self.fleet.hosts.drain(..) {
            host.kill();
        }
        self.fleet.start_hosts();
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
        self.desire_of_each();
    }

    /// Sees to it that there is something of every kind when all is looked at.
    fn desire_of_each(&mut self) {
        let with_root = self.root.is_some().then_some("box-0");
        for guid in ["web-0"].into_iter().chain(with_root) {
            let answer = if self.desired.contains_key(guid) {
                let path = format!("/v1/desired-lrps/{guid}");
                self.fleet.ask("PATCH", &path, Some(&json!({"instances": 2})))
            } else {
                self.fleet.ask("POST", "/v1/desired-lrps", Some(&self.lrp(guid, 2, false)))
            };
            // One that was asked for twice, because the first answer got lost, is there.
            assert!(matches!(answer.status, 200 | 201 | 409), "{answer:?}");
            self.desired.insert(guid.to_owned(), 2);
        }
    }
}

fn kill(process: Option<&Process>) {
    if let Some(process) = process {
        send(process.pid, Signal::SIGKILL);
    }
}

fn is_told(process: &Process, name: &str, value: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    let entry = format!("{name}={value}");
    environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
}
