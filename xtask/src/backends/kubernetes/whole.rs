//! The whole life of a real cluster.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::super::life::{self, Term};
use super::super::state::State;
use super::super::table::{SERVERS, Server};
use super::*;
use crate::scratch::Scratch;

/// Where programs of a cluster are: set in runs that could build one.
const PROGRAMS: &str = "KAPELL_TEST_KUBERNETES_BIN";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const TEST: &str = "a_cluster_runs_a_job_and_leaves_nothing_behind";

fn server() -> &'static Server {
    SERVERS.iter().find(|server| server.name == "kubernetes").unwrap()
}

/// The programs of the machine's own cache, and nothing else of it.
fn cache(scratch: &Scratch) -> Option<Cache> {
    let Some(programs) = std::env::var_os(PROGRAMS) else {
        let file = std::env::var_os("KAPELL_TEST_SKIPS")?;
        let mut file = fs::OpenOptions::new().append(true).open(file).unwrap();
        writeln!(file, "SKIP {TEST}: {PROGRAMS} names no programs").unwrap();
        return None;
    };
    let cache = Cache::at(scratch.path());
    symlink(programs, build::directory(&cache)).unwrap();
    Some(cache)
}

/// All that a machine has of what a cluster makes besides files of its own.
fn world() -> BTreeSet<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mut world: BTreeSet<String> = mounts.lines().map(|line| format!("mount {line}")).collect();
    let mut add = |kind: &str, dir: &Path| {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            world.insert(format!("{kind} {}", entry.path().display()));
        }
    };
    for root in leftovers::hierarchies(&mounts) {
        add("group", &root);
    }
    for dir in ["/var/lib", "/var/lib/cni", "/var/lib/kubelet", "/var/log", "/var/log/pods"] {
        add("file", Path::new(dir));
    }
    for dir in ["/run", "/run/containerd", "/run/containerd/s", "/run/netns", "/etc/cni", "/opt"] {
        add("file", Path::new(dir));
    }
    add("link", Path::new("/sys/class/net"));
    for program in ["nft list ruleset", "iptables-save", "ip route"] {
        let mut words = program.split(' ');
        let mut list = Command::new(words.next().unwrap());
        // What is not installed has made nothing.
        let list = list.args(words).stderr(Stdio::null()).output();
        let list = list.map(|list| list.stdout).unwrap_or_default();
        let list = String::from_utf8(list).unwrap();
        world.extend(list.lines().filter(|line| !line.starts_with('#')).map(str::to_owned));
    }
    for name in kernel::CHANGED {
        let value = fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
        world.insert(format!("{name} {value}"));
    }
    world
}

/// How many processes of clusters there are. What has ended and was not yet waited for has no command line.
fn processes() -> usize {
    let lines = fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    let is_of_cluster = |line: &String| {
        let program = line.split('\0').next().unwrap_or_default();
        let program = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        ["containerd", "kube", "unshare"].iter().any(|name| program.starts_with(name))
    };
    lines.filter(is_of_cluster).count()
}

/// A request with the file of `user`: status and body.
fn ask(dir: &Path, user: &str, path: &str, body: Option<&Value>) -> (String, Value) {
    let config = fs::read_to_string(dir.join("kubeconfig")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();
    let keys = dir.join("keys");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--max-time", "10", "--write-out", "\n%{http_code}", "--cacert"]);
    curl.arg(keys.join("ca.pem")).arg("--cert").arg(keys.join(format!("{user}.pem")));
    curl.arg("--key").arg(keys.join(format!("{user}.key"))).arg(format!("{server}{path}"));
    if let Some(body) = body {
        curl.args(["--header", "Content-Type: application/json", "--data", &body.to_string()]);
    }
    let answer = String::from_utf8(curl.output().unwrap().stdout).unwrap();
    let (body, status) = answer.rsplit_once('\n').unwrap();
    (status.to_owned(), serde_json::from_str(body).unwrap_or_default())
}

fn job(name: &str, image: &str, script: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": image, "command": ["sh", "-c", script]}],
        }}},
    })
}

