//! Who may do what: tokens, and cells that join.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Site;
use super::site::ask;
use crate::bench::{Bench, LIMIT, Ran, try_eventually};
use crate::leadership::cluster::{Cluster, Host, Kind, free_port};
use crate::running::Running;

/// A token as a command printed it.
fn token(ran: Ran) -> String {
    ran.expect(0).stdout.trim().to_owned()
}

#[test]
fn tokens_allow_what_they_say_until_they_are_revoked() {
    let mut site = Site::up();
    let run = json!({"run": {"path": "/bin/true"}});
    for domain in ["a", "b"] {
        let task = json!({"task_guid": format!("t-{domain}"), "domain": domain, "action": run});
        site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    }
    let create = ["token", "create", "--name", "ci", "--domain", "a", "--role"];
    let reader = token(site.kapell(&[&create[..], &["reader"]].concat()));
    let operator = token(site.kapell(&[&create[..], &["operator", "--ttl", "1h"]].concat()));
    let as_ = |token: &str, method: &str, path: &str, body: Option<&Value>| {
        ask(site.port, token, method, path, body).expect("an answer")
    };
    let seen = as_(&reader, "GET", "/v1/tasks", None).expect(200).json();
    assert_eq!(seen.as_array().expect("a list").len(), 1, "{seen}");
    as_(&reader, "GET", "/v1/tasks/t-b", None).expect(404);
    let task =
        |guid: &str, domain: &str| json!({"task_guid": guid, "domain": domain, "action": run});
    let refused = as_(&reader, "POST", "/v1/tasks", Some(&task("x", "a"))).expect(403);
    assert!(refused.body.contains("reader `ci` of `a` may not change"), "{}", refused.body);
    as_(&operator, "POST", "/v1/tasks", Some(&task("x", "a"))).expect(201);
    as_(&operator, "POST", "/v1/tasks", Some(&task("y", "b"))).expect(403);
    as_(&operator, "POST", "/v1/tokens", Some(&json!({"role": "operator", "ttl_ms": 1})))
        .expect(403);
    // Commands bear a token just as well, and say why they may not.
    let mut listing = site.bench.kapell(&["task", "list", "-o", "json"]);
    listing.env("KAPELL_URL", site.url()).env("KAPELL_TOKEN", &reader);
    let listed = site.bench.run_command(listing).expect(0).stdout;
    assert!(listed.contains("t-a") && !listed.contains("t-b"), "{listed}");
    let mut cells = site.bench.kapell(&["cells"]);
    cells.env("KAPELL_URL", site.url()).env("KAPELL_TOKEN", &reader);
    site.bench.run_command(cells).expect(1).stderr_has("that needs all domains");
    let list: Value =
        serde_json::from_str(&site.kapell(&["token", "list", "-o", "json"]).expect(0).stdout)
            .expect("JSON");
    let id = |role: &str| {
        let all = list.as_array().expect("a list").iter();
        let found = all.filter(|it| it["role"] == role).map(|it| it["id"].as_str().expect("an id"));
        found.collect::<Vec<_>>()[0].to_owned()
    };
    site.kapell(&["token", "revoke", &id("reader")]).expect(0);
    let refused = as_(&reader, "GET", "/v1/tasks", None).expect(401);
    assert_eq!(refused.json()["code"], "token_revoked");
    // What is acknowledged outlives the host, however it ends.
    site.kill();
    site.start(&[]);
    let as_ = |token: &str| ask(site.port, token, "GET", "/v1/tasks", None).expect("an answer");
    assert_eq!(as_(&reader).expect(401).json()["code"], "token_revoked");
    as_(&operator).expect(200);
    let key = site.bench.path("state/cluster.key");
    assert_eq!(fs::metadata(&key).expect("a key").permissions().mode() & 0o777, 0o600);
    // A host with another key does not work on this store.
    site.end(Signal::SIGINT);
    fs::remove_file(&key).expect("our own");
    let port = site.port.to_string();
    let dir = site.dir();
    let ran = site.bench.run(&["up", "--dir", dir.to_str().expect("text"), "--port", &port]);
    assert_ne!(ran.code(), 0);
    ran.stderr_has("copy the file `cluster.key`");
}

/// A host that is reached by TLS, with certificates that last this long.
struct Joinable {
    cluster: Cluster,
    host: Option<Host>,
    port: u16,
    life: &'static str,
}

impl Joinable {
    fn new(life: &'static str) -> Self {
        let cluster = Cluster::new(Kind::File).expect("no server needed");
        let mut all = Self { cluster, host: None, port: free_port(), life };
        all.start();
        all
    }

