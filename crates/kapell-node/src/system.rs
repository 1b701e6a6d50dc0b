//! The real clock and real chance.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kapell_core::seams::{Clock, Ids, Moment, Timestamp};
use nix::time::{ClockId, clock_gettime};

/// The machine's own time. It counts while the machine sleeps, where the system can tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        #[cfg(target_os = "linux")]
        let clock = ClockId::CLOCK_BOOTTIME;
        #[cfg(not(target_os = "linux"))]
        let clock = ClockId::CLOCK_MONOTONIC;
        let elapsed = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
        Moment::from_origin(elapsed)
    }

    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// How much more a file system takes, for those without privileges.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let about = nix::sys::statvfs::statvfs(path).ok()?;
    Some(about.blocks_available() * about.fragment_size())
}

/// Who we are.
pub fn user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Numbers that nobody else has.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    fn draw(&self) -> u64 {
        // The standard library seeds every `RandomState` from the system's randomness.
        RandomState::new().hash_one(SystemTime::now())
    }
}
