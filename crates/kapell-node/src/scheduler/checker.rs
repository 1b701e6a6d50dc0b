//! Constraints and actions, as the scheduler sees them: an errand with a verdict.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_core::constraint::Verdict;
use kapell_core::job::JobDefinition;
use kapell_core::run::{ActionsDone, Checked, Counts, Run, RunId, WorkEnd};
use kapell_core::seams::Timestamp;

use crate::constraint::Pulse;

/// What is checked, and for whom something is done.
#[derive(Debug, Clone)]
pub struct Subject {
    pub definition: Arc<JobDefinition>,
    /// As the board has it.
    pub run: Arc<Run>,
    pub attempt: u32,
    /// When the work of this attempt began to run.
    pub started_at: Option<Timestamp>,
}

/// What there is to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    pub before: bool,
    pub after: bool,
}

/// Checks constraints and takes actions. Whoever does ticks the pulse for as long as it gets on: without a tick for
/// half a minute the run counts as stuck. A future may be dropped at any time: that is how it is abandoned.
#[async_trait]
pub trait Checker: fmt::Debug + Send + Sync {
    fn wants(&self, definition: &JobDefinition) -> Wants;

    /// Looks at all constraints, and does nothing about them yet.
    async fn check(&self, subject: &Subject, pulse: &Pulse) -> Checked;

    /// Goes through the lists of actions that the check of this attempt called for.
    async fn act(&self, subject: &Subject, pulse: &Pulse) -> ActionsDone;

    /// Looks at what is to be checked after the work, and takes the actions that this calls for.
    async fn check_post(&self, subject: &Subject, work: &WorkEnd, pulse: &Pulse) -> ActionsDone;

    /// The run has ended: what was kept for it may go.
    fn forget(&self, _run_id: &RunId) {}
}

/// For jobs without constraints: everything may go.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unconstrained;

fn nothing_done() -> ActionsDone {
    let (message, notes) = ("no constraints to check".to_owned(), Vec::new());
    ActionsDone { verdict: Verdict::Proceed, message, counts: Counts::default(), notes }
}

#[async_trait]
impl Checker for Unconstrained {
    fn wants(&self, _: &JobDefinition) -> Wants {
        Wants::default()
    }

    async fn check(&self, _: &Subject, _: &Pulse) -> Checked {
        let ActionsDone { verdict, message, counts, notes } = nothing_done();
        Checked { verdict, message, acts: false, counts, notes }
    }

    async fn act(&self, _: &Subject, _: &Pulse) -> ActionsDone {
        nothing_done()
    }

    async fn check_post(&self, _: &Subject, _: &WorkEnd, _: &Pulse) -> ActionsDone {
        nothing_done()
    }
}
