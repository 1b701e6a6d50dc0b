//! Runs a workflow, on this machine and on cells.

mod actor;
mod capture;
mod cells;
mod context;
mod file;
mod history;
mod journal;
mod logger;
mod orchestrator;
mod places;
mod report;
#[cfg(test)]
mod tests;

pub use capture::streams;
pub use cells::Cells;
pub use file::{FileError, read_file};
pub use history::{History, HistoryError, Limits, Run, RunStatus, digest, whole_path};
pub use logger::{ExecutionLogger, NoOpLogger, NodeEvent, NodeSnapshot, WorkflowEvent};
pub use orchestrator::{Orchestrator, Stopper};
pub use report::{Failure, Report, StepReport};
