use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kapell_core::seams::{Clock, Moment, Timestamp};

use super::chance::Chance;

/// How much faster or slower than true time any clock runs, in millionths.
pub const DRIFT_PPM: i64 = 100;

/// The one true time. Only the simulator reads it.
#[derive(Debug, Clone, Default)]
pub(super) struct TrueTime(Arc<AtomicU64>);

impl TrueTime {
    pub(super) fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, now: Duration) {
        self.0.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// What one machine takes for the time: its own origin, at its own rate.
#[derive(Debug, Clone)]
pub(super) struct Drifting {
    time: TrueTime,
    origin: Duration,
    rate_ppm: u64,
    wall_ms: i64,
}

impl Drifting {
    pub(super) fn new(time: &TrueTime, chance: &mut Chance) -> Self {
        let drift = chance.below(2 * DRIFT_PPM.unsigned_abs() + 1).cast_signed() - DRIFT_PPM;
        let origin = chance.between(Duration::from_secs(1000), Duration::from_secs(1_000_000));
        let wall_ms = 1_700_000_000_000 + chance.below(100_000_000).cast_signed();
        let rate_ppm = (1_000_000 + drift).unsigned_abs();
        Self { time: time.clone(), origin, rate_ppm, wall_ms }
    }

    /// The same clock at a rate that no real one has.
    #[must_use]
    pub(super) const fn at_rate(mut self, rate_ppm: u64) -> Self {
        self.rate_ppm = rate_ppm;
        self
    }

    /// The true time at which this clock will read `moment`, or has.
    pub(super) fn true_at(&self, moment: Moment) -> Duration {
        let elapsed = moment.since_origin().saturating_sub(self.origin);
        scale(elapsed, 1_000_000, self.rate_ppm) + Duration::from_nanos(1)
    }
}

impl Clock for Drifting {
    fn now(&self) -> Moment {
        Moment::from_origin(self.origin + scale(self.time.now(), self.rate_ppm, 1_000_000))
    }

    fn wall(&self) -> Timestamp {
        let elapsed = i64::try_from(self.time.now().as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.wall_ms.saturating_add(elapsed))
    }
}

fn scale(time: Duration, by: u64, of: u64) -> Duration {
    let nanos = time.as_nanos() * u128::from(by) / u128::from(of);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
