use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks again and again until it is so.
///
/// # Panics
/// When it still is not so after `limit`.
pub async fn eventually<F>(what: &str, limit: Duration, mut is_so: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let end = Instant::now() + limit;
    while !is_so().await {
        assert!(Instant::now() < end, "waited {limit:?} in vain: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Looks again and again whether it stays so.
///
/// # Panics
/// When it once is not so before `time` has gone by.
pub async fn for_as_long<F>(what: &str, time: Duration, mut is_so: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let begin = Instant::now();
    loop {
        assert!(is_so().await, "not so after {:?} of {time:?}: {what}", begin.elapsed());
        if begin.elapsed() >= time {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits for it.
///
/// # Panics
/// When it has not come within `limit`.
pub async fn within<T>(what: &str, limit: Duration, it: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(limit, it).await;
    waited.unwrap_or_else(|_| panic!("waited {limit:?} in vain: {what}"))
}
