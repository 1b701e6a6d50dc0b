//! Some hosts on one store.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::bench::{Bench, Ran, eventually, try_eventually};
use crate::running::Running;

/// Short, and as long as etcd needs.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Etcd,
    Postgres,
    Cassandra,
    DynamoDb,
}

/// A store of its own, and what hosts on it share.
pub(crate) struct Cluster {
    pub(crate) bench: Bench,
    pub(crate) kind: Kind,
    pub(crate) url: String,
}

/// A seat as `kapell seats` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeatRow {
    pub(crate) epoch: u64,
    pub(crate) owner: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) expires_in_ms: Option<u64>,
}

impl Cluster {
    /// A fresh store; the reason if there is no server for it.
    pub(crate) fn new(kind: Kind) -> Result<Self, String> {
        let bench = Bench::new();
        let url = Self::fresh_url(kind, &bench)?;
        Ok(Self { bench, kind, url })
    }

    /// A store that nobody else has; the reason if there is no server for it.
    pub(crate) fn fresh_url(kind: Kind, bench: &Bench) -> Result<String, String> {
        let unique = bench.dir().file_name().expect("a name").to_string_lossy().into_owned();
        let unique: String =
            unique.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        Ok(match kind {
            Kind::File => format!("file:{}", bench.path("store").display()),
            Kind::Etcd => {
                let server = server("KAPELL_TEST_ETCD", "etcd")?;
                format!("etcd://{}/{unique}", server.trim_start_matches("http://"))
            }
            Kind::Postgres => {
                format!("{}?schema=k{unique}", server("KAPELL_TEST_POSTGRES", "PostgreSQL")?)
            }
            Kind::Cassandra => {
                let server = server("KAPELL_TEST_CASSANDRA", "Cassandra")?;
                format!("{server}/commands/{unique}?replication=1")
            }
            Kind::DynamoDb => {
                let server = server("KAPELL_TEST_DYNAMODB", "DynamoDB")?;
                // It does one transaction at a time, and renewals wait behind those that came before.
                let table = format!("dynamodb://local/cli-{unique}");
                format!("{table}?endpoint={server}&credentials=none&create=true&pool=2")
            }
        })
    }

    /// Where the clients of this cluster are served, for those who put something in between.
    pub(crate) fn server(&self) -> String {
        let rest = self.url.rsplit_once("://").expect("a server").1;
        let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
        rest.split(['/', '?', '&']).next().unwrap_or_default().to_owned()
    }

    /// A host on the cluster's store, with its own address.
    pub(crate) fn host(&self, more: &[&str]) -> Host {
        self.host_on(&self.url, free_port(), more)
    }

    pub(crate) fn host_on(&self, url: &str, port: u16, more: &[&str]) -> Host {
        let address = format!("127.0.0.1:{port}");
        self.host_at(url, &address, &address, more)
    }

    pub(crate) fn host_at(&self, url: &str, listen: &str, advertise: &str, more: &[&str]) -> Host {
        let (bench, command) = self.host_command(url, listen, advertise, more);
        let running = bench.start_command(command);
        Host { running, bench, address: advertise.to_owned(), listen: listen.to_owned() }
    }

    /// What starts a host. `more` may name another lease.
    pub(crate) fn host_command(
        &self,
        url: &str,
        listen: &str,
        advertise: &str,
        more: &[&str],
    ) -> (Bench, Command) {
        // A bench of its own: what ends one host must not end the others.
        let bench = Bench::new().set("KAPELL_STATE_DIR", self.bench.path("state"));
        let mut command = bench.kapell(&["host", "--store", url, "--log", "json"]);
        command.args(["--listen", listen, "--advertise", advertise]).args(more);
        if !more.contains(&"--lease") {
            command.arg("--lease").arg(format!("{}s", LEASE.as_secs()));
        }
        (bench, command)
    }

    pub(crate) fn seats(&self) -> Ran {
        self.bench.run(&["seats", "--store", &self.url, "--output", "json"])
    }

