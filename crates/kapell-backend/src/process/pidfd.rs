//! A process by a descriptor, so that it is never mistaken for a later one with its number.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::wait::{self, Whom};

/// A process that has let go of its lock is gone in less.
const BURIAL: Duration = Duration::from_secs(1);

/// A process, a child of ours or not.
#[derive(Debug)]
pub(crate) struct Pidfd(OwnedFd);

impl Pidfd {
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "numbers only; the kernel makes a descriptor for us")]
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0);
            fd.map(|fd| Self(OwnedFd::from_raw_fd(fd))).ok_or_else(io::Error::last_os_error)
        }
    }

    /// Who has ended needs no signal: that is no error.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        #[expect(unsafe_code, reason = "numbers and no further information")]
        let sent = unsafe {
            let nothing: *const libc::siginfo_t = std::ptr::null();
            let fd = self.0.as_raw_fd();
            libc::syscall(libc::SYS_pidfd_send_signal, fd, signal as i32, nothing, 0)
        };
        let error = io::Error::last_os_error();
        if sent == 0 || error.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(error) }
    }

    pub(crate) fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// Leaves no zombie of one that is ending: an agent that has replaced its own program by `exec`
    /// still has the children of before. Blocks for a moment.
    pub(crate) fn bury(&self) {
        let start = Instant::now();
        while matches!(wait::reap(Whom::Handle(&self.0)), Ok(None)) && start.elapsed() < BURIAL {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for its end. One at a time may wait. Leaves no zombie, if it is a child of ours.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        if !self.has_ended() {
            #[expect(
                unsafe_code,
                reason = "we borrow ourselves for as long, and an owned descriptor stays open and the same"
            )]
            let watched =
                unsafe { AsyncFd::register_with_interest(self.0.as_fd(), Interest::READABLE) };
            let watched = watched?;
            loop {
                let mut guard = watched.readable().await?;
                if self.has_ended() {
                    break;
                }
                guard.clear_ready();
            }
        }
        // Fails for who is not our child: its own parent waits for it.
        let _reaped = wait::reap(Whom::Handle(&self.0));
        Ok(())
    }
}
