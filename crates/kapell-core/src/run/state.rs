//! The states of a run and every step between them.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub enum RunState {
    PreRun,
    Pending,
    ConditionPending,
    ConditionRunning,
    ActionPending,
    ActionRunning,
    ContainerCreating,
    Running,
    Terminating,
    Retrying,
    Completed,
    Failed,
    Cancelled,
    Orphaned,
}

/// The states that are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    Completed,
    Failed,
    Cancelled,
    Orphaned,
}

/// A step that no run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid state transition: {} -> {}", from.name(), to.name())]
pub struct IllegalStep {
    pub from: RunState,
    pub to: RunState,
}

impl RunState {
    pub const ALL: [Self; 14] = [
        Self::PreRun,
        Self::Pending,
        Self::ConditionPending,
        Self::ConditionRunning,
        Self::ActionPending,
        Self::ActionRunning,
        Self::ContainerCreating,
        Self::Running,
        Self::Terminating,
        Self::Retrying,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Orphaned,
    ];

    /// As which it is written: its place in [`Self::ALL`], fixed for ever.
    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Every step a run may take. Nothing else in the workspace says so.
    #[rustfmt::skip]
    pub const fn next(self) -> &'static [Self] {
        use RunState::{
            ActionPending, ActionRunning, Cancelled, Completed, ConditionPending, ConditionRunning, ContainerCreating,
            Failed, Orphaned, Pending, PreRun, Retrying, Running, Terminating,
        };
        match self {
            PreRun            => &[Pending, Cancelled, Orphaned],
            Pending           => &[ConditionPending, ContainerCreating, Cancelled, Failed, Orphaned],
            ConditionPending  => &[ConditionRunning, Cancelled, Failed, Orphaned],
            ConditionRunning  => &[ActionPending, ContainerCreating, Retrying, Cancelled, Failed, Orphaned],
            ActionPending     => &[ActionRunning, Cancelled, Failed, Orphaned],
            ActionRunning     => &[ContainerCreating, Completed, Retrying, Cancelled, Failed, Orphaned],
            ContainerCreating => &[Running, Terminating, Cancelled, Failed, Orphaned],
            Running           => &[Terminating, Cancelled, Failed, Orphaned],
            Terminating       => &[Completed, Failed, Retrying, Cancelled, Orphaned],
            Retrying          => &[Pending, Failed, Cancelled, Orphaned],
            Completed | Failed | Cancelled | Orphaned => &[],
        }
    }

    /// How a run in this state ended; none of one that has not.
    pub const fn ending(self) -> Option<Ending> {
        match self {
            Self::Completed => Some(Ending::Completed),
            Self::Failed => Some(Ending::Failed),
            Self::Cancelled => Some(Ending::Cancelled),
            Self::Orphaned => Some(Ending::Orphaned),
            Self::PreRun
            | Self::Pending
            | Self::ConditionPending
            | Self::ConditionRunning
            | Self::ActionPending
            | Self::ActionRunning
            | Self::ContainerCreating
            | Self::Running
            | Self::Terminating
            | Self::Retrying => None,
        }
    }

    pub const fn is_final(self) -> bool {
        self.next().is_empty()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::PreRun => "PreRun",
            Self::Pending => "Pending",
            Self::ConditionPending => "ConditionPending",
            Self::ConditionRunning => "ConditionRunning",
            Self::ActionPending => "ActionPending",
            Self::ActionRunning => "ActionRunning",
            Self::ContainerCreating => "ContainerCreating",
            Self::Running => "Running",
            Self::Terminating => "Terminating",
            Self::Retrying => "Retrying",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
            Self::Orphaned => "Orphaned",
        }
    }

    /// For people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::PreRun => "it waits for its time; a change of its job still reaches it",
            Self::Pending => "its time has come, and it may have to wait for its turn",
            Self::ConditionPending => "its constraints are about to be checked",
            Self::ConditionRunning => "its constraints are being checked",
            Self::ActionPending => "something is to be done about its constraints",
            Self::ActionRunning => "actions are being taken",
            Self::ContainerCreating => "its work is being launched",
            Self::Running => "its work runs",
            Self::Terminating => "its work has ended, and what follows from that is seen to",
            Self::Retrying => "the attempt failed, and the next one waits for its time",
            Self::Completed => "it went well, or was skipped",
            Self::Failed => "it failed, and there is no further attempt",
            Self::Cancelled => "somebody wanted it to end",
            Self::Orphaned => "it gave no sign of life, so the scheduler gave it up",
        }
    }

    /// Whether the board is told of it: of the others only the scheduler knows.
    pub const fn is_stored(self) -> bool {
        match self {
            Self::PreRun
            | Self::ContainerCreating
            | Self::Running
            | Self::Retrying
            | Self::Completed
            | Self::Failed
            | Self::Cancelled
            | Self::Orphaned => true,
            Self::Pending
            | Self::ConditionPending
            | Self::ConditionRunning
            | Self::ActionPending
            | Self::ActionRunning
            | Self::Terminating => false,
        }
    }
}
