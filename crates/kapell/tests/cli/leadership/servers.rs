//! Stores that crash and restart, each a real server of the test's own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::cluster::{Cluster, Host, Kind, LEASE, free_port};
use super::direct::{Direct, Recorder};
use crate::bench::{Bench, skip, try_eventually};
use crate::running::send;

/// PostgreSQL does not run as root.
const USER: &str = "postgres";
const START: Duration = Duration::from_secs(30);

/// A server that keeps its place when it is started again.
pub(super) struct Server {
    kind: Kind,
    /// Its program, or where its programs are.
    programs: PathBuf,
    bench: Bench,
    ports: [u16; 2],
    more: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// Up and answering; the reason if it cannot be had here.
    fn start(kind: Kind) -> Result<Self, String> {
        Self::start_with(kind, &[])
    }

    /// The same, with more arguments.
    pub(super) fn start_with(kind: Kind, more: &[&str]) -> Result<Self, String> {
        let variable = match kind {
            Kind::File => return Err("a file store has no server".to_owned()),
            Kind::Etcd => "KAPELL_TEST_ETCD_BIN",
            Kind::Postgres => "KAPELL_TEST_POSTGRES_BIN",
            Kind::Cassandra => return Err("it has a test of its own".to_owned()),
            Kind::DynamoDb => "KAPELL_TEST_DYNAMODB_BIN",
        };
        let programs = std::env::var_os(variable).ok_or(format!("{variable} names no program"))?;
        let (ports, bench) = ([free_port(), free_port()], Bench::new());
        let more = more.iter().map(|&word| word.to_owned()).collect();
        let mut server = Self { kind, programs: programs.into(), bench, ports, more, child: None };
        if kind == Kind::Postgres {
            server.furnish()?;
        }
        server.go_on();
        Ok(server)
    }

    pub(super) fn url(&self) -> String {
        let port = self.ports[0];
        match self.kind {
            Kind::File | Kind::Cassandra | Kind::Etcd => format!("etcd://127.0.0.1:{port}/test"),
            Kind::Postgres => format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            Kind::DynamoDb => {
                let endpoint = format!("endpoint=http://127.0.0.1:{port}");
                format!("dynamodb://local/test?{endpoint}&credentials=none&create=true&pool=2")
            }
        }
    }

    fn furnish(&self) -> Result<(), String> {
        let dir = self.bench.path("postgres");
        std::fs::create_dir(&dir).map_err(|error| error.to_string())?;
        if is_root() {
            // Both the directory and the way to it.
            run(Command::new("chown").args(["-R", USER]).arg(&dir))?;
            run(Command::new("chmod").arg("711").arg(self.bench.dir()))?;
        }
        let mut initdb = self.postgres("initdb");
        initdb.arg("-D").arg(dir.join("data")).current_dir(&dir);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        run(&mut initdb)
    }

