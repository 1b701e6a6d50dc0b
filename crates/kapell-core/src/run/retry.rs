//! How long to wait before the next attempt.

use std::time::Duration;

use crate::job::Retry;

/// The wait after the failed attempt of this number, from 0: `initial × multiplier^attempt`, capped.
pub fn delay(retry: &Retry, attempt: u32) -> Duration {
    let most = retry.max_delay.get();
    let factor = retry.backoff_multiplier.0.powi(i32::try_from(attempt).unwrap_or(i32::MAX));
    let seconds = retry.initial_delay.get().as_secs_f64() * factor;
    if seconds.is_finite() && seconds < most.as_secs_f64() {
        Duration::from_secs_f64(seconds.max(0.0))
    } else {
        most
    }
}
