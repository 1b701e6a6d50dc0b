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
