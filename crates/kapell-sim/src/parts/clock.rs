use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kapell_core::seams::{Clock, Moment, Timestamp};

use super::chance::Chance;

/// How much faster or slower than true time any clock runs, in millionths.
pub const DRIFT_PPM: i64 = 100;

/// The one true time. Only the simulator reads it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrueTime(Arc<AtomicU64>);

impl TrueTime {
    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, now: Duration) {
        self.0.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// What one machine takes for the time: its own origin, at its own rate.
#[derive(Debug, Clone)]
pub(crate) struct Drifting {
    time: TrueTime,
    origin: Duration,
    rate_ppm: u64,
    wall_ms: i64,
    /// By how much the wall clock was set forward so far.
    jumped_ms: Arc<AtomicI64>,
}

impl Drifting {
    pub(crate) fn new(time: &TrueTime, chance: &mut Chance) -> Self {
        let drift = chance.below(2 * DRIFT_PPM.unsigned_abs() + 1).cast_signed() - DRIFT_PPM;
        let origin = chance.between(Duration::from_secs(1000), Duration::from_secs(1_000_000));
        let wall_ms = 1_700_000_000_000 + chance.below(100_000_000).cast_signed();
        let rate_ppm = (1_000_000 + drift).unsigned_abs();
        Self { time: time.clone(), origin, rate_ppm, wall_ms, jumped_ms: Arc::default() }
    }

    /// The same clock at a rate that no real one has.
    #[must_use]
    pub(crate) const fn at_rate(mut self, rate_ppm: u64) -> Self {
        self.rate_ppm = rate_ppm;
        self
    }

    /// The same clock with another wall time at the beginning of the world.
    #[must_use]
    pub(crate) const fn at_wall(mut self, wall_ms: i64) -> Self {
        self.wall_ms = wall_ms;
        self
    }

    /// Sets the wall clock right again.
    pub(crate) fn set_right(&self) {
        self.jumped_ms.store(0, Ordering::Relaxed);
    }

    /// Somebody sets the wall clock.
    pub(crate) fn jump(&self, by_ms: i64) {
        self.jumped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// The true time at which this clock will read `moment`, or has.
    pub(crate) fn true_at(&self, moment: Moment) -> Duration {
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
        let jumped = self.jumped_ms.load(Ordering::Relaxed);
        Timestamp(self.wall_ms.saturating_add(elapsed).saturating_add(jumped))
    }
}

fn scale(time: Duration, by: u64, of: u64) -> Duration {
    let nanos = time.as_nanos() * u128::from(by) / u128::from(of);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
