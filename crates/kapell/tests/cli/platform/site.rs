//! A platform on this machine, and ways to ask it.

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::bench::{Bench, LIMIT, Ran, skip, try_eventually};
use crate::census::Process;
use crate::leadership::cluster::{Cluster, Kind, free_port};
use crate::running::{Running, send};

/// Something of ours in the environment of every instance, to find them by.
pub(crate) const WORK: &str = "KAPELL_TEST_WORK";

thread_local! {
    /// Where the platforms of the test on this thread keep their records, if not in their directory.
    static STORE: Cell<Option<Kind>> = const { Cell::new(None) };
}

/// Runs a test with its platforms on another store; skips it if there is no server for that.
pub(crate) fn on(kind: Kind, name: &str, test: fn()) {
    if let Err(reason) = Cluster::fresh_url(kind, &Bench::new()) {
        return skip(name, &reason);
    }
    STORE.set(Some(kind));
    test();
}

/// One `kapell up`, or what is left of it.
pub(crate) struct Site {
    pub(crate) bench: Bench,
    store: Option<String>,
    pub(crate) port: u16,
    pub(crate) running: Option<Running>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }
}

impl Site {
    /// A platform that is up, with its timers as they are.
    pub(crate) fn up() -> Self {
        Self::with(Bench::new(), &[])
    }

    /// A platform that is up, with other settings and more arguments.
    pub(crate) fn with(bench: Bench, more: &[&str]) -> Self {
        let mut site = Self::new(bench, free_port());
        site.start(more);
        site
    }

    /// A platform that is not up yet.
    pub(crate) fn new(bench: Bench, port: u16) -> Self {
        let store =
            STORE.get().map(|kind| Cluster::fresh_url(kind, &bench).expect("it was there before"));
        Self { bench, store, port, running: None }
    }

    /// A platform that is up on this port.
    pub(crate) fn with_port(port: u16) -> Self {
        let mut site = Self::new(Bench::new(), port);
        site.start(&[]);
        site
    }

    /// Starts it, again after it ended or was killed, and waits until it is ready.
    pub(crate) fn start(&mut self, more: &[&str]) {
        assert!(self.running.is_none(), "it runs already");
        self.launch(more).until("http://");
    }

