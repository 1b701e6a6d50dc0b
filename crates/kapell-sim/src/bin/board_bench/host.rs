//! `kapell host` as a process of its own, on a store that is full already.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::wire::Place;

/// A host that leads. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    /// Read to its end by nobody: the pipe is large enough for what a host says.
    _log: BufReader<ChildStderr>,
    pub(crate) place: Place,
}

impl Host {
    /// Starts it on one processor, or on any, and waits until it leads.
    pub(crate) fn start(
        kapell: &Path,
        dir: &Path,
        url: &str,
        processor: Option<usize>,
    ) -> anyhow::Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let (kapell, state): (PathBuf, PathBuf) = (kapell.to_owned(), dir.join("state"));
        let mut command = Command::new(kapell);
        command.args(["host", "--store", url, "--log", "json"]);
        command.args(["--listen", &address, "--advertise", &address, "--state-dir"]).arg(&state);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A process begins where the thread runs that makes it.
        let made = std::thread::scope(|scope| {
            let start = || -> anyhow::Result<Child> {
                if let Some(processor) = processor {
                    pin(processor)?;
                }
                Ok(command.spawn()?)
            };
            scope.spawn(start).join().map_err(|_| anyhow::anyhow!("it did not start"))?
        });
        let mut child = made.context("kapell does not start")?;
        let mut log = BufReader::new(child.stderr.take().context("its log")?);
        let mut line = String::new();
        while !line.contains("\"message\":\"leading\"") {
            line.clear();
            ensure!(log.read_line(&mut line)? > 0, "it ended before it led");
        }
        let token = std::fs::read_to_string(state.join("token")).context("its token")?;
        let place = Place { address, token: token.trim().to_owned() };
        Ok(Self { child, _log: log, place })
    }

    /// What it holds, in MB.
    pub(crate) fn resident(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("a field")?;
        let kb: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
        Ok(kb * 1024.0 / 1e6)
    }

    /// The processor time that it has used.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, rest) = text.rsplit_once(") ").context("its name")?;
        let mut fields = rest.split(' ').skip(11);
        let mut ticks =
            || -> anyhow::Result<u64> { Ok(fields.next().context("a field")?.parse()?) };
        // Hundredths of a second, whatever the kernel counts in.
        Ok(Duration::from_millis((ticks()? + ticks()?) * 10))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Keeps this thread on one processor.
pub(crate) fn pin(processor: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
