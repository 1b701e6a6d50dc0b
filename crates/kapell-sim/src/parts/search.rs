//! Many worlds one after the other, for the tests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the environment asks for.
pub(crate) fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

/// Runs one plan after the other on two threads, until time is over, there are no more, or one fails.
pub(crate) fn search<P, R: Send, F: Send>(
    plans: impl Fn(u64) -> Option<P> + Sync,
    time: Duration,
    run: impl Fn(P) -> Result<R, F> + Sync,
) -> Result<Vec<R>, F> {
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    let worker = || {
        let mut reports = Vec::new();
        while begun.elapsed() < time && !failed.load(Ordering::Relaxed) {
            let Some(plan) = plans(next.fetch_add(1, Ordering::Relaxed)) else { break };
            match run(plan) {
                Ok(report) => reports.push(report),
                Err(failure) => {
                    failed.store(true, Ordering::Relaxed);
                    return Err(failure);
                }
            }
        }
        Ok(reports)
    };
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(worker);
        (worker(), other.join())
    });
    let mut reports = first?;
    reports.extend(second.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    Ok(reports)
}
