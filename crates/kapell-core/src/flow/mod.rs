//! One run of a workflow: what is decided from what happened, and when.

mod attempt;
mod ending;
mod machine;
mod note;
mod placed;
mod plan;
mod settle;
mod state;
#[cfg(test)]
mod tests;
mod timers;

pub use machine::{Effect, Ended, Event, Finish, Flow, Phase, Settings};
pub use note::{Cause, Kind, Note, Verdict};
pub use placed::Placed;
pub use plan::{Decision, Fate, Past, PastStep, Selection, decisions, fates};
pub use state::{IllegalStep, State, satisfied};
