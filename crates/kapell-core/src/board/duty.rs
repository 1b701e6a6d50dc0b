//! What convergence is there for, one by one.

use std::fmt;

/// One duty of convergence: what it finds, and what it asks the board to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Duty {
    RescueInstance,
    StartMissing,
    StopExtra,
    RestartCrashed,
    StartAgain,
    FailLostTask,
    StartTaskAgain,
    DeleteOldTask,
    ResolveTask,
    DemoteTask,
    ExpireTwin,
    Settle,
}

/// What a duty is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    Lrps,
    Tasks,
    /// What the board keeps beside instances and tasks.
    House,
}

impl About {
    pub const ALL: [Self; 3] = [Self::Lrps, Self::Tasks, Self::House];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Lrps => "LRPs",
            Self::Tasks => "tasks",
            Self::House => "housekeeping",
        }
    }
}

impl Duty {
    pub const ALL: [Self; 12] = [
        Self::RescueInstance,
        Self::StartMissing,
        Self::StopExtra,
        Self::RestartCrashed,
        Self::StartAgain,
        Self::FailLostTask,
        Self::StartTaskAgain,
        Self::DeleteOldTask,
        Self::ResolveTask,
        Self::DemoteTask,
        Self::ExpireTwin,
        Self::Settle,
    ];

    pub const fn about(self) -> About {
        self.place().0
    }

    /// Counted from 1 among those about the same.
    pub const fn number(self) -> u8 {
        self.place().1
    }

    const fn place(self) -> (About, u8) {
        match self {
            Self::RescueInstance => (About::Lrps, 1),
            Self::StartMissing => (About::Lrps, 2),
            Self::StopExtra => (About::Lrps, 3),
            Self::RestartCrashed => (About::Lrps, 4),
            Self::StartAgain => (About::Lrps, 5),
            Self::FailLostTask => (About::Tasks, 1),
            Self::StartTaskAgain => (About::Tasks, 2),
            Self::DeleteOldTask => (About::Tasks, 3),
            Self::ResolveTask => (About::Tasks, 4),
            Self::DemoteTask => (About::Tasks, 5),
            Self::ExpireTwin => (About::House, 1),
            Self::Settle => (About::House, 2),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::RescueInstance => "instance on a lost cell",
            Self::StartMissing => "missing instance",
            Self::StopExtra => "instance that nobody desires",
            Self::RestartCrashed => "CRASHED instance whose wait is over",
            Self::StartAgain => "stale UNCLAIMED instance",
            Self::FailLostTask => "RUNNING task on a lost cell",
            Self::StartTaskAgain => "stale PENDING task",
            Self::DeleteOldTask => "old COMPLETED task",
            Self::ResolveTask => "COMPLETED task that nobody resolves",
            Self::DemoteTask => "stuck RESOLVING task",
            Self::ExpireTwin => "evacuating twin whose time is over",
            Self::Settle => "desired LRP with nothing left to give up",
        }
    }

    /// When it applies.
    pub const fn condition(self) -> &'static str {
        match self {
            Self::RescueInstance => {
                "an instance or an evacuating twin is on a cell that is not present"
            }
            Self::StartMissing => "a desired index has no instance",
            Self::StopExtra => {
                "an instance is not desired, and its domain is fresh or somebody has scaled down or deleted"
            }
            Self::RestartCrashed => {
                "a desired instance is CRASHED and has waited for as long as the crash dance says"
            }
            Self::StartAgain => "a desired instance is UNCLAIMED for `stale_unclaimed` or longer",
            Self::FailLostTask => "a task is RUNNING on a cell that is not present",
            Self::StartTaskAgain => "a task is PENDING for `kick_task` or longer",
            Self::DeleteOldTask => "a task first completed `completed_task` ago or longer",
            Self::ResolveTask => "a task with a callback is COMPLETED for `kick_task` or longer",
            Self::DemoteTask => "a task is RESOLVING for `kick_task` or longer",
            Self::ExpireTwin => "an evacuating twin is older than `evacuation_timeout`",
            Self::Settle => {
                "of a desired LRP that was scaled down or deleted, all that was given up is gone"
            }
        }
    }

    /// The request to the board, which checks everything again.
    pub const fn request(self) -> &'static str {
        match self {
            Self::RescueInstance => "Rescue",
            Self::StartMissing => "Unfold",
            Self::StopExtra => "Retire",
            Self::RestartCrashed => "RestartCrashed",
            Self::StartAgain => "Reemit",
            Self::FailLostTask => "FailLostTask",
            Self::StartTaskAgain => "KickPendingTask",
            Self::DeleteOldTask | Self::ResolveTask | Self::DemoteTask => "KickCompletedTask",
            Self::ExpireTwin => "ExpireEvacuating",
            Self::Settle => "Settle",
        }
    }

    /// What the request does.
    pub const fn effect(self) -> &'static str {
        match self {
            Self::RescueInstance => {
                "CLAIMED or RUNNING becomes UNCLAIMED and a start is asked for; if it is not desired, and for a twin, the record is removed"
            }
            Self::StartMissing => "UNCLAIMED instances are created and starts are asked for",
            Self::StopExtra => {
                "UNCLAIMED and CRASHED: the record is removed; CLAIMED and RUNNING: the cell is told to stop it"
            }
            Self::RestartCrashed => "CRASHED becomes UNCLAIMED and a start is asked for",
            Self::StartAgain => "a start is asked for once more",
            Self::FailLostTask => {
                "RUNNING becomes COMPLETED and failed: cell `…` disappeared before completion"
            }
            Self::StartTaskAgain => {
                "a start is asked for once more; after `pending_task` it becomes COMPLETED and failed"
            }
            Self::DeleteOldTask => "the record is removed",
            Self::ResolveTask => {
                "the callback is called when its turn comes, and COMPLETED becomes RESOLVING"
            }
            Self::DemoteTask => {
                "RESOLVING becomes COMPLETED, to be resolved once more; past `completed_task` the record is removed"
            }
            Self::ExpireTwin => "the twin's record is removed",
            Self::Settle => "the mark, or the deleted desired LRP, is removed",
        }
    }
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.about() {
            About::Lrps => "convergence duty",
            About::Tasks => "convergence duty for tasks",
            About::House => "housekeeping",
        };
        write!(f, "{of} {}: {}", self.number(), self.name())
    }
}
