//! Processes that outlive us, known by their pid and their command line.
#![expect(unsafe_code, reason = "kill has no safe wrapper in std")]

use std::ffi::{OsStr, c_int};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Result, failed};

const STEP: Duration = Duration::from_millis(50);
/// Longer than it takes to become another program.
const MOMENT: Duration = Duration::from_secs(1);

/// A command that runs in a session of its own: no terminal's Ctrl-C or hang-up reaches it.
///
/// `setsid` becomes the program without a fork, so the child's pid is the program's.
pub(crate) fn detached(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setsid");
    command.arg(program);
    command
}

/// Ports of the loopback address that nobody listens on, all different.
pub(crate) fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let mut ports = [0; COUNT];
    // All are held until all are found, or the system might give one twice.
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .map_err(|error| failed(format!("no free port on 127.0.0.1: {error}")))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Whether `pid` is a live process of this program with `dir` on its command line.
///
/// A pid is soon someone else's, but nobody else works in a directory that we made.
/// What has ended and was not yet waited for has an empty command line: it counts as gone.
pub(crate) fn is_running(pid: u32, program: &str, dir: &Path) -> bool {
    let line = words_of(pid);
    let mut words = line.split('\0');
    let names = |word: &str| Path::new(word).file_name().is_some_and(|name| name == program);
    words.any(names) && line.contains(&*dir.to_string_lossy())
}

/// The command line of a process, empty if it has ended. One that is about to become another program has none for a moment.
fn words_of(pid: u32) -> String {
    let mut line = Vec::new();
    poll(MOMENT, || {
        line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !line.is_empty() || has_ended(pid)
    });
    String::from_utf8_lossy(&line).into_owned()
}

fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Its name may be anything, but is in brackets.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Ends a process if it still is the one that is meant; by force if `signal` was not enough.
pub(crate) fn end(pid: u32, program: &str, dir: &Path, signal: c_int) -> Result<()> {
    let is_gone = || !is_running(pid, program, dir);
    for (signal, patience) in [(signal, 10), (libc::SIGKILL, 5)] {
        if is_gone() {
            return Ok(());
        }
        kill(pid, signal).map_err(|error| failed(format!("{program}, pid {pid}: {error}")))?;
        if poll(Duration::from_secs(patience), is_gone) {
            return Ok(());
        }
    }
    Err(failed(format!("{program}, pid {pid}, does not end; look what holds it, then kill it")))
}

/// Asks again and again until the answer is yes; false if it never was.
pub(crate) fn poll(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if done() {
            return true;
        }
        if start.elapsed() > patience {
            return false;
        }
        thread::sleep(STEP);
    }
}

pub(super) fn kill(pid: u32, signal: c_int) -> io::Result<()> {
    // Zero and negative numbers mean whole groups of processes.
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 1);
    let pid = pid.ok_or_else(|| io::Error::other("no pid of a server"))?;
    // SAFETY: `kill` touches no memory of ours.
    let answer = unsafe { libc::kill(pid, signal) };
    let error = io::Error::last_os_error();
    // One that ended in the meantime is what we want.
    if answer == 0 || error.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn ends_only_the_program_that_it_knows() {
        let dir = Path::new("/nowhere/kapell-backends-mine");
        let script = "echo; read line";
        let mut command = detached("sh");
        let command = command.args(["-c", script, "sh"]).arg(dir);
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        assert!(poll(Duration::from_secs(10), || is_running(pid, "sh", dir)));
        assert!(!is_running(pid, "postgres", dir));
        assert!(!is_running(pid, "sh", Path::new("/nowhere/kapell-backends-other")));
        end(pid, "postgres", dir, libc::SIGKILL).unwrap();
        assert!(is_running(pid, "sh", dir), "another program's pid was signalled");
        end(pid, "sh", dir, libc::SIGTERM).unwrap();
        assert!(!is_running(pid, "sh", dir), "not yet waited for, but gone");
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        end(pid, "sh", dir, libc::SIGTERM).unwrap();
    }

    #[test]
    fn free_ports_differ() {
        let [one, two, three] = free_ports().unwrap();
        assert!(one != two && two != three && one != three);
    }

    #[test]
    fn groups_and_init_are_never_signalled() {
        for pid in [0, 1, u32::MAX] {
            assert!(kill(pid, 0).is_err(), "{pid}");
        }
    }
}
