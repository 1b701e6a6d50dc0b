use kapell_core::board::{CellId, InstanceGuid, LrpKey, RecordKey, Reply, Request, TaskGuid};
use kapell_core::seams::Timestamp;
use kapell_core::seat::Epoch;
use kapell_store::model::{Fence, Shard};

use kapell_node::scheduler::backend::Attempt;

use super::ledger::Change;
use super::mail::Brief;

/// What a process on a machine is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Unit {
    Lrp(LrpKey),
    Task(TaskGuid),
}

/// A process that runs on a machine, seen from outside: whatever agents and boards believe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) cell: CellId,
    pub(super) unit: Unit,
    pub(super) container: InstanceGuid,
    pub(super) memory_mb: u32,
    pub(super) disk_mb: u32,
}

/// Something that happened, and that a rule may be about.
#[derive(Debug, Clone)]
pub(super) enum Fact {
    /// A process began to run on a machine.
    Began(Process),
    /// It runs no more: it ended, was ended, or its machine died.
    Over(Process),
    /// A client asks; whether it is heard, and whether it hears the answer, is another matter.
    Asked { request: Request },
    /// A client was answered that this is done.
    Acknowledged { request: Request, reply: Reply },
    /// The store has made a commit that this host had sent.
    Committed { host: usize, shard: Shard, at: Fence, changes: Vec<Change> },
    /// What stood at a key was overwritten with garbage.
    Corrupted { key: RecordKey },
    /// A cell has heeded a request of a leader: it was not refused for its epoch.
    Heeded { cell: CellId, epoch: Epoch, what: &'static str },
    /// A cell has heard from a leader what epoch it is.
    HeardOf { cell: CellId, epoch: Epoch },
    /// A leader has heard that a cell is there, and has welcomed it.
    Welcomed { host: usize, cell: CellId },
    /// A leader has heard that a cell goes.
    Left { host: usize, cell: CellId },
    /// A leader told a cell to stop an instance; seen when it is sent, with the host's wall clock.
    StopSent { host: usize, cell: CellId, key: LrpKey, container: InstanceGuid, wall: Timestamp },
    /// Work was handed to a cell; seen when it is sent.
    WorkSent { host: usize, cell: CellId, unit: Unit },
    /// A leader begins a completion callback, one for each try, and shows the task so.
    Calling { host: usize, task: TaskGuid, container: InstanceGuid, version: u64 },
    /// A completion callback reached its receiver.
    Called { task: TaskGuid, container: InstanceGuid },
    /// A row of a table was met that cannot be.
    Inconceivable { cell: CellId, text: String },
    /// A new process of a host has taken over the board.
    TookOver { host: usize, epoch: Epoch },
    /// Work of a run began on the machine of a host; whether that host leads, as it believes itself.
    WorkBegan { host: usize, attempt: Attempt, leads: bool },
    /// It runs no more: it ended, was ended, or its machine died.
    WorkOver { host: usize, attempt: Attempt },
    /// Nothing goes wrong from now on.
    FaultsOver,
}

impl Fact {
    /// It in a line of a trace.
    pub(super) fn brief(&self) -> String {
        match self {
            Self::Began(process) => format!("began {}", named(process)),
            Self::Over(process) => format!("over {}", named(process)),
            Self::Asked { request } => format!("asked {}", Brief(request)),
            Self::Acknowledged { request, .. } => format!("acknowledged {}", Brief(request)),
            Self::Committed { host, shard, at, changes } => {
                let mut text = format!("host{host} committed {shard} at {at}");
                for change in changes {
                    text.push_str(&format!(" {change}"));
                }
                text
            }
            Self::Heeded { cell, epoch, what } => format!("{cell} heeds {what} e{epoch}"),
            Self::Called { task, container } => format!("called for {task} {container}"),
            Self::Corrupted { .. }
            | Self::HeardOf { .. }
            | Self::Welcomed { .. }
            | Self::Left { .. }
            | Self::StopSent { .. }
            | Self::WorkSent { .. }
            | Self::Calling { .. }
            | Self::Inconceivable { .. }
            | Self::TookOver { .. }
            | Self::WorkBegan { .. }
            | Self::WorkOver { .. }
            | Self::FaultsOver => format!("{self:?}"),
        }
    }
}

fn named(process: &Process) -> String {
    let Process { cell, unit, container, .. } = process;
    match unit {
        Unit::Lrp(key) => format!("{key} {container} on {cell}"),
        Unit::Task(guid) => format!("{guid} {container} on {cell}"),
    }
}
