use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kapell_core::seams::{Clock, Moment, Timestamp};

use crate::open::How;

/// How long a client of the suite waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The origin lies this far back, so that a clock can be behind.
const BEFORE_START: Duration = Duration::from_secs(1 << 20);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A clock that goes as fast as the machine's and is wrong by a fixed time, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shifted {
    pub boot: i32,
    pub wall: i32,
}

impl Clock for Shifted {
    fn now(&self) -> Moment {
        let right = BEFORE_START + START.elapsed();
        let by = Duration::from_secs(self.boot.unsigned_abs().into());
        let now = if self.boot < 0 { right.saturating_sub(by) } else { right + by };
        Moment::from_origin(now)
    }

    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let right = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Timestamp(right.saturating_add(i64::from(self.wall) * 1000))
    }
}

/// How the suite opens a store: it may lay out what is missing, and the clock is right.
pub fn how() -> How {
    shifted(Shifted::default())
}

pub fn shifted(clock: Shifted) -> How {
    How { create: true, timeout: TIMEOUT, clock: Arc::new(clock) }
}

/// Clients whose clocks disagree by hours: right, ahead, behind, and each one only half.
pub(super) fn skewed() -> Vec<How> {
    const HOUR: i32 = 3600;
    [(HOUR, HOUR), (-HOUR, -HOUR), (0, 0), (HOUR, -HOUR), (-HOUR, HOUR)]
        .map(|(boot, wall)| shifted(Shifted { boot, wall }))
        .into()
}