    /// The only seat, if it was ever held.
    pub(crate) fn seat(&self) -> Option<SeatRow> {
        let rows: Value = serde_json::from_str(&self.seats().expect(0).stdout).expect("JSON");
        let row = rows.as_array()?.first()?;
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        Some(SeatRow {
            epoch: row["epoch"].as_u64()?,
            owner: text("owner"),
            address: text("address"),
            expires_in_ms: row["expires_in_ms"].as_u64(),
        })
    }

    pub(crate) fn token(&self) -> PathBuf {
        self.bench.path("state/token")
    }
}

fn server(variable: &str, name: &str) -> Result<String, String> {
    std::env::var(variable).map_err(|_| format!("there is no {name} server here"))
}

/// A port to listen on in a moment. Below those that the system gives to connections: one of these would be given to
/// somebody else's meanwhile, now and then.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("a range");
    let given: u32 = range.split_whitespace().next().and_then(|it| it.parse().ok()).expect("ports");
    let first = given / 3;
    // Programs that run side by side begin far apart.
    let own = std::process::id().wrapping_mul(4001);
    loop {
        let number = own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(first + number % (given - first)).expect("a port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// One host process.
pub(crate) struct Host {
    pub(crate) running: Running,
    pub(crate) bench: Bench,
    pub(crate) address: String,
    /// Where it listens, if that is not what it tells others.
    pub(crate) listen: String,
}

impl Host {
    /// Waits until it has taken a seat for the `count`th time; the epoch of that.
    #[track_caller]
    pub(crate) fn leads(&mut self, count: usize) -> u64 {
        self.running.until_told("\"message\":\"leading\"", count);
        let log = self.running.stderr_so_far();
        let mut lines = log.lines().filter(|line| line.contains("\"message\":\"leading\""));
        let line: Value = serde_json::from_str(lines.next_back().expect("it leads")).expect("JSON");
        line["epoch"].as_u64().expect("an epoch")
    }

    /// From when to when it led, as its log says; none if that has not ended.
    pub(crate) fn reigns(&mut self) -> Vec<(String, Option<String>)> {
        let log = self.running.stderr_so_far();
        let mut reigns: Vec<(String, Option<String>)> = Vec::new();
        for line in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let at = line["timestamp"].as_str().unwrap_or_default().to_owned();
            match line["message"].as_str() {
                Some("leading") => reigns.push((at, None)),
                Some("no longer leading") => reigns.last_mut().expect("it led").1 = Some(at),
                Some(_) | None => {}
            }
        }
        reigns
    }

    /// Waits until it is gone, or has said that it starts over without its seat.
    #[track_caller]
    pub(crate) fn is_out(&mut self, within: Duration) {
        let out = try_eventually(within, || {
            let log = self.running.stderr_so_far();
            let words = ["kapell host: killed: ", "; starting over"];
            words.iter().any(|word| log.contains(word)).then_some(())
        });
        assert!(out.is_some(), "not within {within:?}:\n{}", self.running.stderr_so_far());
    }

    /// Waits until it listens, so that it is known to be up and waiting.
    #[track_caller]
    pub(crate) fn listens(&mut self) {
        self.running.until_told("\"message\":\"listening\"", 1);
    }

    pub(crate) fn has_led(&mut self) -> bool {
        self.running.stderr_so_far().contains("\"message\":\"leading\"")
    }

    /// Ends it without a word.
    pub(crate) fn kill(self) -> Instant {
        self.running.signal(Signal::SIGKILL);
        let at = Instant::now();
        self.running.finish();
        at
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(self) -> Ran {
        self.running.signal(Signal::SIGTERM);
        self.running.finish()
    }

    /// What it answers over HTTP.
    pub(crate) fn get(&self, cluster: &Cluster, path: &str) -> Ran {
        let token = std::fs::read_to_string(cluster.token()).expect("the token");
        let mut curl = self.bench.command("curl");
        let header = format!("Authorization: Bearer {}", token.trim());
        curl.args(["-s", "-m", "10", "-H", &header, &format!("http://{}{path}", self.listen)]);
        self.bench.run_command(curl)
    }
}

/// Waits until the seat is as wanted.
#[track_caller]
pub(crate) fn seat_becomes(
    cluster: &Cluster,
    what: &str,
    is: impl Fn(&SeatRow) -> bool,
) -> SeatRow {
    eventually(what, || cluster.seat().filter(|row| is(row)))
}
