//! Jobs: what is to run when, and what of it is due.

pub mod definition;
pub mod length;
pub mod record;
pub mod request;

pub use definition::{
    Calendar, CatchUp, CatchUpPolicy, Command, Group, History, JobDefinition, Overlap, Parameter, Payload, Retry,
    RetryOn, WorkflowPayload,
};
pub use length::Length;
pub use record::{Job, PassReason, Passed, Pause, PauseCause};
pub use request::{JobRequest, NewRun};
