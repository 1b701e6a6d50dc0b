//! Hosts on one store and cells that belong to them, as processes of their own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::site::{Answer, WORK, ask, leave_nothing};
use crate::bench::{Bench, LIMIT, eventually, try_eventually};
use crate::census::{Process, with};
use crate::leadership::cluster::{Cluster, Host, Kind, free_port};
use crate::running::Running;

/// Cells may have something in between.
pub(crate) const ANY_PORT: &[&str] = &["--allow-host", "127.0.0.1"];

pub(crate) struct Fleet {
    pub(crate) cluster: Cluster,
    /// Where hosts listen, whether they are there or not.
    addresses: Vec<String>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) cells: Vec<Agent>,
    settings: Vec<(&'static str, &'static str)>,
    /// Of hosts alone, and only of those that are started from now on.
    of_hosts: Vec<(&'static str, String)>,
    /// Hosts have nothing in common but the store and what they must know, as if on machines of their own.
    apart: bool,
    /// A directory where each host and each cell has a file with all that it ever told.
    logs: Option<PathBuf>,
}

/// One `kapell cell`.
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) bench: Bench,
    pub(crate) running: Option<Running>,
    /// Instead of the addresses of the hosts.
    urls: Option<String>,
    pub(crate) more: Vec<String>,
}

impl Fleet {
    /// So many hosts, the first of which leads, and one cell; the reason if there is no server.
    pub(crate) fn new(kind: Kind, hosts: usize) -> Result<Self, String> {
        Self::with(kind, hosts, &[])
    }

    /// The same, with settings of hosts and cells.
    pub(crate) fn with(
        kind: Kind,
        hosts: usize,
        settings: &[(&'static str, &'static str)],
    ) -> Result<Self, String> {
        let mut fleet = Self::without_cells(kind, hosts, settings)?;
        fleet.add_cell();
        Ok(fleet)
    }

    pub(crate) fn without_cells(
        kind: Kind,
        hosts: usize,
        settings: &[(&'static str, &'static str)],
    ) -> Result<Self, String> {
        Self::logged(kind, hosts, settings, None)
    }

    /// The same, with logs that stay.
    pub(crate) fn logged(
        kind: Kind,
        hosts: usize,
        settings: &[(&'static str, &'static str)],
        logs: Option<PathBuf>,
    ) -> Result<Self, String> {
        let cluster = Cluster::new(kind)?;
        let settings = settings.to_vec();
        let (addresses, hosts_there, cells) = (Vec::new(), Vec::new(), Vec::new());
        let mut fleet = Self {
            cluster,
            addresses,
            hosts: hosts_there,
            cells,
            settings,
            of_hosts: Vec::new(),
            apart: false,
            logs,
        };
        for number in 0..hosts {
            fleet.addresses.push(format!("127.0.0.1:{}", free_port()));
            let mut host = fleet.host_at(&fleet.addresses[number]);
            if number == 0 {
                host.leads(1);
            } else {
                host.listens();
            }
            fleet.hosts.push(host);
        }
        Ok(fleet)
    }

    fn host_at(&self, address: &str) -> Host {
        let (bench, mut command) =
            self.cluster.host_command(&self.cluster.url, address, address, ANY_PORT);
        command.envs(self.settings.iter().copied());
        command.envs(self.of_hosts.iter().map(|(name, value)| (name, value)));
        let number = self.addresses.iter().position(|it| it == address).unwrap_or_default();
        if self.apart && number > 0 {
            command.env("KAPELL_STATE_DIR", self.state_apart(number));
        }
        let bench = bench.logged(self.log(&format!("host-{number}")));
        let running = bench.start_command(command);
        let (address, listen) = (address.to_owned(), address.to_owned());
        Host { running, bench, address, listen }
    }

    fn log(&self, name: &str) -> Option<PathBuf> {
        Some(self.logs.as_ref()?.join(format!("{name}.log")))
    }

    /// A directory of a host's own, with what hosts of one cluster must have in common.
    fn state_apart(&self, number: usize) -> PathBuf {
        let dir = self.cluster.bench.path(&format!("state-{number}"));
        std::fs::create_dir_all(&dir).expect("a directory");
        for name in ["token", "cluster.key"] {
            let from = self.cluster.bench.path("state").join(name);
            std::fs::copy(from, dir.join(name)).expect("the first host has made it");
        }
        dir
    }

    /// Sets something for hosts that are started from now on.
    pub(crate) fn set_for_hosts(&mut self, name: &'static str, value: &str) {
        self.of_hosts.retain(|(known, _)| *known != name);
        self.of_hosts.push((name, value.to_owned()));
    }

    /// Hosts that are added from now on share no directory with the first.
    pub(crate) const fn set_apart(&mut self) {
        self.apart = true;
    }

