//! A process that ends a test run's servers when the run ends, in whatever way it ends.

use std::fs::TryLockError;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use super::cache::Cache;
use super::life;
use super::process;
use super::state::State;
use super::table::SERVERS;
use crate::error::{Error, Result, failed};

/// The command of ours that is the guard; not for people.
pub(crate) const GUARD: &str = "backends-guard";

/// Held by a test run; while it is, no server that the run uses is taken down.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
}

/// Not by its name: cargo may have replaced it by another since we were started.
fn own_program() -> String {
    format!("/proc/{}/exe", std::process::id())
}

impl Guard {
    pub(crate) fn start() -> Result<Self> {
        let mut command = process::detached(own_program());
        command.arg(GUARD).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| failed(format!("{GUARD} did not start: {error}")))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let guard = Self { child };
        if line.is_empty() { Err(failed(format!("{GUARD} ended early"))) } else { Ok(guard) }
    }

    /// Waits until it has done its work; an error if a server was not taken down as it should.
    pub(crate) fn finish(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        let left = || failed(format!("not all servers were taken down: {GUARD}, {status}"));
        status.success().then_some(()).ok_or_else(left)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It says itself what went wrong.
        let _ = self.child.wait();
    }
}

/// The guard's whole life: it counts as a user of the servers until its stdin ends.
///
/// The kernel closes our end of the pipe when the run is killed, and drops the guard's lock
/// should the guard be killed, so no file can ever claim a user that is gone.
pub(crate) fn guard() -> Result<()> {
    let cache = Cache::locate()?;
    let users = cache.users()?;
    users.lock_shared().map_err(|error| cache.explain("users", &error))?;
    let mut out = io::stdout().lock();
    writeln!(out, "ready")?;
    out.flush()?;
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    let _lock = cache.lock()?;
    users.unlock().map_err(|error| cache.explain("users", &error))?;
    match users.try_lock() {
        Ok(()) => sweep(&cache),
        // The last of the runs will do it.
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(cache.explain("users", &error)),
    }
}

fn sweep(cache: &Cache) -> Result<()> {
    let mut state = State::load(cache)?;
    let mut failures = Vec::new();
    for server in SERVERS {
        if state.get(server.name).is_none_or(|record| record.keep) {
            continue;
        }
        match life::stop(cache, &mut state, server) {
            Ok(()) => eprintln!("backends: {} taken down", server.name),
            Err(error) => failures.push(error),
        }
    }
    failures.into_iter().next().map_or(Ok(()), Err::<(), Error>)
}
