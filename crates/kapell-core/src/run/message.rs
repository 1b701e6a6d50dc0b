//! What is told to a run under way, and what it asks for.

use super::record::{Noted, StopKind};
use super::update::{RunUpdate, UpdateKind};
use crate::constraint::Verdict;
use crate::seams::Timestamp;

/// What happened to a run.
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
    /// All constraints were looked at, and nothing was done about it yet.
    Checked(Checked),
    /// The lists of actions have been gone through.
    ActionsDone(ActionsDone),
    /// An update is on disk.
    Stored {
        kind: UpdateKind,
        attempt: u32,
    },
    /// The backend took the work, or had taken it before.
    Launched,
    LaunchFailed {
        why: String,
    },
    /// The work runs.
    Started {
        attempt: u32,
        at: Timestamp,
    },
    /// The work is over, by itself or because it was stopped.
    Ended {
        attempt: u32,
        work: WorkEnd,
    },
    /// Nothing is left of the work in its backend; or what could not be ended is named.
    Stopped {
        left: Option<String>,
    },
    /// Post-execution constraints were looked at and their actions have been taken.
    PostChecked(ActionsDone),
    Cancel {
        kind: StopKind,
        why: String,
    },
    /// What a new leader finds out about the work of the attempt whose intent is stored.
    Found(Evidence),
    /// The scheduler has not heard from it for too long.
    Silent,
}

/// How work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkEnd {
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
    Act,
    /// [`Happened::Stored`] once it is on disk.
    Store(Box<RunUpdate>),
    /// [`Happened::Launched`] or `LaunchFailed`; then `Started` and `Ended`.
    Launch { attempt: u32 },
    /// [`Happened::Stopped`] once nothing of the work is left.
    Stop { attempt: u32, kind: StopKind },
    /// Look for the work of an attempt: [`Happened::Found`].
    Find { attempt: u32 },
    /// [`Happened::PostChecked`]
    CheckPost { work: WorkEnd },
    /// Let go of the check, the actions or the launch that is under way; no answer to it counts any more.
    Abandon,
    /// For the log: something was told to it that it could not use.
    Ignored { what: String },
    /// Its outcome is on disk and nothing of it is left: the backend may forget its attempts, and so may the scheduler.
    Done,
}
