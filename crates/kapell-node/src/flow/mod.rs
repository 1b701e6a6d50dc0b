//! Runs a workflow, on this machine, on cells and on Kubernetes.

mod actor;
mod capture;
mod cells;
mod context;
mod file;
mod history;
mod journal;
#[cfg(feature = "kubernetes")]
mod kubernetes;
#[cfg(not(feature = "kubernetes"))]
#[path = "no_kubernetes.rs"]
mod kubernetes;
mod logger;
mod orchestrator;
mod places;
mod plainly;
mod report;
#[cfg(test)]
mod tests;
mod wish;

pub use capture::streams;
pub use cells::Cells;
pub use file::{FileError, read_file};
pub use history::{History, HistoryError, Limits, Run, RunStatus, digest, whole_path};
pub use kubernetes::Clusters;
pub use logger::{ExecutionLogger, NoOpLogger, NodeEvent, NodeSnapshot, WorkflowEvent};
pub use orchestrator::{Orchestrator, Stopper};
pub use report::{Failure, Report, StepReport};
