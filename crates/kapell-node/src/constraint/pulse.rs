//! Signs of life of work that takes long.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// At least so often while something is under way.
const EACH: Duration = Duration::from_secs(3);

/// Counts the signs of life of one run. They come from the very future that works for it: one that is stuck gives none.
#[derive(Debug, Clone, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// How many signs there have been.
    pub fn beats(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives signs of life while it waits for something.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            self.beat();
            tokio::select! {
                biased;
                done = &mut work => {
                    self.beat();
                    return done;
                }
                () = tokio::time::sleep(EACH) => {}
            }
        }
    }
}
