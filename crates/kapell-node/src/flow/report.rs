//! What a run came to.

use std::time::Duration;

use kapell_core::flow::{Cause, State, Verdict};
use kapell_core::seams::RunId;

/// The outcome of a run.
#[derive(Debug, Clone)]
pub struct Report {
    pub verdict: Verdict,
    pub cause: Option<Cause>,
    pub run: Option<RunId>,
    pub duration: Duration,
    /// Every step, then every handler.
    pub steps: Vec<StepReport>,
    /// What failed, the first failure first.
    pub failures: Vec<Failure>,
    /// Processes that steps had left behind and that were ended.
    pub swept: usize,
    /// What went wrong with the journal or the log.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct StepReport {
    pub name: String,
    /// Runs after all steps, by how they went.
    pub is_handler: bool,
    pub state: State,
    pub attempts: u32,
    pub duration: Option<Duration>,
}

/// A step that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    pub name: String,
    pub error: String,
    pub tolerated: bool,
    /// The last of what it wrote.
    pub tail: String,
}