    fn postgres(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        if !is_root() {
            return self.bench.command(program.to_str().expect("a path"));
        }
        let mut command = self.bench.command("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
        command
    }

    fn command(&self) -> Command {
        let [port, peer] = self.ports;
        if self.kind == Kind::Postgres {
            let dir = self.bench.path("postgres");
            let mut command = self.postgres("postgres");
            command.arg("-D").arg(dir.join("data")).current_dir(dir);
            for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories="] {
                command.args(["-c", setting]);
            }
            command.args(["-c", &format!("port={port}"), "-c", "shared_buffers=16MB"]);
            command.args(&self.more);
            return command;
        }
        if self.kind == Kind::DynamoDb {
            let mut command = self.bench.command(self.programs.to_str().expect("a path"));
            command.args(["-port", &port.to_string(), "-sharedDb", "-disableTelemetry"]);
            command.arg("-dbPath").arg(self.bench.dir()).env("TMPDIR", self.bench.dir());
            command.args(&self.more);
            return command;
        }
        let (client, peer) =
            (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
        let mut command = self.bench.command(self.programs.to_str().expect("a path"));
        command.arg("--data-dir").arg(self.bench.path("data"));
        command.args(["--name", "own", "--logger", "zap", "--log-outputs", "stderr"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("own={peer}")]).args(&self.more);
        command
    }

    /// What a program that comes with the server says; the reason if it is not there or fails.
    pub(super) fn tool(&self, args: &[&str]) -> Result<String, String> {
        let port = self.ports[0];
        let mut command = if self.kind == Kind::Postgres {
            let mut command =
                self.bench.command(self.programs.join("psql").to_str().unwrap_or_default());
            // Whatever the database says, this may write.
            command.env("PGOPTIONS", "-c default_transaction_read_only=off");
            command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres", "-At"]);
            command
        } else {
            let etcdctl = self.programs.with_file_name("etcdctl");
            let mut command = self.bench.command(etcdctl.to_str().unwrap_or_default());
            command.env("ETCDCTL_API", "3").arg(format!("--endpoints=http://127.0.0.1:{port}"));
            command
        };
        let output = command.args(args).output().map_err(|error| format!("{args:?}: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        output.status.success().then(|| text(&output.stdout)).ok_or_else(|| text(&output.stderr))
    }

    /// Starts it, again and again while the children of a killed one keep it from starting.
    #[track_caller]
    fn go_on(&mut self) {
        let up = try_eventually(START, || {
            let ended = self
                .child
                .as_mut()
                .is_none_or(|child| child.try_wait().expect("it is our child").is_some());
            if ended {
                let mut command = self.command();
                command.stdout(Stdio::null()).stderr(Stdio::null());
                self.child = Some(command.spawn().expect("the server starts"));
            }
            Direct::try_open(&self.url()).ok().map(drop)
        });
        assert!(up.is_some(), "{:?} does not answer", self.kind);
    }

    fn end(&mut self, signal: Signal) {
        let Some(mut child) = self.child.take() else { return };
        send(i32::try_from(child.id()).expect("a process id"), signal);
        child.wait().expect("it is our child");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Signal::SIGKILL);
        // The children of PostgreSQL notice it soon and go, and let go of the directory.
        try_eventually(START, || self.bench.processes().is_empty().then_some(()));
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| format!("{name}: {}", text.trim()))
}

pub(super) fn somebody_leads_after_a_restart(kind: Kind, name: &str, signal: Signal) {
    let mut server = match Server::start(kind) {
        Ok(server) => server,
        Err(reason) => return skip(&format!("leadership::servers::{name}"), &reason),
    };
    let cluster = Cluster { bench: Bench::new(), kind, url: server.url() };
    let mut hosts = [cluster.host(&[]), cluster.host(&[])];
    let led = try_eventually(START, || hosts.iter_mut().position(Host::has_led));
    let first = led.expect("one leads");
    assert_eq!(hosts[first].leads(1), 1);
    hosts[1 - first].listens();
    let recorder = Recorder::start(&cluster.url);
    let before = cluster.seat().expect("a seat");
    server.end(signal);
    server.go_on();
    // Whoever lost the seat waits for the record to run out, which may begin to count anew.
    let bound = LEASE * 2 + Duration::from_secs(2);
    let leads = try_eventually(bound, || {
        let answers = hosts.each_ref().map(|host| host.get(&cluster, "/leader").stdout);
        let here = answers.each_ref().map(|answer| answer.contains("\"here\":true"));
        assert_ne!(here, [true, true], "{answers:?}");
        let ran = cluster.seats();
        let known = ran.status.success() && ran.stdout.contains("\"owner\": \"");
        here.iter().position(|here| *here).filter(|_| known)
    });
    let leads = leads.unwrap_or_else(|| {
        let logs = hosts.each_mut().map(|host| host.running.stderr_so_far());
        panic!("nobody leads:\n{}\n\n{}", logs[0], logs[1]);
    });
    let after = cluster.seat().expect("a seat");
    assert_eq!(after.address.as_deref(), Some(&*hosts[leads].address));
    assert!(after.owner == before.owner || after.epoch > before.epoch, "{before:?} {after:?}");
    recorder.finish();
    for host in hosts {
        host.stop().expect(0);
    }
}

#[test]
fn somebody_leads_after_a_crash_of_etcd() {
    let name = "somebody_leads_after_a_crash_of_etcd";
    somebody_leads_after_a_restart(Kind::Etcd, name, Signal::SIGKILL);
}

#[test]
fn somebody_leads_after_a_crash_of_postgres() {
    let name = "somebody_leads_after_a_crash_of_postgres";
    somebody_leads_after_a_restart(Kind::Postgres, name, Signal::SIGKILL);
}

#[test]
fn somebody_leads_after_a_restart_of_postgres() {
    let name = "somebody_leads_after_a_restart_of_postgres";
    somebody_leads_after_a_restart(Kind::Postgres, name, Signal::SIGINT);
}
