//! What a container remembers of the attempt that it is.

use kapell_core::run::RunId;
use serde::{Deserialize, Serialize};

use crate::scheduler::backend::Attempt;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) run_id: RunId,
    pub(super) attempt: u32,
    pub(super) kind: Kind,
}

/// What its program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Command,
    Workflow,
}

impl Mark {
    pub(super) fn of(attempt: &Attempt, kind: Kind) -> Self {
        Self { run_id: attempt.run_id.clone(), attempt: attempt.number, kind }
    }

    pub(super) fn attempt(&self) -> Attempt {
        Attempt { run_id: self.run_id.clone(), number: self.attempt }
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| format!("cannot write down the run: {error}"))
    }

    /// None if it is none of ours.
    pub(super) fn read(tag: &[u8]) -> Option<Self> {
        serde_json::from_slice(tag).ok()
    }
}
