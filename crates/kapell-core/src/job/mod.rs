//! Jobs: what is to run when, and what of it is due.

pub mod admit;
pub mod advice;
pub mod backfill;
pub mod cycles;
pub mod definition;
pub mod due;
pub mod environment;
pub mod explain;
pub mod faults;
pub mod figure;
mod holders;
pub mod length;
pub(crate) mod lift;
pub mod params;
pub mod record;
pub mod request;
pub(crate) mod rules;
pub mod simulate;
pub mod task;
pub mod validate;
pub mod when;

#[cfg(test)]
mod tests;

pub use definition::{
    Calendar, CatchUp, CatchUpPolicy, Command, Group, History, JobDefinition, Multiplier, Overlap,
    Parameter, Payload, Retry, RetryOn, WorkflowPayload,
};
pub use environment::environment;
pub use figure::Figure;
pub use length::Length;
pub use record::{
    ActionId, Again, Definition, Job, PassReason, Passed, Pause, PauseCause, Revised,
};
pub use request::{JobRequest, MOST_RUNS, NewRun, SchedulerNews};
pub use task::TaskPayload;
