//! The first process of a container that has none of its own: it waits for orphans.

use std::os::fd::AsRawFd as _;

use crate::sys;

/// Ends when it is told to. The kernel then ends all else that is in its namespace.
pub(crate) fn run() -> i32 {
    let Ok(signals) = sys::catch_signals() else { return 1 };
    loop {
        // Also those that ended before we listened.
        while let Ok(Some(_)) = sys::reap(-1) {}
        sys::poll([signals.as_raw_fd(), -1, -1], None);
        while let Some(signal) = sys::next_signal(&signals) {
            if matches!(signal, libc::SIGTERM | libc::SIGINT) {
                return 0;
            }
        }
    }
}