    /// One host more, which waits for its turn.
    pub(crate) fn add_host(&mut self) {
        self.addresses.push(format!("127.0.0.1:{}", free_port()));
        self.start_hosts();
    }

    /// Starts what was killed, where it was.
    pub(crate) fn start_hosts(&mut self) {
        let there: BTreeSet<&String> = self.hosts.iter().map(|host| &host.address).collect();
        let missing: Vec<String> =
            self.addresses.iter().filter(|it| !there.contains(it)).cloned().collect();
        for address in &missing {
            self.start_host(address);
        }
    }

    /// Starts the one that was killed there.
    pub(crate) fn start_host(&mut self, address: &str) {
        let mut host = self.host_at(address);
        host.listens();
        self.hosts.push(host);
    }

    /// Ends whoever leads without a word, and tells where that was.
    pub(crate) fn kill_leader(&mut self) -> String {
        let at = eventually("a leader", || {
            if self.hosts.len() == 1 {
                return self.hosts[0].has_led().then_some(0);
            }
            let address = self.cluster.seat()?.address?;
            let named = self.hosts.iter_mut().position(|host| host.address == address)?;
            self.hosts[named].has_led().then_some(named)
        });
        let host = self.hosts.remove(at);
        let address = host.address.clone();
        host.kill();
        address
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        let port = |address: &String| address.rsplit_once(':')?.1.parse().ok();
        self.addresses.iter().filter_map(port).collect()
    }

    pub(crate) fn address(&self, at: usize) -> &str {
        &self.addresses[at]
    }

    fn urls(&self) -> String {
        let urls: Vec<String> = self.addresses.iter().map(|it| format!("http://{it}")).collect();
        urls.join(",")
    }

    pub(crate) fn add_cell(&mut self) {
        self.add_cell_with(None, &[]);
    }

    /// A cell with another way to the hosts and more arguments.
    pub(crate) fn add_cell_with(&mut self, urls: Option<String>, more: &[&str]) {
        let id = format!("cell-{}", self.cells.len());
        let bench = Bench::new().set("KAPELL_STATE_DIR", self.cluster.bench.path("state"));
        let bench = self.settings.iter().fold(bench, |bench, (name, value)| bench.set(name, value));
        let bench = bench.logged(self.log(&id));
        let more = more.iter().map(|&word| word.to_owned()).collect();
        self.cells.push(Agent { id, bench, running: None, urls, more });
        self.start_cell(self.cells.len() - 1);
    }

    /// Starts the agent of a cell, again after it was killed.
    pub(crate) fn start_cell(&mut self, at: usize) {
        self.begin_cell(at);
        let running = self.cells[at].running.as_mut().expect("it runs");
        running.until_told("\"message\":\"present\"", 1);
    }

    /// The same, without waiting for it to be there.
    pub(crate) fn begin_cell(&mut self, at: usize) {
        let urls = self.urls();
        let cell = &mut self.cells[at];
        let urls = cell.urls.clone().unwrap_or(urls);
        let dir = cell.bench.path("cell");
        let dir = dir.to_str().expect("text");
        let mut args =
            vec!["cell", "--url", &urls, "--id", &cell.id, "--dir", dir, "--log", "json"];
        args.extend(cell.more.iter().map(String::as_str));
        cell.running = Some(cell.bench.start(&args));
    }

    pub(crate) fn kill_cell(&mut self, at: usize) {
        let running = self.cells[at].running.take().expect("it runs");
        running.signal(Signal::SIGKILL);
        running.finish();
    }

    /// `kapell` with these arguments, against the first host.
    pub(crate) fn kapell(&self, args: &[&str]) -> crate::bench::Ran {
        let mut command = self.cluster.bench.kapell(args);
        command.env("KAPELL_URL", self.urls());
        self.cluster.bench.run_command(command)
    }

    pub(crate) fn mark(&self) -> String {
        self.cluster.bench.dir().file_name().expect("a name").to_string_lossy().into_owned()
    }

    pub(crate) fn work(&self) -> Vec<Process> {
        with(WORK, &self.mark())
    }

    /// The shims of one cell.
    pub(crate) fn shims(&self, at: usize) -> Vec<Process> {
        let dir = self.cells[at].bench.dir().display().to_string();
        crate::census::running(|line| line.contains("kapell-shim") && line.contains(&dir))
    }

    pub(crate) fn lrp(&self, guid: &str, instances: u32, script: &str) -> Value {
        json!({
            "process_guid": guid,
            "domain": "test",
            "instances": instances,
            "action": {"run": {"path": "/bin/sh", "args": ["-c", script]}},
            "env": [{"name": WORK, "value": self.mark()}],
        })
    }

    pub(crate) fn desire(&self, guid: &str, instances: u32, script: &str) {
        self.ask("POST", "/v1/desired-lrps", Some(&self.lrp(guid, instances, script))).expect(201);
    }