fn complete(dir: &Path, name: &str, script: &str) {
    let (status, answer) = ask(dir, "admin", JOBS, Some(&job(name, image::BUSYBOX, script)));
    assert_eq!(status, "201", "{answer}");
    let mut last = Value::Null;
    let done = process::poll(LONGEST, || {
        last = ask(dir, "admin", &format!("{JOBS}/{name}"), None).1;
        last["status"]["succeeded"] == 1
    });
    assert!(done, "{:#}", last["status"]);
}

/// Whether the only pod of a Job does its work.
fn is_running(dir: &Path, job: &str) -> bool {
    let path = format!("/api/v1/namespaces/default/pods?labelSelector=job-name={job}");
    ask(dir, "admin", &path, None).1["items"][0]["status"]["phase"] == "Running"
}

/// How many pods of a Job the API server was told to make, by its own account.
fn pods_made(dir: &Path, job: &str) -> usize {
    let log = fs::read_to_string(dir.join("audit.log")).unwrap();
    let made = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_of_job = |entry: &Value| {
        let labels = &entry["requestObject"]["metadata"]["labels"];
        entry["verb"] == "create"
            && entry["objectRef"]["resource"] == "pods"
            && labels["batch.kubernetes.io/job-name"] == job
    };
    made.filter(is_of_job).count()
}

/// As tests do it: by the pid of the server and the script that becomes it.
fn restart_server(dir: &Path) {
    let old = pid(dir, "kube-apiserver").unwrap();
    process::end(old, "kube-apiserver", dir, libc::SIGKILL).unwrap();
    assert!(!Api::of(dir).is_ready());
    let mut server = script(dir, "kube-apiserver").spawn().unwrap();
    assert!(process::poll(LONGEST, || Api::of(dir).is_ready()));
    assert_ne!(pid(dir, "kube-apiserver"), Some(old));
    assert!(server.try_wait().unwrap().is_none());
}

#[test]
fn a_cluster_runs_a_job_and_leaves_nothing_behind() {
    let scratch = Scratch::new("kubernetes").unwrap();
    let Some(cache) = cache(&scratch) else { return };
    let (before, processes_before) = (world(), processes());
    let mut state = State::default();
    let (record, _) = life::ensure(&cache, &mut state, server(), Term::UntilDown).unwrap();
    let dir: PathBuf = record.dir.clone();
    let outcome = std::panic::catch_unwind(|| {
        assert_eq!(record.endpoint, dir.join("kubeconfig").to_string_lossy());
        assert!(world() != before && processes() > processes_before, "nothing to clear up");
        complete(&dir, "first", "exit 0");
        assert_eq!(ask(&dir, "stranger", "/api/v1/pods", None).0, "403");
        assert_eq!(ask(&dir, "expired", "/api/v1/pods", None).0, "401");
        restart_server(&dir);
        // Pods find the API server, and it knows them by their account.
        let token = "/var/run/secrets/kubernetes.io/serviceaccount";
        let reach =
            format!("nc -w 5 $KUBERNETES_SERVICE_HOST 443 </dev/null && test -s {token}/token");
        complete(&dir, "second", &reach);
        assert_eq!((pods_made(&dir, "first"), pods_made(&dir, "second")), (1, 1));
        // Ended while it runs.
        let endless = job("third", image::BUSYBOX, "sleep 1000");
        assert_eq!(ask(&dir, "admin", JOBS, Some(&endless)).0, "201");
        assert!(process::poll(LONGEST, || is_running(&dir, "third")));
    });
    life::stop(&cache, &mut state, server()).unwrap();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    let after = world();
    let new: Vec<&String> = after.difference(&before).collect();
    let gone: Vec<&String> = before.difference(&after).collect();
    assert!(new.is_empty() && gone.is_empty(), "new: {new:#?}, gone: {gone:#?}");
    assert_eq!(processes(), processes_before);
    assert!(!dir.exists());
}
