//! Real hosts: failover after kill -9, and the memory of one that stands by.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use crate::figure::figure;

const LEASE: Duration = Duration::from_secs(3);

/// A host; it is killed when this is dropped.
#[derive(Debug)]
pub struct Host {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Host {
    /// Starts one. Its lease is told as `--lease` takes it.
    pub fn start(kapell: &Path, url: &str, state: &Path, lease: &str) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let mut child = Command::new(kapell)
            .args(["host", "--store", url, "--lease", lease, "--log", "json"])
            .args(["--listen", &address, "--advertise", &address])
            .arg("--state-dir")
            .arg(state)
            .stderr(Stdio::piped())
            .spawn()
            .expect("kapell starts");
        let log = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, log }
    }

    /// Waits until it logs this.
    pub fn until(&mut self, message: &str) {
        let wanted = format!("\"message\":\"{message}\"");
        let mut line = String::new();
        while !line.contains(&wanted) {
            line.clear();
            let read = self.log.read_line(&mut line).expect("its log");
            assert!(read > 0, "it ended before `{message}`");
        }
    }

    fn memory_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        let kb = line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok());
        kb.expect("a number") / 1024.0 * 1.048_576
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Kills one leader after the other.
pub async fn measure(name: &str, url: &str, kapell: &Path, failovers: usize) {
    let state = tempfile::tempdir().expect("a directory");
    let (mut failover, mut memory) = (Vec::new(), Vec::new());
    let mut leader = Host::start(kapell, url, state.path(), "3s");
    leader.until("leading");
    for _ in 0..failovers {
        let mut standby = Host::start(kapell, url, state.path(), "3s");
        standby.until("listening");
        tokio::time::sleep(Duration::from_secs(1)).await;
        memory.push(standby.memory_mb());
        let killed = Instant::now();
        drop(leader);
        standby.until("leading");
        failover.push(killed.elapsed().as_secs_f64());
        leader = standby;
    }
    let goal = if name == "embedded" { 1.0 } else { LEASE.as_secs_f64() + 1.0 };
    figure(&format!("{name}: failover after kill -9, lease 3 s"), &failover, "s", Some(goal));
    figure(&format!("{name}: memory of a standby"), &memory, "MB", Some(25.0));
}
