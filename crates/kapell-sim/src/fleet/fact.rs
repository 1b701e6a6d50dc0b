use kapell_core::board::{CellId, InstanceGuid, LrpKey, Reply, Request, TaskGuid};
use kapell_core::seat::Epoch;
use kapell_store::model::{Fence, Op, Shard};

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
    /// A client was answered that this is done.
    Acknowledged { request: Request, reply: Reply },
    /// The store has made a commit.
    Committed { shard: Shard, at: Fence, ops: Vec<Op> },
    /// A cell has heeded a request of a leader: it was not refused for its epoch.
    Heeded { cell: CellId, epoch: Epoch, what: &'static str },
    /// A leader told a cell to stop an instance; seen when it is sent.
    StopSent { cell: CellId, key: LrpKey, container: InstanceGuid, host: usize },
    /// Work was handed to a cell; seen when it is sent.
    WorkSent { cell: CellId, unit: Unit },
    /// A completion callback reached its receiver.
    Called { task: TaskGuid, container: InstanceGuid },
    /// A row of a table was met that cannot be.
    Inconceivable { cell: CellId, text: String },
    /// A new process of a host has taken over the board.
    TookOver { host: usize, epoch: Epoch },
    /// Nothing goes wrong from now on.
    FaultsOver,
}
