use std::hash::{BuildHasher as _, RandomState};
use std::time::SystemTime;

/// 64 bits that nobody else has drawn: the name of a fresh store, say.
pub fn drawn() -> u64 {
    // The standard library seeds every `RandomState` from the system's randomness.
    RandomState::new().hash_one(SystemTime::now())
}

/// Many cheap numbers.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new() -> Self {
        Self(drawn() | 1)
    }

    /// A number below `sides`.
    pub(super) const fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}
