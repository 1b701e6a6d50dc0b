//! Where commands of steps are that have left this machine.

use serde::{Deserialize, Serialize};

use crate::board::TaskGuid;
use crate::kubernetes::JobPlace;

/// What the command of a step has become elsewhere, so that a later run finds it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Placed {
    /// A task on a board.
    Task(TaskGuid),
    /// A Job of a Kubernetes cluster.
    Job(JobPlace),
}

impl Placed {
    /// Where it is, in words.
    pub const fn place(&self) -> &'static str {
        match self {
            Self::Task(_) => "on a cell",
            Self::Job(_) => "on Kubernetes",
        }
    }
}
