//! A server of a test's own, which may be stopped and killed: the one that all tests share with other ports and an empty
//! directory.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kapell_store::cassandra::Cassandra;
use kapell_store::{Error, How};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::time::{Instant, interval};

use crate::group::server;

const LONGEST: Duration = Duration::from_secs(90);

/// Ends with its owner.
#[derive(Debug)]
pub(super) struct Own {
    dir: TempDir,
    at: SocketAddr,
    running: Child,
}

impl Own {
    /// Starts it. It may take a while until it answers.
    pub(super) fn start(test: &str) -> Option<Self> {
        let shared = server(test, "KAPELL_TEST_CASSANDRA")?;
        let template = server(test, "KAPELL_TEST_CASSANDRA_DIR")?;
        let dir = tempfile::tempdir().expect("a directory for a server");
        let ports = [free_port(), free_port()];
        let (_, old) = shared.rsplit_once(':').expect("a port");
        copy(Path::new(&template), dir.path(), old, ports);
        let running = spawn(dir.path());
        Some(Self { dir, at: (Ipv4Addr::LOCALHOST, ports[0]).into(), running })
    }

    fn url(&self) -> String {
        format!("cassandra://cassandra:cassandra@{}/own?replication=1", self.at)
    }

    /// Opens a store as soon as the server lets it.
    pub(super) async fn store(&self, how: &How) -> Arc<Cassandra> {
        let end = Instant::now() + LONGEST;
        let mut again = interval(Duration::from_millis(100));
        loop {
            let opened: Result<_, Error> = Cassandra::open(&self.url(), how).await;
            match opened {
                Ok(store) => return Arc::new(store),
                Err(error) => assert!(Instant::now() < end, "no server: {error:?}"),
            }
            again.tick().await;
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.running.id().try_into().expect("a pid"));
        kill(pid, signal).expect("the server");
    }

    pub(super) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub(super) fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// As if its machine had lost power, but for what the machine itself had not yet written.
    pub(super) fn kill(&mut self) {
        self.running.kill().expect("the server");
        self.running.wait().expect("the server");
    }

    pub(super) fn start_again(&mut self) {
        self.running = spawn(self.dir.path());
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // It may be stopped, or dead already; then there is nothing left to end.
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("a port").port()
}

/// Everything but what the server has written itself.
fn copy(from: &Path, to: &Path, port: &str, [clients, nodes]: [u16; 2]) {
    for name in ["conf", "start", "pids", "logs"] {
        fs::create_dir(to.join(name)).expect("a directory");
    }
    fs::copy(from.join("keys.p12"), to.join("keys.p12")).expect("its key");
    let (old, new) = (from.display().to_string(), to.display().to_string());
    for name in ["conf/cassandra.yaml", "conf/logback.xml", "start/cassandra"] {
        let text = fs::read_to_string(from.join(name)).expect("a file of the server");
        let text = text.replace(&old, &new);
        let lines = text.lines().map(|line| match line.split_once(": ") {
            Some(("storage_port", _)) => format!("storage_port: {nodes}"),
            Some(("native_transport_port", was)) => {
                assert_eq!(was, port, "another server's directory");
                format!("native_transport_port: {clients}")
            }
            _ if line.contains("seeds:") => {
                format!("    parameters: [{{seeds: '127.0.0.1:{nodes}'}}]")
            }
            _ => line.to_owned(),
        });
        let text: Vec<String> = lines.collect();
        fs::write(to.join(name), text.join("\n") + "\n").expect("a file of the server");
    }
}

/// The script becomes the server.
fn spawn(dir: &Path) -> Child {
    let mut command = Command::new("sh");
    command.arg(dir.join("start/cassandra")).stdin(Stdio::null());
    command.spawn().expect("the server")
}
