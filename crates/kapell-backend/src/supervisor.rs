//! The process above the one that works: ends every descendant if that one dies.
//!
//! The command splits in two before anything else happens. The first process, the one its user
//! sees, only waits; the second works. Each watches the other, both are child subreapers, so
//! whichever is killed, the other ends all that is left.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, kill, sigaction, sigprocmask,
};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2, write};

use crate::descendants;

/// Signals that ask the run to end, handed on to the worker.
const HANDED_ON: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The worker's end of the line to its supervisor: one byte a signal, the end when it is gone.
#[derive(Debug)]
pub struct Lifeline(OwnedFd);

impl Lifeline {
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

/// Splits the process. Returns in the worker only; the supervisor exits as the worker did.
///
/// Must be called before the process has a second thread.
pub fn split() -> io::Result<Lifeline> {
    let (read, line) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let mut watched = SigSet::empty();
    watched.add(Signal::SIGCHLD);
    watched.add(Signal::SIGTSTP);
    for signal in HANDED_ON {
        watched.add(signal);
    }
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&watched), Some(&mut before))?;
    become_subreaper();
    #[expect(unsafe_code, reason = "the process has one thread, so the child may do anything")]
    let forked = unsafe { fork() }?;
    match forked {
        ForkResult::Child => {
            drop(line);
            become_subreaper();
            leave_group()?;
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
            Ok(Lifeline(read))
        }
        ForkResult::Parent { child } => {
            drop(read);
            // Told apart from the worker by name, so that killing "kapell" by name leaves one of us.
            let _cosmetic = fs::write("/proc/self/comm", "supervisor");
            let status = watch(child, &watched, &line);
            descendants::kill_all();
            std::process::exit(exit_code(status))
        }
    }
}

/// Gives the worker a process group of its own, so that a signal to the supervisor's group, a
/// SIGKILL above all, never hits both, and Ctrl-C comes once.
fn leave_group() -> io::Result<()> {
    nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    // Writing to a terminal from the background is stopped on some terminals unless refused.
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    #[expect(
        unsafe_code,
        reason = "ignoring a signal installs no code that could run at a bad time"
    )]
    unsafe { sigaction(Signal::SIGTTOU, &ignore) }?;
    Ok(())
}

/// Makes orphans below us fall to us instead of to the system.
fn become_subreaper() {
    #[cfg(target_os = "linux")]
    {
        // An old kernel without it costs us only daemons that set themselves apart.
        let _best_effort = nix::sys::prctl::set_child_subreaper(true);
    }
}

fn watch(worker: Pid, watched: &SigSet, line: &OwnedFd) -> WaitStatus {
    loop {
        match watched.wait() {
            Ok(Signal::SIGCHLD) => {
                if let Some(status) = reap(worker) {
                    return status;
                }
            }
            Ok(Signal::SIGTSTP) => pause(worker),
            Ok(signal) => {
                let number = u8::try_from(signal as i32).unwrap_or(15);
                // The worker may be gone; its end is the next thing we hear of.
                let _told = write(line, &[number]);
            }
            Err(_) => {}
        }
    }
}

/// Stops the worker and ourselves until somebody has us go on. Steps that run are not stopped.
fn pause(worker: Pid) {
    let _stopped = kill(worker, Signal::SIGSTOP);
    let _stopped = kill(Pid::this(), Signal::SIGSTOP);
    let _goes_on = kill(worker, Signal::SIGCONT);
}

/// Waits for all that has died; tells if the worker has.
fn reap(worker: Pid) -> Option<WaitStatus> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return None,
            Ok(status) if status.pid() == Some(worker) => return Some(status),
            Ok(_) | Err(_) => {}
        }
    }
}

fn exit_code(status: WaitStatus) -> i32 {
    match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => {
            let text = format!(
                "kapell: the worker process was ended by {signal}; all its steps were ended too\n"
            );
            let _told = io::stderr().write_all(text.as_bytes());
            show_cursor();
            128 + signal as i32
        }
        WaitStatus::Stopped(..)
        | WaitStatus::PtraceEvent(..)
        | WaitStatus::PtraceSyscall(_)
        | WaitStatus::Continued(_)
        | WaitStatus::StillAlive => 1,
    }
}

/// Gives back the cursor that a live display may have hidden and could not show again.
pub fn show_cursor() {
    let mut stdout = io::stdout();
    if stdout.is_terminal() {
        let _shown = stdout.write_all(b"\x1b[?25h").and_then(|()| stdout.flush());
    }
}

/// Ends everything below this process, for a worker whose supervisor is gone.
pub fn kill_descendants() {
    descendants::kill_all();
}
