//! Finds and ends every process below this one.
//!
//! A process that set itself apart (a daemon) still comes back to us when its parent dies, because
//! we are a child subreaper: so the tree below us is complete, whatever its members did.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wait::{self, Whom};

/// How long a killed process may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Processes that have us as their parent, the dead ones not yet waited for included.
pub(crate) fn children() -> Vec<Pid> {
    children_of("self").unwrap_or_else(|_| children_by_scan(std::process::id()))
}

fn children_of(process: &str) -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let list = fs::read_to_string(task?.path().join("children"))?;
        found.extend(
            list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw),
        );
    }
    Ok(found)
}

/// For kernels that do not list children: reads every process's parent.
fn children_by_scan(parent: u32) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let of =
                stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()?;
            (of == parent).then_some(Pid::from_raw(pid))
        })
        .collect()
}

/// Everything below us that is alive.
pub(crate) fn all() -> Vec<Pid> {
    let mut found = Vec::new();
    let mut todo = children();
    while let Some(pid) = todo.pop() {
        let process = pid.to_string();
        let below =
            children_of(&process).unwrap_or_else(|_| children_by_scan(pid.as_raw().unsigned_abs()));
        todo.extend(below);
        if !is_zombie(pid) {
            found.push(pid);
        }
    }
    found
}

fn is_zombie(pid: Pid) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    stat.rsplit_once(')')
        .is_none_or(|(_, rest)| matches!(rest.trim_start().as_bytes().first(), Some(b'Z' | b'X')))
}

/// Whether there is any child at all, dead or alive: one call to the kernel.
pub(crate) fn any() -> bool {
    wait::peek(Whom::Any).is_ok()
}

/// Waits for dead children that nobody else waits for: orphans that fell to us.
pub(crate) fn reap_orphans(is_ours: impl Fn(Pid) -> bool) {
    while let Ok(Some(dead)) = wait::peek(Whom::Any) {
        if is_ours(dead.pid) || wait::reap(Whom::Pid(dead.pid)).is_err() {
            return;
        }
    }
}

/// Ends every descendant now but those that are spared. Orphans fall to us in waves, so one round
/// is not enough. What we may not end, or what does not end, is left after a while.
pub(crate) fn kill_all(spared: &[Pid]) {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let mut pids = children();
        // A process that we may not signal (it became another user's) will not end for us.
        pids.retain(|pid| {
            !spared.contains(pid) && kill(*pid, Signal::SIGKILL) != Err(Errno::EPERM)
        });
        if pids.is_empty() {
            return;
        }
        let gone = |pid: &Pid| !matches!(wait::reap(Whom::Pid(*pid)), Ok(None));
        if !pids.iter().all(gone) {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
