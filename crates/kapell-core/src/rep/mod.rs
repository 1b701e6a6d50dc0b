//! How a cell keeps its containers and the board's records of them in line.
//!
//! Each table is total: every state of a container beside every state of the records. A cell reads
//! both, looks up the rule and does its actions in order; if one fails it stops there and looks again later.

pub mod container;
pub mod evacuation;
pub mod lrp;
pub mod task;

#[cfg(test)]
mod tests;

/// One step of a cell towards harmony.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Report `Claim`.
    Claim,
    /// Let the reserved container run.
    RunContainer,
    /// Report `Running`; the board removes an evacuating twin with it.
    MarkRunning,
    /// Report `Crashed`.
    NoteCrash,
    /// Report `Remove`.
    DropRecord,
    /// Report `Evacuate`, which does a following `Unclaim` as well.
    MakeTwin,
    /// Report `Unclaim`.
    Unclaim,
    /// Report `RemoveEvacuating`.
    DropTwin,
    /// Report `StartTask`.
    StartTask,
    /// Report `CompleteTask` with what the container ended with.
    CompleteTask,
    /// Report `CompleteTask` as failed: the container is lost.
    FailTask,
    DeleteContainer,
}

impl Action {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::RunContainer => "run",
            Self::MarkRunning => "mark-running",
            Self::NoteCrash => "note-crash",
            Self::DropRecord => "drop-record",
            Self::MakeTwin => "make-twin",
            Self::Unclaim => "unclaim",
            Self::DropTwin => "drop-twin",
            Self::StartTask => "start",
            Self::CompleteTask => "complete",
            Self::FailTask => "fail",
            Self::DeleteContainer => "delete",
        }
    }
}

/// How odd it is to be here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Surprise {
    Expected,
    /// After lost messages or a restart.
    Conceivable,
    /// Worth a loud line in the log.
    Inconceivable,
}

/// One place of a table: what to do, in order, and how odd it is to be here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub actions: &'static [Action],
    pub surprise: Surprise,
    pub why: &'static str,
}

const fn rule(actions: &'static [Action], surprise: Surprise, why: &'static str) -> Rule {
    Rule { actions, surprise, why }
}
