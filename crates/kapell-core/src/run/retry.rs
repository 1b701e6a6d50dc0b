//! How long to wait before the next attempt.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use rustc_hash::FxHasher;

use super::id::RunId;
use crate::job::Retry;

/// The wait after the failed attempt of this number, from 0: `initial × multiplier^attempt`, capped, then put off by
/// the jitter that is the same for the same attempt of the same run. In whole milliseconds, rounded up.
pub fn delay(retry: &Retry, run_id: &RunId, attempt: u32) -> Duration {
    let most = retry.max_delay.get().as_secs_f64();
    let multiplier = retry.backoff_multiplier.0;
    let mut seconds = retry.initial_delay.get().as_secs_f64();
    if multiplier > 1.0 {
        for _ in 0..attempt {
            if seconds <= 0.0 || seconds >= most {
                break;
            }
            seconds *= multiplier;
        }
    }
    // Not a number is not less either.
    let seconds = if seconds < most { seconds.max(0.0) } else { most };
    put_off(Duration::from_secs_f64(seconds), retry.jitter_percent, run_id, attempt)
}

fn put_off(wait: Duration, percent: u8, run_id: &RunId, attempt: u32) -> Duration {
    let mut hasher = FxHasher::default();
    (run_id.as_str(), attempt).hash(&mut hasher);
    let nanos = wait.as_nanos();
    let most = nanos * u128::from(percent) / 100;
    let drawn = if most == 0 { 0 } else { u128::from(hasher.finish()) % most };
    let millis = (nanos + drawn).div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
