//! How long the host leads whose programs we run: whoever leads next elsewhere may do their work once more.

use std::fs::{self, File};
use std::path::Path;

use super::{Runner, parcel};
use crate::{number, sys};

/// Where the shims of the same host have their directories, seen from ours.
const CONTAINERS: &str = "../containers";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lease {
    /// Nobody else can lead.
    Unlimited,
    /// By the steady clock.
    Until(u64),
    /// Nothing is started until a host leads again.
    Over,
}

impl Lease {
    pub(super) fn read(rest: &[u8]) -> Self {
        match parcel::number(rest) {
            Some((left_ms, _)) => Self::Until(sys::monotonic_ms().saturating_add(left_ms)),
            None => Self::Unlimited,
        }
    }

    pub(super) const fn ends(self) -> Option<u64> {
        match self {
            Self::Until(at) => Some(at),
            Self::Unlimited | Self::Over => None,
        }
    }
}

impl Runner {
    /// Ends all that runs here if the host has not led on.
    pub(super) fn end_lease(&mut self) {
        if self.lease.ends().is_none_or(|at| at > sys::monotonic_ms()) {
            return;
        }
        self.lease = Lease::Over;
        for (pid, program) in &mut self.programs {
            program.kill(*pid);
        }
        for container in fs::read_dir(CONTAINERS).into_iter().flatten().flatten() {
            for process in
                fs::read_dir(container.path().join("run")).into_iter().flatten().flatten()
            {
                end_shim(&process.path());
            }
        }
    }
}

/// Tells the shim of a process to end it at once, if it lives: its lock tells that.
fn end_shim(dir: &Path) {
    let Ok(lock) = File::open(dir.join("lock")) else { return };
    if lock.try_lock().is_ok() {
        return;
    }
    let numbers = fs::read(dir.join("pid")).unwrap_or_default();
    let shim = numbers.split(|byte| *byte == b'\n').next().and_then(number::parse);
    if let Some(pid) = shim.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 1) {
        sys::signal(pid, libc::SIGUSR1);
    }
}
