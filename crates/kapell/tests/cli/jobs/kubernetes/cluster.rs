//! The cluster itself: what it counted, what it still has, and what happens to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kapell_backend::kubernetes::{Calls, Client, Event, Watched, watch};
use kapell_core::kubernetes::{Access, Cluster as Settings, Job, Pod, RUN_ID, label};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::bench::{Bench, LIMIT, eventually, skip, try_eventually};
use crate::census::has_ended;

pub(in crate::jobs) const NAMESPACE: &str = "default";
const API_SERVER: &str = "kube-apiserver";

/// The cluster that tests are told of.
pub(in crate::jobs) struct Cluster {
    kubeconfig: PathBuf,
}

/// Writes the file of clusters that hosts are told of.
pub(super) fn about(bench: &Bench, more: &str) {
    let main = format!("kubeconfig: kubeconfig, namespaces: [{NAMESPACE}]{more}");
    bench.write("clusters.yaml", format!("main: {{{main}}}\n"));
}

impl Cluster {
    /// Without a cluster the test counts as skipped, not as passed.
    pub(in crate::jobs) fn find(test: &str) -> Option<Self> {
        let Some(kubeconfig) = std::env::var_os("KAPELL_TEST_KUBERNETES").map(PathBuf::from) else {
            skip(test, "KAPELL_TEST_KUBERNETES names no kubeconfig");
            return None;
        };
        Some(Self { kubeconfig })
    }

    /// Where hosts are started that know it.
    pub(in crate::jobs) fn bench(&self) -> Bench {
        self.bench_with(|kubeconfig| kubeconfig)
    }

    /// The same, with another kubeconfig.
    pub(in crate::jobs) fn bench_with(&self, change: impl FnOnce(String) -> String) -> Bench {
        let bench = Bench::new();
        let kubeconfig = fs::read_to_string(&self.kubeconfig).expect("a kubeconfig");
        bench.write("kubeconfig", change(kubeconfig));
        about(&bench, "");
        let file = bench.path("clusters.yaml");
        bench.set("KAPELL_KUBERNETES_CLUSTERS", file)
    }

    /// A file next to its kubeconfig.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.kubeconfig.with_file_name(name)
    }

    /// Where its API server listens.
    pub(in crate::jobs) fn server(&self) -> String {
        let kubeconfig = fs::read_to_string(&self.kubeconfig).expect("a kubeconfig");
        let (_, rest) = kubeconfig.split_once("https://").expect("the address of its server");
        rest.chars()
            .take_while(|letter| letter.is_ascii_digit() || ".:".contains(*letter))
            .collect()
    }

    /// Every request that it wrote down.
    fn audit(&self) -> Vec<Value> {
        let text = fs::read(self.kubeconfig.with_file_name("audit.log")).expect("its audit log");
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// How many pods it made for each attempt of a run, as it counted them itself.
    pub(in crate::jobs) fn pods_of(&self, run: &str) -> BTreeMap<u32, usize> {
        self.pods_of_all().remove(run).unwrap_or_default()
    }

    /// The same of all runs that it ever had.
    pub(in crate::jobs) fn pods_of_all(&self) -> BTreeMap<String, BTreeMap<u32, usize>> {
        let mut runs: BTreeMap<String, BTreeMap<u32, usize>> = BTreeMap::new();
        for line in self.audit() {
            let about = &line["requestObject"]["metadata"]["annotations"];
            let is_pod = line["verb"] == "create"
                && line["objectRef"]["resource"] == "pods"
                && line["objectRef"]["subresource"].is_null()
                && line["responseStatus"]["code"] == 201;
            let run = about["kapell/run-id"].as_str().filter(|_| is_pod);
            let attempt = about["kapell/attempt"].as_str().and_then(|it| it.parse().ok());
            if let (Some(run), Some(attempt)) = (run, attempt) {
                *runs.entry(run.to_owned()).or_default().entry(attempt).or_default() += 1;
            }
        }
        runs
    }

    /// Waits until nothing of a run is left, neither Jobs nor pods.
    #[track_caller]
    pub(in crate::jobs) fn has_nothing_of(&self, run: &str) {
        let selector = format!("{RUN_ID}={}", label(run));
        let mut left = (0, 0);
        let gone = try_eventually(LIMIT, || {
            left = (self.list::<Job>(&selector).len(), self.list::<Pod>(&selector).len());
            (left == (0, 0)).then_some(())
        });
        assert!(gone.is_some(), "of {run} there are Jobs and pods left: {left:?}");
    }

    /// The names of the Jobs of a run.
    pub(in crate::jobs) fn jobs_of(&self, run: &str) -> Vec<String> {
        let jobs = self.list::<Job>(&format!("{RUN_ID}={}", label(run)));
        jobs.into_iter().map(|job| job.metadata.name).collect()
    }

    pub(in crate::jobs) fn delete_job(&self, name: &str) {
        self.ask(async |client| {
            let deleted = client.delete_job(NAMESPACE, name, &Calls::default()).await;
            assert!(deleted.expect("an answer"), "there is no Job `{name}`");
        });
    }

    fn list<T: Watched>(&self, selector: &str) -> Vec<T> {
        self.ask(async |client| {
            let (tell, mut told) = mpsc::unbounded_channel();
            let tell = move |event| {
                if let Event::All(all) = event {
                    drop(tell.send(all));
                }
            };
            tokio::select! {
                () = watch(client, NAMESPACE.to_owned(), selector.to_owned(), tell) => Vec::new(),
                all = told.recv() => all.unwrap_or_default(),
            }
        })
    }

    fn ask<T>(&self, asks: impl AsyncFnOnce(Client) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let path = self.kubeconfig.clone();
            let settings = Settings::new(Access::Kubeconfig { path, context: None });
            asks(Client::open("main", &settings).await.expect("a client")).await
        })
    }

    /// None while it is being written down.
    fn written_pid(&self) -> Option<Pid> {
        let path = self.kubeconfig.with_file_name("pids").join(API_SERVER);
        let pid = fs::read_to_string(path).expect("its pid");
        pid.trim().parse().ok().map(Pid::from_raw)
    }

    fn api_server(&self) -> Pid {
        eventually("the pid of the API server", || self.written_pid())
    }

    pub(in crate::jobs) fn signal_api_server(&self, signal: Signal) {
        kill(self.api_server(), signal).expect("it runs");
    }

    /// Ends it without a word, and starts it again. It listens some seconds later.
    pub(in crate::jobs) fn restart_api_server(&self) {
        let before = self.api_server();
        self.signal_api_server(Signal::SIGKILL);
        eventually("the API server to be gone", || has_ended(before.as_raw()).then_some(()));
        let script = self.kubeconfig.with_file_name("start").join(API_SERVER);
        let mut start = Command::new("setsid");
        start.arg("--fork");
        start
            .arg("sh")
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(start.status().expect("it starts").success());
        eventually("another API server", || self.written_pid().filter(|pid| *pid != before));
    }
}
