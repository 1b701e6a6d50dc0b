//! Stores that answer and take no writes, each a real server of the test's own.

use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::{Cluster, Host, Kind};
use super::servers::Server;
use crate::bench::{Bench, LIMIT, skip, try_eventually};
use crate::platform::site::{Answer, ask};

/// A host on a server of its own that leads.
struct Scene {
    server: Server,
    cluster: Cluster,
    host: Host,
    pid: i32,
}

impl Scene {
    fn open(kind: Kind, more: &[&str]) -> Result<Self, String> {
        let server = Server::start_with(kind, more)?;
        let cluster = Cluster { bench: Bench::new(), kind, url: server.url() };
        let mut host = cluster.host(&[]);
        host.leads(1);
        let pid = host.running.pid();
        Ok(Self { server, cluster, host, pid })
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
        let token = std::fs::read_to_string(self.cluster.token()).expect("the token");
        let port = self.host.listen.rsplit(':').next().and_then(|port| port.parse().ok());
        ask(port.expect("a port"), token.trim(), method, path, body)
    }

    #[track_caller]
    fn until<T>(&mut self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let found = try_eventually(LIMIT, || look(self));
        found.unwrap_or_else(|| {
            let log = self.host.running.stderr_so_far();
            panic!("waited {LIMIT:?} for {what}:\n{log}")
        })
    }

    fn health(&self) -> Option<Value> {
        self.ask("GET", "/healthz", None).filter(|it| it.status == 200).map(|it| it.json())
    }

    fn writes(&self, number: u64) -> Option<()> {
        let path = format!("/v1/domains/d{number}");
        let put = self.ask("PUT", &path, Some(&json!({})));
        put.filter(|it| it.status < 300).map(drop)
    }

    /// It is refused with a reason, told in the state of the host, and goes on with nobody starting anything.
    #[track_caller]
    fn recovers(mut self, make_well: impl FnOnce(&Server)) {
        let problem = self.until("a refusal", |scene| {
            let answer = scene.ask("PUT", "/v1/domains/refused", Some(&json!({})))?;
            (answer.status == 503).then(|| answer.json())
        });
        assert!(problem["code"].is_string() && problem["message"].is_string(), "{problem}");
        let health = self.until("a state", |scene| {
            scene.health().filter(|health| health["writes"] == "refused")
        });
        assert!(health["reason"].is_string(), "{health}");
        make_well(&self.server);
        self.until("writes", |scene| scene.writes(2));
        self.until("a state", |scene| {
            scene.health().filter(|health| health["writes"] == "accepted")
        });
        assert_eq!(self.host.running.pid(), self.pid);
        self.host.stop().expect(0);
    }
}

#[test]
fn a_host_goes_on_when_etcd_has_space_again() {
    let name = "leadership::refusing::a_host_goes_on_when_etcd_has_space_again";
    let quota = ["--quota-backend-bytes", "3000000"];
    let mut scene = match Scene::open(Kind::Etcd, &quota) {
        Ok(scene) => scene,
        Err(reason) => return skip(name, &reason),
    };
    if let Err(reason) = scene.server.tool(&["version"]) {
        return skip(name, &reason);
    }
    let lrp = json!({
        "process_guid": "p", "domain": "d", "instances": 0, "action": {"run": {"path": "/bin/true"}},
    });
    let made = scene.ask("POST", "/v1/desired-lrps", Some(&lrp)).expect("an answer");
    made.expect(201);
    // The same record again and again: what it was before can be compacted.
    scene.until("no space", |scene| {
        let letters = ["x", "y"];
        letters.iter().find_map(|letter| {
            let change = json!({ "annotation": letter.repeat(9_000) });
            let answer = scene.ask("PATCH", "/v1/desired-lrps/p", Some(&change))?;
            (answer.status == 503).then_some(())
        })
    });
    let alarms = scene.server.tool(&["alarm", "list"]).expect("etcdctl");
    assert!(alarms.contains("NOSPACE"), "{alarms}");
    scene.recovers(|server| {
        let status = server.tool(&["endpoint", "status", "--write-out", "json"]).expect("etcdctl");
        let status: Value = serde_json::from_str(&status).expect("JSON");
        let revision = status[0]["Status"]["header"]["revision"].to_string();
        server.tool(&["compact", &revision]).expect("etcdctl");
        server.tool(&["defrag"]).expect("etcdctl");
        server.tool(&["alarm", "disarm"]).expect("etcdctl");
    });
}

#[test]
fn a_host_goes_on_when_postgres_takes_writes_again() {
    let name = "leadership::refusing::a_host_goes_on_when_postgres_takes_writes_again";
    let mut scene = match Scene::open(Kind::Postgres, &[]) {
        Ok(scene) => scene,
        Err(reason) => return skip(name, &reason),
    };
    if let Err(reason) = scene.server.tool(&["-c", "SELECT 1"]) {
        return skip(name, &reason);
    }
    scene.until("a write", |scene| scene.writes(1));
    let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let set = "ALTER DATABASE postgres SET default_transaction_read_only = on";
    scene.server.tool(&["-c", set, "-c", all]).expect("psql");
    // A renewal is a write there, so nobody leads for as long as that lasts.
    scene.until("it to be out", |scene| {
        scene.health().filter(|health| health["status"] == "standby")
    });
    crate::bench::pause(Duration::from_secs(2));
    scene.recovers(|server| {
        let reset = "ALTER DATABASE postgres RESET default_transaction_read_only";
        server.tool(&["-c", reset]).expect("psql");
    });
}
