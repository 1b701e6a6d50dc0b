//! What is told of a run while it goes on: to loggers, to the journal, to people.

use std::fmt;
use std::time::Duration;

use crate::seams::Moment;
use crate::workflow::{StepIx, show_duration};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    WorkflowStarted,
    WorkflowCompleted,
    WorkflowFailed,
    NodeStarted,
    NodeCompleted,
    NodeFailed,
    NodeFailedContinue,
    NodeSkipped,
    NodeRetrying,
    NodeCancelled,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::WorkflowStarted,
        Self::WorkflowCompleted,
        Self::WorkflowFailed,
        Self::NodeStarted,
        Self::NodeCompleted,
        Self::NodeFailed,
        Self::NodeFailedContinue,
        Self::NodeSkipped,
        Self::NodeRetrying,
        Self::NodeCancelled,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::WorkflowStarted => "workflow_started",
            Self::WorkflowCompleted => "workflow_completed",
            Self::WorkflowFailed => "workflow_failed",
            Self::NodeStarted => "node_started",
            Self::NodeCompleted => "node_completed",
            Self::NodeFailed => "node_failed",
            Self::NodeFailedContinue => "node_failed_continue",
            Self::NodeSkipped => "node_skipped",
            Self::NodeRetrying => "node_retrying",
            Self::NodeCancelled => "node_cancelled",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub at: Moment,
    pub kind: Kind,
    /// None for events of the workflow as a whole.
    pub step: Option<StepIx>,
    /// Attempt of the step, from 0.
    pub attempt: u32,
    pub exit_code: Option<i32>,
    pub duration: Option<Duration>,
    pub reason: Option<String>,
    pub error: Option<String>,
}

impl Note {
    pub(super) fn new(at: Moment, kind: Kind, step: Option<StepIx>) -> Self {
        Self {
            at,
            kind,
            step,
            attempt: 0,
            exit_code: None,
            duration: None,
            reason: None,
            error: None,
        }
    }
}

/// Why a run was stopped before its steps were done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Somebody asked for it, with this signal.
    Signal(i32),
    /// A step failed.
    Failure(StepIx),
    /// The workflow took longer than it may.
    Timeout(Duration),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Succeeded,
    /// The step that failed first; none if the workflow's own time ran out.
    Failed(Option<StepIx>),
    Interrupted(i32),
}

impl Verdict {
    /// The exit code of the command that ran it.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed(_) => 1,
            Self::Interrupted(signal) => 128_u8.wrapping_add(signal.to_le_bytes()[0]),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::Interrupted(_) => "interrupted",
        }
    }
}

/// A signal's name, for the signals that people meet.
pub(super) fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal) => write!(f, "interrupted by {}", signal_name(*signal)),
            Self::Failure(_) => f.write_str("another step failed"),
            Self::Timeout(limit) => {
                write!(f, "the workflow timed out after {}", show_duration(*limit))
            }
        }
    }
}
