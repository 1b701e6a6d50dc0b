use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// What clocks and rounding may add to a time that was measured from outside.
pub(super) const SLACK: Duration = Duration::from_millis(60);
/// How often a case begins again that the machine was too slow for.
pub(super) const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(30);

/// When a call began and when its answer was there. What it did, it did in between.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) sent: Instant,
    pub(super) done: Instant,
}

pub(super) async fn timed<T>(call: impl Future<Output = T>) -> (T, Span) {
    let sent = Instant::now();
    let answer = call.await;
    (answer, Span { sent, done: Instant::now() })
}

/// Lets time pass where nothing but the time itself can be waited for.
pub(super) async fn pass(until: Instant) {
    sleep_until(until).await;
}

/// A breath between two looks.
pub(super) async fn pause() {
    pass(Instant::now() + PAUSE).await;
}
