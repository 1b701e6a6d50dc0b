use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{CellId, InstanceGuid, Records, Resources, Settings};
use kapell_core::seams::Timestamp;

use kapell_node::scheduler::backend::Attempt;

use super::fact::Process;
use super::plan::Plan;

/// A machine with its agent, as it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) capacity: Resources,
    pub(super) zone: String,
    /// Whether it runs at all, and whether its agent does.
    pub(super) is_up: bool,
    pub(super) has_agent: bool,
    /// It was told to evacuate.
    pub(super) evacuating: bool,
}

/// The world as it really is, which nobody in it knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) plan: &'a Plan,
    /// What the boards go by.
    pub(super) settings: &'a Settings,
    /// The one true time.
    pub(super) now: Duration,
    /// The same as people write it; hosts and cells whose clock jumped have another one.
    pub(super) wall: Timestamp,
    /// What the store holds, of all shards together.
    pub(super) records: &'a Records,
    /// What runs on machines.
    pub(super) running: &'a BTreeMap<InstanceGuid, Process>,
    pub(super) machines: &'a BTreeMap<CellId, Machine>,
    /// What runs on the machines of hosts.
    pub(super) works: &'a BTreeSet<(usize, Attempt)>,
    /// The host that leads, as it believes itself.
    pub(super) leader: Option<usize>,
    /// Since when nothing has gone wrong and nobody has asked for anything, if that is so.
    pub(super) calm_since: Option<Duration>,
}
