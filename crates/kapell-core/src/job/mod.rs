//! Jobs: what is to run when, and what of it is due.

pub mod definition;
pub mod environment;
pub mod faults;
pub mod length;
pub(crate) mod lift;
pub mod params;
pub mod record;
pub mod request;
pub mod task;
#[cfg(test)]
mod tests;
pub mod validate;

pub use definition::{
    Calendar, CatchUp, CatchUpPolicy, Command, Group, History, JobDefinition, Multiplier, Overlap,
    Parameter, Payload, Retry, RetryOn, WorkflowPayload,
};
pub use environment::environment;
pub use length::Length;
pub use record::{Job, PassReason, Passed, Pause, PauseCause};
pub use request::{JobRequest, NewRun};
pub use task::TaskPayload;
