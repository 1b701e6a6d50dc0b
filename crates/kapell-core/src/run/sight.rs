//! How a run stands between two states that are stored: what the scheduler knows and the board does not.

use serde::{Deserialize, Serialize};

use super::orchestrator::Orchestrator;
use super::record::{Entry, Noted, Run};
use super::state::RunState;
use crate::seams::Timestamp;

/// A run that is further than its record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    pub state: RunState,
    pub previous_state: RunState,
    pub attempt: u32,
    /// When it came into its state.
    pub since: Timestamp,
    /// Why it is in that state; of one that waits for its turn, for whom.
    pub why: Box<str>,
    /// The constraint that is being looked at, or the action that is being taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Box<Doing>>,
}

/// One thing that takes its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    pub what: String,
    pub since: Timestamp,
}

impl Sight {
    pub fn of(it: &Orchestrator) -> Self {
        let mut why = String::new();
        for entry in it.noted() {
            match entry.noted {
                Noted::State { why: said, .. } => why = said.into_owned(),
                Noted::Waits { why: said } | Noted::Cancel { why: said } => why = said,
                Noted::Revision { .. }
                | Noted::Skipped { .. }
                | Noted::Constraint { .. }
                | Noted::ConstraintError { .. }
                | Noted::Action { .. }
                | Noted::Adopted { .. }
                | Noted::Ignored { .. } => {}
            }
        }
        Self {
            state: it.state(),
            previous_state: it.previous_state(),
            attempt: it.attempt(),
            since: it.since(),
            why: why.into(),
            doing: None,
        }
    }

    /// Whether the record has not caught up: it may have been written after this was seen.
    pub const fn is_ahead_of(&self, run: &Run) -> bool {
        let (seen, stored) = (step(self.state), step(run.state));
        !run.state.is_final()
            && (self.attempt > run.attempt || (self.attempt == run.attempt && seen > stored))
    }

    /// Why it is as it is, with what is being done.
    pub fn reason(&self) -> String {
        match self.doing.as_deref() {
            Some(Doing { what, .. }) if self.why.is_empty() => what.clone(),
            Some(Doing { what, .. }) => format!("{}: {what}", self.why),
            None => self.why.to_string(),
        }
    }

    /// Shows a record as its run stands. Whether it was ahead.
    pub fn put_over(&self, run: &mut Run) -> bool {
        if !self.is_ahead_of(run) {
            return false;
        }
        run.state = self.state;
        run.previous_state = Some(self.previous_state);
        if self.attempt > run.attempt {
            (run.started_at, run.exit_code) = (None, None);
        }
        run.attempt = self.attempt;
        run.retry_at = run.retry_at.filter(|_| self.state == RunState::Retrying);
        // Until it ends, why it is to be cancelled is not forgotten.
        if run.cancel.is_none() {
            run.reason = self.reason();
        }
        true
    }
}

/// How far a state is within an attempt. A run that waits for its next attempt is of that one already.
const fn step(state: RunState) -> u8 {
    match state {
        RunState::PreRun => 0,
        RunState::Retrying => 1,
        RunState::Pending => 2,
        RunState::ConditionPending => 3,
        RunState::ConditionRunning => 4,
        RunState::ActionPending => 5,
        RunState::ActionRunning => 6,
        RunState::ContainerCreating => 7,
        RunState::Running => 8,
        RunState::Terminating => 9,
        RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Orphaned => 10,
    }
}

/// Adds what was noted of a run and is not stored yet. What was stored meanwhile is not told twice.
pub fn add_noted(run: &mut Run, noted: Vec<Entry>) {
    if run.state.is_final() {
        return;
    }
    for entry in noted {
        if !run.timeline.contains(&entry) {
            run.timeline.push(entry);
        }
    }
}
