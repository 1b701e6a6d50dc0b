//! What must hold in every simulated world, one rule a file.

mod calm;
mod counters;
mod deletes;
mod epochs;
mod fences;
mod leftovers;
mod one_leader;
mod one_stage;

use std::fmt;

pub(super) use calm::Calm;
pub(super) use counters::Counters;
pub(super) use deletes::resigned;
pub(super) use epochs::Epochs;
pub(super) use fences::Fences;
pub(super) use leftovers::shut_down;
pub(super) use one_leader::one_leader;
pub(super) use one_stage::one_stage;

/// A rule that was broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub how: String,
}

impl Violation {
    pub(super) const fn new(rule: &'static str, how: String) -> Self {
        Self { rule, how }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.how)
    }
}

/// Rules that remember.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) epochs: Epochs,
    pub(super) fences: Fences,
    pub(super) counters: Counters,
}