    /// Starts it, and does not wait until it is ready.
    pub(crate) fn launch(&mut self, more: &[&str]) -> &mut Running {
        let (dir, port) = (self.dir(), self.port.to_string());
        let mut args = vec!["up", "--dir", dir.to_str().expect("text"), "--port", &port];
        if let Some(store) = &self.store {
            args.extend(["--store", store]);
        }
        args.extend_from_slice(more);
        let running = self.bench.start(&args);
        self.running.insert(running)
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.bench.path("up")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Kills it without a word; what it started goes on.
    pub(crate) fn kill(&mut self) {
        let running = self.running.take().expect("it runs");
        running.signal(Signal::SIGKILL);
        running.finish();
    }

    /// Asks it to end by a signal, and waits until it has.
    pub(crate) fn end(&mut self, by: Signal) -> Ran {
        let running = self.running.take().expect("it runs");
        running.signal(by);
        running.finish()
    }

    pub(crate) fn token(&self) -> String {
        let token = self.bench.read("state/token");
        token.trim().to_owned()
    }

    /// `kapell` with these arguments, against this platform.
    pub(crate) fn kapell(&self, args: &[&str]) -> Ran {
        let mut command = self.bench.kapell(args);
        command.env("KAPELL_URL", self.url());
        self.bench.run_command(command)
    }

    /// The same, and returns at once.
    pub(crate) fn begin(&self, args: &[&str]) -> Running {
        let mut command = self.bench.kapell(args);
        command.env("KAPELL_URL", self.url());
        self.bench.start_command(command)
    }

    /// Asks over HTTP. None if nobody answers.
    pub(crate) fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
        ask(self.port, &self.token(), method, path, body)
    }

    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.try_ask(method, path, body).unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        self.ask("GET", path, None).expect(200).json()
    }

    /// Desires a process that runs a shell script.
    pub(crate) fn desire(&self, guid: &str, instances: u32, script: &str) {
        self.ask("POST", "/v1/desired-lrps", Some(&self.lrp(guid, instances, script))).expect(201);
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

    pub(crate) fn task(&self, guid: &str, script: &str) -> Value {
        json!({
            "task_guid": guid,
            "domain": "test",
            "action": {"run": {"path": "/bin/sh", "args": ["-c", script]}},
            "env": [{"name": WORK, "value": self.mark()}],
        })
    }

    /// Waits until a task has completed.
    #[track_caller]
    pub(crate) fn completed(&self, guid: &str) -> Value {
        let path = format!("/v1/tasks/{guid}");
        self.until(&format!("{guid} to complete"), || {
            let task = self.ask("GET", &path, None);
            (task.status == 200).then(|| task.json()).filter(|task| task["state"] == "COMPLETED")
        })
    }

    /// Waits until `kapell explain` tells of this.
    #[track_caller]
    pub(crate) fn explains(&self, what: &str, reason: &str) {
        let mut told = String::new();
        let found = try_eventually(LIMIT, || {
            told = self.kapell(&["explain", what]).stdout;
            told.contains(reason).then_some(())
        });
        assert!(found.is_some(), "no `{reason}` in what is told of {what}:\n{told}");
    }

    /// A directory where work leaves traces.
    pub(crate) fn traces(&self) -> PathBuf {
        let dir = self.bench.path("traces");
        super::fleet::open_dir(&dir);
        dir
    }

    /// Waits until nothing of its work is alive.
    #[track_caller]
    pub(crate) fn until_dead(&self) {
        let mut left = Vec::new();
        let dead = try_eventually(LIMIT, || {
            left = self.work();
            left.extend(self.shims());
            left.is_empty().then_some(())
        });
        assert!(dead.is_some(), "still there: {left:?}");
    }

    fn mark(&self) -> String {
        self.bench.dir().file_name().expect("a name").to_string_lossy().into_owned()
    }

    /// The instances of a process, by index.
    #[track_caller]
    pub(crate) fn instances(&self, guid: &str) -> Vec<Value> {
        let list = self.get(&format!("/v1/actual-lrps?process_guid={guid}"));
        let mut list = list.as_array().expect("a list").clone();
        list.sort_by_key(|lrp| lrp["index"].as_u64());
        list
    }

    /// Waits until exactly `count` instances are there and all are RUNNING.
    #[track_caller]
    pub(crate) fn all_run(&self, guid: &str, count: usize) -> Vec<Value> {
        self.until(&format!("{count} of {guid} to run"), || {
            let all = self.instances(guid);
            let fine = all.len() == count && all.iter().all(|lrp| lrp["state"] == "RUNNING");
            fine.then_some(all)
        })
    }

    /// Waits; what the platform has said is told if that takes too long.
    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        try_eventually(LIMIT, look).unwrap_or_else(|| {
            let lrps = self.try_ask("GET", "/v1/actual-lrps", None).map(|it| it.body);
            panic!("waited {LIMIT:?} for {what}; instances: {lrps:?}")
        })
    }

    /// Every living process of the instances and tasks of this platform.
    pub(crate) fn work(&self) -> Vec<Process> {
        crate::census::with(WORK, &self.mark())
    }

    /// The shims of this platform.
    pub(crate) fn shims(&self) -> Vec<Process> {
        let dir = self.dir().display().to_string();
        crate::census::running(|command| command.contains(&dir) && command.contains("kapell-shim"))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.running = None;
        leave_nothing(|| self.shims().into_iter().chain(self.work()).collect());
    }
}

/// Kills until nothing is found any more: what is just being started is only seen the next time.
pub(crate) fn leave_nothing(find: impl Fn() -> Vec<Process>) {
    let mut none = 0;
    let _best_effort = try_eventually(Duration::from_secs(10), || {
        let found = find();
        for process in &found {
            send(process.pid, Signal::SIGKILL);
        }
        none = if found.is_empty() { none + 1 } else { 0 };
        (none == 2).then_some(())
    });
}

/// One request over a connection of its own.
pub(crate) fn ask(
    port: u16,
    token: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Option<Answer> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, rest) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(rest)? } else { rest.to_owned() };
    Some(Answer { status, body })
}

fn unchunked(mut rest: &str) -> Option<String> {
    let mut whole = String::new();
    loop {
        let (size, more) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.push_str(more.get(..size)?);
        rest = more.get(size + 2..)?;
    }
}