    fn start(&mut self) {
        let listen = format!("127.0.0.1:{}", self.port);
        let cluster = &self.cluster;
        let (bench, mut command) = cluster.host_command(&cluster.url, &listen, &self.url(), &[]);
        command.env("KAPELL_CERTIFICATE_LIFE", self.life);
        let running = bench.start_command(command);
        let mut host = Host { running, bench, address: self.url(), listen };
        host.leads(1);
        self.host = Some(host);
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// `kapell` as whoever started the host.
    fn kapell(&self, args: &[&str]) -> Ran {
        let bench = &self.cluster.bench;
        let mut command = bench.kapell(args);
        command.env("KAPELL_URL", self.url()).env("KAPELL_CA", bench.path("state/ca.pem"));
        bench.run_command(command)
    }

    fn join_token(&self, more: &[&str]) -> String {
        token(self.kapell(&[&["token", "create", "--role", "cell-join"], more].concat()))
    }

    /// A cell with nothing of the host's: no token, no certificate.
    fn cell(&self, bench: &Bench, id: &str, more: &[&str]) -> Running {
        let url = self.url();
        bench.start(&[&["cell", "--url", &url, "--id", id, "--log", "json"], more].concat())
    }

    fn json(&self, args: &[&str]) -> Value {
        let ran = self.kapell(&[args, &["-o", "json"]].concat()).expect(0);
        serde_json::from_str(&ran.stdout).expect("JSON")
    }

    /// The guid of the only instance, when it runs.
    #[track_caller]
    fn runs(&self) -> String {
        let found = try_eventually(LIMIT, || {
            let shown = self.json(&["lrp", "show", "clock"]);
            let text = shown.to_string();
            let at = text.split("\"instance_guid\":\"").nth(1)?;
            let guid = at.split('"').next()?.to_owned();
            text.contains("\"RUNNING\"").then_some(guid)
        });
        found.unwrap_or_else(|| panic!("clock does not run"))
    }
}

#[test]
fn a_cell_joins_by_a_token_and_works_on_while_its_certificate_is_renewed() {
    let mut all = Joinable::new("12s");
    let joins = all.join_token(&[]);
    let bench = Bench::new();
    let mut cell = all.cell(&bench, "one", &["--join", &joins]);
    cell.until_told("\"message\":\"present\"", 1);
    assert!(!bench.exists("state/token"), "no secret of the host is needed");
    let file = bench.path("state/cell/certificate.pem");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let script = "while :; do echo tick; sleep 0.1; done";
    all.kapell(&["lrp", "run", "clock", "--", "sh", "-c", script]).expect(0);
    let guid = all.runs();
    // Longer than any of its certificates counts, on both sides.
    cell.until_told("the cell has its next certificate", 3);
    let host = all.host.as_mut().expect("it runs");
    host.running.until_told("this host has its next certificate", 2);
    assert_eq!(all.runs(), guid, "it was started anew");
    all.kapell(&["logs", "--tail", "1", "clock/0"]).expect(0).stdout_has("tick");
    all.kapell(&["task", "run", "--wait", "--", "echo", "hello"]).expect(0).stdout_has("hello");
    // The token counts once, also for another leader.
    let other = Bench::new();
    let refused = all.cell(&other, "two", &["--join", &joins]).finish();
    assert_ne!(refused.code(), 0);
    refused.stderr_has("the token was used: it lets one cell join once");
    all.host.take().expect("it runs").kill();
    all.start();
    let refused = all.cell(&other, "two", &["--join", &joins]).finish();
    refused.stderr_has("the token was used: it lets one cell join once");
    assert_eq!(all.runs(), guid, "it was started anew");
    // A cell that joined needs no token when it comes back.
    cell.signal(Signal::SIGKILL);
    cell.finish();
    let mut cell = all.cell(&bench, "one", &[]);
    cell.until_told("\"message\":\"present\"", 1);
    assert_eq!(all.runs(), guid, "it was started anew");
    all.kapell(&["lrp", "delete", "clock"]).expect(0);
    let gone = try_eventually(LIMIT, || {
        (!all.json(&["lrp", "list"]).to_string().contains("clock")).then_some(())
    });
    assert!(gone.is_some(), "clock is still there");
    cell.signal(Signal::SIGTERM);
    cell.finish();
}

#[test]
fn a_cell_that_may_not_join_is_told_why() {
    let all = Joinable::new("1h");
    let named = all.join_token(&["--cell", "one"]);
    let bench = Bench::new();
    let told = |id: &str, join: &str, text: &str| {
        let ran = all.cell(&bench, id, &["--join", join, "--dir", id]).finish();
        assert_ne!(ran.code(), 0);
        ran.stderr_has(text);
    };
    told("two", &named, "it would be cell `two`");
    told("two", "nonsense", "--join needs a token made by `kapell token create --role cell-join`");
    // By another cluster's sum the host is not known, and is sent nothing.
    let mut foreign = named.clone();
    let end = if foreign.ends_with('0') { "1" } else { "0" };
    foreign.replace_range(foreign.len() - 1.., end);
    told("one", &foreign, "invalid peer certificate");
    let id = all.json(&["token", "list"])[0]["id"].as_str().expect("an id").to_owned();
    all.kapell(&["token", "revoke", &id]).expect(0);
    told("one", &named, "the token was revoked");
}
