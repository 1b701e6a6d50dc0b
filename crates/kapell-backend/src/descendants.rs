//! Finds and ends every process below this one.
//!
//! A process that set itself apart (a daemon) still comes back to us when its parent dies, because
//! we are a child subreaper: so the tree below us is complete, whatever its members did.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

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
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::All, peek), Err(Errno::ECHILD))
}

/// Waits for dead children that nobody else waits for: orphans that fell to us.
pub(crate) fn reap_orphans(is_ours: impl Fn(Pid) -> bool) {
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Ok(status) = waitid(Id::All, peek) {
        match status.pid() {
            Some(pid) if status != WaitStatus::StillAlive && !is_ours(pid) => {
                if waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_err() {
                    return;
                }
            }
            Some(_) | None => return,
        }
    }
}

/// Ends every descendant now. Orphans fall to us in waves, so one round is not enough.
pub(crate) fn kill_all() {
    loop {
        let pids = children();
        if pids.is_empty() {
            return;
        }
        for &pid in &pids {
            // It may be dead already; then waiting for it is all there is to do.
            let _gone = kill(pid, Signal::SIGKILL);
        }
        for pid in pids {
            let _gone = waitpid(pid, None);
        }
    }
}
