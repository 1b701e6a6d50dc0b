//! How the recipe of a container goes: which of its actions are under way, and what comes of each.

mod course;
mod health;
mod readiness;
mod tree;
mod walk;

#[cfg(test)]
mod tests;

pub use course::{Course, Deed, Event, Leaf, Order, Outcome, Phase};
pub use health::{Health, Verdict, Wait};
pub use readiness::{News, Readiness};

use std::time::Duration;

use crate::board::Action;

/// What a container does from its first to its last moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    pub setup: Option<Action>,
    pub action: Action,
}

/// Whether all that is ever done is to run one program: a container then needs nothing but that.
pub fn is_sole(setup: Option<&Action>, action: &Action) -> bool {
    let mut programs = 0;
    for action in setup.into_iter().chain([action]).flat_map(Action::all) {
        match action {
            Action::Run(_) => programs += 1,
            Action::Download(_) | Action::Upload(_) => return false,
            Action::Timeout(_)
            | Action::Try(_)
            | Action::EmitProgress(_)
            | Action::Parallel(_)
            | Action::Serial(_)
            | Action::Codependent(_) => {}
        }
    }
    programs == 1
}

/// A limit as reasons tell it, exactly as it was asked for: `10s`, `1500ms`.
fn limit(time: Duration) -> String {
    let millis = time.as_millis();
    if millis.is_multiple_of(1_000) {
        return format!("{}s", millis / 1_000);
    }
    format!("{millis}ms")
}
