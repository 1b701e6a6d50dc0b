//! Constraints and actions: what a job's `constraints` and `actions` mean, and what becomes of a run by them.
//!
//! All of it is pure: the configuration is read and checked here, what was found out is judged here, and what follows
//! for the run is decided here. Whoever asks others, waits and calls out is elsewhere.

mod about;
mod action;
mod catalog;
mod combine;
pub mod delivery;
mod fault;
mod fields;
mod judge;
mod kind;
pub mod lines;
pub mod outgoing;
mod read;
mod rule;
mod schema;
mod template;
mod window;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use about::{About, Seen, Work, rfc3339};
pub use action::{ActionSpec, Deed, Level, MetricKind, Notify};
pub use combine::{Done, Outcome, Step, checked, combine, conclude, steps};
pub use fault::Fault;
pub use judge::{Finding, JobState, PastRun};
pub use outgoing::{Method, Outgoing};
pub use read::{Constraints, faults, kicks, read};
pub use rule::{
    Header, Health, OnError, OtherJob, OtherQuestion, Phase, Place, PreviousSuccess, Room, Rule,
    Spec, Target,
};
pub use schema::schemas;
pub use template::Template;
pub use window::Window;

/// What is to become of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Proceed,
    Fail,
    Retry,
    Skip,
}
