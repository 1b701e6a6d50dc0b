//! Random moments that can be had again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::bench::pause;

/// Set, it makes every test draw the same again.
const SEED: &str = "KAPELL_SIM_SEED";

pub(crate) struct Chance(u64);

impl Chance {
    /// Tells its seed, which is shown if the test fails.
    #[expect(clippy::print_stderr, reason = "for whoever looks why a test failed")]
    pub(crate) fn new() -> Self {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| u64::try_from(now() % 1_000_000_007).unwrap_or(1));
        eprintln!("to draw the same again: {SEED}={seed}");
        Self(seed)
    }

    /// The same for everybody.
    pub(crate) const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A place among so many.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        let drawn = self.below(u64::try_from(count).unwrap_or(u64::MAX));
        usize::try_from(drawn).unwrap_or_default()
    }

    /// What makes one draw the same that has drawn nothing yet.
    pub(crate) const fn seed(&self) -> u64 {
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    /// Lets some time go by, so that what comes next comes at any moment.
    pub(crate) fn moment(&mut self, at_most: Duration) {
        let most = u64::try_from(at_most.as_micros()).unwrap_or(u64::MAX);
        pause(Duration::from_micros(self.below(most)));
    }
}
