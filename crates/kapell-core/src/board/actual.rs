//! What is there of a long-running process.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{CellId, Domain, InstanceGuid, ProcessGuid};
use crate::seams::Timestamp;

/// One index of a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LrpKey {
    pub process_guid: ProcessGuid,
    pub index: u32,
}

impl fmt::Display for LrpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.process_guid, self.index)
    }
}

/// Which container on which cell: the seed's α and ω.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InstanceKey {
    pub instance_guid: InstanceGuid,
    pub cell_id: CellId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ActualState {
    Unclaimed,
    Claimed,
    Running,
    Crashed,
}

impl ActualState {
    pub const ALL: [Self; 4] = [Self::Unclaimed, Self::Claimed, Self::Running, Self::Crashed];

    /// Every step an instance may take. It can be removed in any state.
    ///
    /// RUNNING comes after any other: a container that runs is told to the board, whatever that thought.
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Unclaimed => &[Self::Claimed, Self::Running],
            Self::Claimed => &[Self::Unclaimed, Self::Running, Self::Crashed],
            Self::Running => &[Self::Unclaimed, Self::Claimed, Self::Crashed],
            Self::Crashed => &[Self::Unclaimed, Self::Running],
        }
    }

    /// What makes an instance take a step that [`ActualState::next`] has; nothing for any other.
    pub const fn cause(self, to: Self) -> Option<&'static str> {
        let cause = match self {
            Self::Unclaimed => match to {
                Self::Claimed => "the cell that won the auction claims it",
                Self::Running => "a cell has a container of it that runs already",
                Self::Unclaimed | Self::Crashed => return None,
            },
            Self::Claimed => match to {
                Self::Unclaimed => {
                    "its cell gives it up or is lost, or it crashes for one of the first times"
                }
                Self::Running => "its container is ready, or that of another cell is",
                Self::Crashed => "it crashes once more than is restarted at once",
                Self::Claimed => return None,
            },
            Self::Running => match to {
                Self::Unclaimed => {
                    "its cell is evacuated or lost, or it crashes for one of the first times"
                }
                Self::Claimed => {
                    "its cell has only a reservation or a container that is being started"
                }
                Self::Crashed => "it crashes once more than is restarted at once",
                Self::Running => return None,
            },
            Self::Crashed => match to {
                Self::Unclaimed => "its wait is over: convergence restarts it",
                Self::Running => "a cell has a container of it that runs after all",
                Self::Claimed | Self::Crashed => return None,
            },
        };
        Some(cause)
    }

    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Unclaimed => "waits for a cell",
            Self::Claimed => "a cell is starting it",
            Self::Running => "a cell runs it, and it can be reached",
            Self::Crashed => "it ended and is on no cell; it is waited with before the next start",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Unclaimed => "UNCLAIMED",
            Self::Claimed => "CLAIMED",
            Self::Running => "RUNNING",
            Self::Crashed => "CRASHED",
        }
    }
}

/// Where an instance can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NetInfo {
    /// A host name or an address.
    pub address: String,
    pub ports: Vec<PortMapping>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortMapping {
    pub container_port: u16,
    pub host_port: u16,
}

/// One instance of a process, or its evacuating twin.
///
/// UNCLAIMED has no instance key; CLAIMED has one and no net info; RUNNING has both, and says whether it is ready;
/// CRASHED has neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActualLrp {
    pub process_guid: ProcessGuid,
    pub index: u32,
    pub domain: Domain,
    pub state: ActualState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_guid: Option<InstanceGuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<CellId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<NetInfo>,
    /// Whether it is to be sent work. Only what is RUNNING says; see [`ActualLrp::is_ready`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// When the state last changed.
    pub since: Timestamp,
    #[serde(default)]
    pub crash_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_error: Option<String>,
    #[serde(default)]
    pub evacuating: bool,
    /// When an evacuating twin goes away by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Of which desired LRP of this name it is an instance.
    #[serde(default, skip_serializing_if = "super::desired::is_zero_long")]
    pub incarnation: u64,
    /// Grows with every change.
    #[serde(default)]
    pub version: u64,
}

impl ActualLrp {
    pub fn unclaimed(key: &LrpKey, domain: Domain, since: Timestamp) -> Self {
        Self {
            process_guid: key.process_guid.clone(),
            index: key.index,
            domain,
            state: ActualState::Unclaimed,
            instance_guid: None,
            cell_id: None,
            net: None,
            ready: None,
            since,
            crash_count: 0,
            crash_reason: None,
            placement_error: None,
            evacuating: false,
            expires_at: None,
            incarnation: 0,
            version: 1,
        }
    }

    pub fn key(&self) -> LrpKey {
        LrpKey { process_guid: self.process_guid.clone(), index: self.index }
    }

    /// The container it is about, if it is about one.
    pub fn instance(&self) -> Option<InstanceKey> {
        let instance_guid = self.instance_guid.clone()?;
        Some(InstanceKey { instance_guid, cell_id: self.cell_id.clone()? })
    }

    pub fn is_of(&self, instance: &InstanceKey) -> bool {
        self.instance_guid.as_ref() == Some(&instance.instance_guid)
            && self.cell_id.as_ref() == Some(&instance.cell_id)
    }

    /// Whether it is to be sent work: it runs, and its cell has not said that it is not ready.
    pub fn is_ready(&self) -> bool {
        self.state == ActualState::Running && self.ready.unwrap_or(true)
    }

    /// Older versions did not say whether an instance is ready: all that ran were.
    pub(super) fn settled(mut self) -> Self {
        if self.state == ActualState::Running {
            self.ready = Some(self.is_ready());
        }
        self
    }

    /// Whether the fields fit the state. An evacuating twin always runs.
    pub const fn is_consistent(&self) -> bool {
        if self.evacuating && !matches!(self.state, ActualState::Running) {
            return false;
        }
        let key = self.instance_guid.is_some() && self.cell_id.is_some();
        let no_key = self.instance_guid.is_none() && self.cell_id.is_none();
        match self.state {
            ActualState::Unclaimed | ActualState::Crashed => {
                no_key && self.net.is_none() && self.ready.is_none()
            }
            ActualState::Claimed => key && self.net.is_none() && self.ready.is_none(),
            ActualState::Running => key && self.net.is_some() && self.ready.is_some(),
        }
    }
}

/// Which of an instance and its evacuating twin a reader gets.
pub fn shown<'a>(
    instance: Option<&'a ActualLrp>,
    evacuating: Option<&'a ActualLrp>,
) -> Option<&'a ActualLrp> {
    let Some(twin) = evacuating else { return instance };
    let Some(lrp) = instance else { return Some(twin) };
    match lrp.state {
        ActualState::Unclaimed | ActualState::Claimed => Some(twin),
        ActualState::Running | ActualState::Crashed => Some(lrp),
    }
}