    pub(crate) fn scale(&self, guid: &str, instances: u32) {
        let patch = json!({"instances": instances});
        self.ask("PATCH", &format!("/v1/desired-lrps/{guid}"), Some(&patch)).expect(200);
    }

    pub(crate) fn task(&self, guid: &str, script: &str) -> Value {
        json!({
            "task_guid": guid,
            "domain": "test",
            "action": {"run": {"path": "/bin/sh", "args": ["-c", script]}},
            "env": [{"name": WORK, "value": self.mark()}],
        })
    }

    /// A directory where work leaves traces.
    pub(crate) fn traces(&self) -> PathBuf {
        let dir = self.cluster.bench.path("traces");
        open_dir(&dir);
        dir
    }

    /// Asks whoever answers, leader or not.
    pub(crate) fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
        let token = self.token();
        self.ports().into_iter().find_map(|port| ask(port, &token, method, path, body))
    }

    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.cluster.token()).expect("the token").trim().to_owned()
    }

    /// Asks until there is an answer that is not "nobody leads right now".
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let answer = try_eventually(LIMIT, || {
            self.try_ask(method, path, body).filter(|answer| !matches!(answer.status, 502..=504))
        });
        answer.unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        self.ask("GET", path, None).expect(200).json()
    }

    #[track_caller]
    pub(crate) fn instances(&self, guid: &str) -> Vec<Value> {
        let list = self.get(&format!("/v1/actual-lrps?process_guid={guid}"));
        list.as_array().expect("a list").clone()
    }

    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        try_eventually(LIMIT, look).unwrap_or_else(|| {
            let lrps = self.try_ask("GET", "/v1/actual-lrps", None).map(|it| it.body);
            panic!("waited {LIMIT:?} for {what}; instances: {lrps:?}; work: {:?}", self.work())
        })
    }

    #[track_caller]
    pub(crate) fn all_run(&self, guid: &str, count: usize) -> Vec<Value> {
        self.until(&format!("{count} of {guid} to run"), || {
            let all = self.instances(guid);
            let fine = all.len() == count && all.iter().all(|lrp| lrp["state"] == "RUNNING");
            fine.then_some(all)
        })
    }

    /// So many run, every record has its processes and every process its record.
    #[track_caller]
    pub(crate) fn nothing_runs_twice(&self, guid: &str, count: usize) {
        let all = self.all_run(guid, count);
        let wanted: Vec<String> = guids(&all).into_iter().collect();
        let mut found = Vec::new();
        let same = try_eventually(LIMIT, || {
            found = guids_of_processes(&self.work());
            (found == wanted).then_some(())
        });
        assert!(same.is_some(), "records: {wanted:?}\nprocesses: {found:?}");
    }

    #[track_caller]
    pub(crate) fn completed(&self, guid: &str) -> Value {
        let path = format!("/v1/tasks/{guid}");
        self.until(&format!("task {guid} to complete"), || {
            let task = self.ask("GET", &path, None);
            (task.status == 200).then(|| task.json()).filter(|task| task["state"] == "COMPLETED")
        })
    }
}

impl Fleet {
    /// Ends its cells and their work.
    pub(crate) fn end(&mut self) {
        self.cells.iter_mut().for_each(|cell| drop(cell.running.take()));
        leave_nothing(|| {
            let shims = (0..self.cells.len()).flat_map(|at| self.shims(at));
            shims.chain(self.work()).collect()
        });
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.end();
    }
}

/// Work may run as another user: makes a directory where everybody may write.
pub(crate) fn open_dir(dir: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(dir).expect("a directory");
    for dir in dir.ancestors().take(2) {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).expect("our own");
    }
}

/// How often something was started that makes a file `name.…` each time.
pub(crate) fn starts(dir: &Path, name: &str) -> usize {
    let names = std::fs::read_dir(dir).expect("a directory").flatten();
    let prefix = format!("{name}.");
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
}

/// A shell command that makes such a file.
pub(crate) fn counts_itself(dir: &Path, name: &str) -> String {
    format!("mktemp {}/{name}.XXXXXXXX >/dev/null", dir.display())
}

pub(crate) fn guids(all: &[Value]) -> BTreeSet<String> {
    all.iter().map(|lrp| lrp["instance_guid"].as_str().expect("a guid").to_owned()).collect()
}

pub(crate) fn pids(all: &[Process]) -> BTreeSet<i32> {
    all.iter().map(|process| process.pid).collect()
}

/// The instances that processes belong to, as their environment tells.
pub(crate) fn guids_of_processes(all: &[Process]) -> Vec<String> {
    let mut guids: Vec<String> = all
        .iter()
        .filter_map(|process| {
            let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).ok()?;
            let text = String::from_utf8_lossy(&environment).into_owned();
            text.split('\0')
                .find_map(|entry| entry.strip_prefix("INSTANCE_GUID=").map(str::to_owned))
        })
        .collect();
    guids.sort();
    guids
}
