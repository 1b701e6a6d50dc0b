//! What is told to a run under way, and what it asks for.

use std::sync::Arc;

use super::record::{Noted, SkippedBy, StopKind};
use super::update::{RunUpdate, UpdateKind};
use crate::constraint::Verdict;
use crate::seams::Timestamp;

/// What happened to a run. Answers name the attempt that they are about: one that comes late is not taken for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A timer that was asked for has gone off.
    Rang(Timer),
    /// The scheduler has a place for it: no other run is in its way, or no longer.
    Admitted,
    /// It waits for its turn.
    Queued {
        why: String,
    },
    /// The scheduler has no place for it: it ends without having done anything.
    TurnedAway {
        why: String,
    },
    /// It is not to begin at all, whenever its time comes or came.
    PassedOver {
        by: SkippedBy,
        why: String,
    },
    /// All constraints were looked at, and nothing was done about it yet.
    Checked {
        attempt: u32,
        checked: Checked,
    },
    /// The lists of actions have been gone through.
    ActionsDone {
        attempt: u32,
        done: ActionsDone,
    },
    /// An update is on disk.
    Stored {
        kind: UpdateKind,
        attempt: u32,
    },
    /// The board does not take the intent to launch, now or later.
    IntentRefused {
        attempt: u32,
        why: String,
    },
    /// The backend took the work, or had taken it before.
    Launched {
        attempt: u32,
    },
    /// It was not taken, or it may be that it was: whatever there is of it is ended first.
    LaunchFailed {
        attempt: u32,
        why: String,
    },
    /// The work runs.
    Started {
        attempt: u32,
        at: Timestamp,
    },
    /// It was taken, but never ran and never will.
    Unstartable {
        attempt: u32,
        why: String,
    },
    /// It was taken, and something keeps it from starting that may pass.
    Hindered {
        attempt: u32,
        why: String,
    },
    /// The work is over, by itself or because it was stopped.
    Ended {
        attempt: u32,
        work: WorkEnd,
    },
    /// Nothing is left of the work in its backend; or what could not be ended is named.
    Stopped {
        attempt: u32,
        left: Option<String>,
    },
    /// Post-execution constraints were looked at and their actions have been taken.
    PostChecked {
        attempt: u32,
        done: ActionsDone,
    },
    Cancel {
        kind: StopKind,
        why: String,
    },
    /// What is found out about the work of an attempt: by a new leader, or by one that has had no news for long.
    Found {
        attempt: u32,
        evidence: Evidence,
    },
    /// The scheduler has not heard from it for too long.
    Silent,
}

impl Happened {
    /// For the log.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rang(_) => "a timer",
            Self::Admitted => "an admission",
            Self::Queued { .. } => "a word to wait",
            Self::TurnedAway { .. } => "a refusal of a place",
            Self::PassedOver { .. } => "a word not to begin",
            Self::Checked { .. } => "a check of its constraints",
            Self::ActionsDone { .. } => "an end of its actions",
            Self::Stored { .. } => "an update on disk",
            Self::IntentRefused { .. } => "a refusal of its intent",
            Self::Launched { .. } => "a launch",
            Self::LaunchFailed { .. } => "a launch that failed",
            Self::Started { .. } => "a start of its work",
            Self::Unstartable { .. } => "work that cannot start",
            Self::Hindered { .. } => "work that cannot start yet",
            Self::Ended { .. } => "an end of its work",
            Self::Stopped { .. } => "an end of a stop",
            Self::PostChecked { .. } => "a check after its work",
            Self::Cancel { .. } => "a cancel",
            Self::Found { .. } => "evidence of its work",
            Self::Silent => "silence",
        }
    }
}

/// How work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkEnd {
    /// When it began, for who was not told then.
    pub began: Option<Timestamp>,
    pub at: Timestamp,
    pub exit_code: Option<i32>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// Constraints that were looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub verdict: Verdict,
    pub message: String,
    /// There are lists of actions to go through.
    pub acts: bool,
    pub counts: Counts,
    pub notes: Vec<Noted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionsDone {
    /// What is to become of the run, now that they are done; an error of the executor is a failure.
    pub verdict: Verdict,
    pub message: String,
    pub counts: Counts,
    pub notes: Vec<Noted>,
}

/// Added to the figures of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub checked: u32,
    pub violated: u32,
    pub executed: u32,
    pub failed: u32,
}

/// What a backend knows of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// It was never launched, for certain.
    Absent,
    /// Whether it was launched, or what became of it, cannot be said.
    Unknown {
        why: String,
    },
    Launched,
    Running {
        since: Timestamp,
    },
    Ended(WorkEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    Due,
    /// `starting_deadline`
    Deadline,
    StartTimeout,
    /// `max_allowed_run_time`
    RunTime,
    Retry,
}

impl Timer {
    /// The key of a definition that it goes by, where there is one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Deadline => "starting_deadline",
            Self::StartTimeout => "start_timeout",
            Self::RunTime => "max_allowed_run_time",
            Self::Retry => "retry",
        }
    }
}

/// What is to be done for a run, in this order. Whatever waits for I/O is answered by one [`Happened`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Wake it then. A run has one timer: a later `Ring` replaces the one before.
    Ring { timer: Timer, at: Timestamp },
    /// Forget its timer.
    Quiet,
    /// Ask the scheduler whether it may go: [`Happened::Admitted`], `Queued` (and `Admitted` later) or `TurnedAway`.
    Admit,
    /// [`Happened::Checked`]
    Check { attempt: u32 },
    /// [`Happened::ActionsDone`]
    Act { attempt: u32 },
    /// [`Happened::Stored`] once it is on disk; of an intent, `IntentRefused` if it never will be.
    Store(Arc<RunUpdate>),
    /// [`Happened::Launched`] or `LaunchFailed`; then `Started` and `Ended`, or `Unstartable`.
    Launch { attempt: u32 },
    /// [`Happened::Stopped`] once nothing of the work is left.
    Stop { attempt: u32, kind: StopKind },
    /// Look for the work of an attempt: [`Happened::Found`].
    Find { attempt: u32 },
    /// [`Happened::PostChecked`]
    CheckPost { attempt: u32, work: WorkEnd },
    /// Let go of the check, the actions or the search that is under way; no answer to it counts any more.
    Abandon,
    /// For the log: something was told to it that it could not use.
    Ignored { what: String },
    /// Its outcome is on disk and nothing of it is left: the backend may forget its attempts, and so may the scheduler.
    Done,
}
