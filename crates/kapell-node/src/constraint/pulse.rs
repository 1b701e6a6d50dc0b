//! Signs of life of work that takes long.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::time::Duration;

/// At least so often while something is under way.
const EACH: Duration = Duration::from_secs(3);

/// Counts how much of one kind is under way.
#[derive(Debug, Clone, Default)]
pub struct Slots(Arc<AtomicIsize>);

impl Slots {
    pub fn taken(&self) -> usize {
        usize::try_from(self.0.load(Ordering::Relaxed)).unwrap_or(0)
    }

    pub fn take(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn give_back(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts the signs of life of one run. They come from the very future that works for it: one that is stuck gives none.
#[derive(Debug, Clone, Default)]
pub struct Pulse {
    beats: Arc<AtomicU64>,
    /// Of which its work has one.
    slots: Slots,
}

impl Pulse {
    /// Of work that has one of these slots.
    pub fn among(slots: &Slots) -> Self {
        Self { beats: Arc::default(), slots: slots.clone() }
    }

    /// How many signs there have been.
    pub fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
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

    /// The same, while nothing is done but to wait: others may have its slot.
    pub async fn resting<T>(&self, wait: impl Future<Output = T>) -> T {
        let _rest = Rest::begin(&self.slots);
        self.during(wait).await
    }
}

/// A slot that is lent to others, until this is dropped. There may be one too many at work then, which nobody waits for.
struct Rest<'a>(&'a Slots);

impl<'a> Rest<'a> {
    fn begin(slots: &'a Slots) -> Self {
        slots.give_back();
        Self(slots)
    }
}

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.take();
    }
}
