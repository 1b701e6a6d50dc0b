//! Where a process may be made to end, to see what outlives it. In release builds nowhere.

/// `KAPELL_FAILPOINT=NAME` ends the process when it comes to that point, `NAME:3` when it does so for the third time.
#[cfg(debug_assertions)]
pub(crate) fn pass(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static POINT: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();
    let point = POINT.get_or_init(|| {
        let text = std::env::var("KAPELL_FAILPOINT").ok()?;
        let (name, left) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_owned(), AtomicU64::new(left.parse().ok()?)))
    });
    if let Some((wanted, left)) = point
        && wanted == name
        && left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        // As `kill -9`: nothing is flushed, nobody is told.
        kapell_backend::exit::exit_now(137);
    }
}

#[cfg(not(debug_assertions))]
pub(crate) const fn pass(_name: &str) {}

/// What has this name is on disk.
#[cfg(debug_assertions)]
pub(crate) fn pass_stored(name: &str) {
    pass(&format!("{name}-stored"));
}

#[cfg(not(debug_assertions))]
pub(crate) const fn pass_stored(_name: &str) {}

/// Waits for something, with a point of this name before it and one with `-done` behind it after it.
#[cfg(all(feature = "kubernetes", debug_assertions))]
pub(crate) async fn around<T>(name: &str, deed: impl Future<Output = T>) -> T {
    pass(name);
    let done = deed.await;
    pass(&format!("{name}-done"));
    done
}

#[cfg(all(feature = "kubernetes", not(debug_assertions)))]
pub(crate) fn around<T>(_name: &str, deed: impl Future<Output = T>) -> impl Future<Output = T> {
    deed
}
