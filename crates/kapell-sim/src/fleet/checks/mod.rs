//! What must hold in every world: one rule a file.

use std::fmt;
use std::time::Duration;

use super::fact::Fact;
use super::view::View;

/// A rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub at: Duration,
    pub how: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken at {:?}: {}", self.rule, self.at, self.how)
    }
}

/// A rule that watches a world.
pub(super) trait Check: fmt::Debug {
    fn name(&self) -> &'static str;

    /// Something has happened; `view` shows the world after it.
    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String>;

    /// Nothing is under way any more: the bound after the last fault is over.
    fn at_end(&mut self, view: &View<'_>) -> Result<(), String>;
}

/// All rules, anew for each world.
pub(super) fn all() -> Vec<Box<dyn Check>> {
    Vec::new()
}
