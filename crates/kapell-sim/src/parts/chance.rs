use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kapell_core::seams::Ids;

/// All the chance there is in a simulation: what it draws follows from its seed.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    pub(crate) const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Another one that goes its own way from here.
    pub(crate) const fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    /// `0..bound`
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    pub(crate) const fn permille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = most.saturating_sub(least).as_micros().max(1);
        least + Duration::from_micros(self.below(u64::try_from(span).unwrap_or(u64::MAX)))
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap_or(0)]
    }
}

/// Owners' names, drawn from the seed.
#[derive(Debug)]
pub(crate) struct Names(Mutex<Chance>);

impl Names {
    pub(crate) const fn new(chance: Chance) -> Self {
        Self(Mutex::new(chance))
    }
}

impl Ids for Names {
    fn draw(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).draw()
    }
}
