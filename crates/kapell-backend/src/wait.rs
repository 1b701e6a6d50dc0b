//! Waiting for processes, with every signal that can end one.
//!
//! The wrappers that others offer know signals by name and refuse the real-time ones: a process
//! ended by such a signal would be lost.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::unistd::Pid;

use crate::executor::Exit;

/// Which processes are meant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whom<'a> {
    Any,
    Pid(Pid),
    Handle(&'a OwnedFd),
}

/// A process that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dead {
    pub(crate) pid: Pid,
    pub(crate) exit: Exit,
}

/// Waits for one without blocking; none if none of them has ended. It is gone afterwards.
pub(crate) fn reap(whom: Whom<'_>) -> io::Result<Option<Dead>> {
    wait(whom, libc::WNOHANG)
}

/// Like [`reap`], but leaves the process to be waited for.
pub(crate) fn peek(whom: Whom<'_>) -> io::Result<Option<Dead>> {
    wait(whom, libc::WNOHANG | libc::WNOWAIT)
}

fn wait(whom: Whom<'_>, options: i32) -> io::Result<Option<Dead>> {
    let (kind, id) = match whom {
        Whom::Any => (libc::P_ALL, 0),
        Whom::Pid(pid) => (libc::P_PID, pid.as_raw().unsigned_abs()),
        Whom::Handle(fd) => (libc::P_PIDFD, fd.as_raw_fd().unsigned_abs()),
    };
    loop {
        #[expect(
            unsafe_code,
            reason = "the kernel fills in a structure of ours, and only the fields of an ended child are read"
        )]
        let (done, pid, code, status) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let done = libc::waitid(kind, id, &raw mut info, libc::WEXITED | options);
            (done, info.si_pid(), info.si_code, info.si_status())
        };
        if done == 0 {
            let exit =
                if code == libc::CLD_EXITED { Exit::Code(status) } else { Exit::Signal(status) };
            return Ok((pid != 0).then_some(Dead { pid: Pid::from_raw(pid), exit }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
