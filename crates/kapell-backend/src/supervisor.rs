//! The process above the one that works: ends every descendant if that one dies.
//!
//! The command splits in two before anything else happens. The first process, the one its user
//! sees, only waits; the second works. Each watches the other, both are child subreapers, so
//! whichever is killed, the other ends all that is left.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, kill, sigaction, sigprocmask,
};
use nix::unistd::{ForkResult, Pid, fork, pipe2, write};

use crate::descendants;
use crate::executor::Exit;
use crate::spawn::is_ignored;
use crate::wait::{self, Whom};

/// Signals that ask the run to end, handed on to the worker.
const HANDED_ON: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Signals that come together are one wish: some senders signal a process and its group.
pub const SAME_WISH: Duration = Duration::from_millis(250);
/// How long a worker may take to end after the second wish.
const STUCK_SECONDS: u32 = 3;

/// The worker's end of the line to its supervisor: one byte a signal, the end when it is gone.
#[derive(Debug)]
pub struct Lifeline {
    line: OwnedFd,
    heeded: Vec<i32>,
}

impl Lifeline {
    pub fn into_fd(self) -> OwnedFd {
        self.line
    }

    /// Whether a signal that asks to end is to be heeded: not if we were started with it ignored.
    pub fn heeds(&self, signal: i32) -> bool {
        self.heeded.contains(&signal)
    }
}

/// Splits the process. Returns in the worker only; the supervisor exits as the worker did.
///
/// Must be called before the process has a second thread.
pub fn split() -> io::Result<Lifeline> {
    let (read, line) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // Whoever started us may have it ignored, and then nobody could be waited for.
    set(Signal::SIGCHLD, SigHandler::SigDfl)?;
    let mut watched = SigSet::empty();
    watched.add(Signal::SIGCHLD);
    watched.add(Signal::SIGALRM);
    watched.add(Signal::SIGTSTP);
    // `nohup` is heeded. An ignored SIGINT is not: scripts start what is in the background with
    // it ignored, and still mean it when they send one.
    let nohup = is_ignored(libc::SIGHUP);
    let heeded = HANDED_ON.into_iter().filter(|&signal| signal != Signal::SIGHUP || !nohup);
    let heeded: Vec<Signal> = heeded.collect();
    for &signal in &heeded {
        watched.add(signal);
    }
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&watched), Some(&mut before))?;
    // Children of a program that became us by `exec` are not ours to end.
    let strangers = descendants::children();
    become_subreaper();
    #[expect(unsafe_code, reason = "the process has one thread, so the child may do anything")]
    let forked = unsafe { fork() }?;
    match forked {
        ForkResult::Child => {
            drop(line);
            become_subreaper();
            leave_session()?;
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
            let heeded = heeded.into_iter().map(|signal| signal as i32).collect();
            Ok(Lifeline { line: read, heeded })
        }
        ForkResult::Parent { child } => {
            drop(read);
            // Told apart from the worker by name, so that killing "kapell" by name leaves one of us.
            let _cosmetic = fs::write("/proc/self/comm", "supervisor");
            let exit = watch(child, &watched, &line);
            descendants::kill_all(&strangers);
            std::process::exit(exit_code(exit))
        }
    }
}

fn set(signal: Signal, handler: SigHandler) -> io::Result<()> {
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    #[expect(unsafe_code, reason = "no handler of ours is installed that could run at a bad time")]
    unsafe { sigaction(signal, &action) }?;
    Ok(())
}

/// Gives the worker a session of its own, so that a signal to the supervisor's group, a SIGKILL
/// above all, never hits both, and Ctrl-C comes once. Steps inherit that they have no terminal:
/// whoever asks for one is refused instead of stopped for ever.
fn leave_session() -> io::Result<()> {
    nix::unistd::setsid()?;
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

fn watch(worker: Pid, watched: &SigSet, line: &OwnedFd) -> Exit {
    let mut first: Option<Instant> = None;
    loop {
        match watched.wait() {
            Ok(Signal::SIGCHLD) => {
                if let Some(exit) = reap(worker) {
                    return exit;
                }
            }
            Ok(Signal::SIGTSTP) => pause(worker),
            Ok(Signal::SIGALRM) => {
                let _gone = kill(worker, Signal::SIGKILL);
            }
            Ok(signal) => {
                let number = u8::try_from(signal as i32).unwrap_or(15);
                // The worker may be gone; its end is the next thing we hear of.
                let _told = write(line, &[number]);
                // A worker that does not even heed the second wish is stuck.
                if first.get_or_insert_with(Instant::now).elapsed() > SAME_WISH {
                    let _earlier = nix::unistd::alarm::set(STUCK_SECONDS);
                }
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
fn reap(worker: Pid) -> Option<Exit> {
    while let Ok(Some(dead)) = wait::reap(Whom::Any) {
        if dead.pid == worker {
            return Some(dead.exit);
        }
    }
    None
}

fn exit_code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => {
            let name = Signal::try_from(signal)
                .map_or_else(|_| format!("signal {signal}"), |signal| signal.as_str().to_owned());
            let text = format!(
                "kapell: the worker process was ended by {name}; all its steps were ended too\n"
            );
            let _told = io::stderr().write_all(text.as_bytes());
            show_cursor();
            128 + signal
        }
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
    descendants::kill_all(&[]);
}
