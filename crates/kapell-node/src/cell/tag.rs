use std::path::PathBuf;

use kapell_core::board::{Domain, InstanceGuid, NetInfo, PortMapping, Resources};
use serde::{Deserialize, Serialize};

use super::LogOf as Key;

/// What a cell knows of a container for as long as it is there, also after the agent was restarted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tag {
    pub(super) key: Key,
    pub(super) domain: Domain,
    pub(super) instance_guid: InstanceGuid,
    /// Of which desired LRP of its name it is; none for a task, and for what older agents have left.
    #[serde(default)]
    pub(super) incarnation: Option<u64>,
    pub(super) memory_mb: u32,
    pub(super) disk_mb: u32,
    #[serde(default)]
    pub(super) address: String,
    #[serde(default)]
    pub(super) ports: Vec<PortMapping>,
    /// The user that is its own, if it was given one.
    #[serde(default)]
    pub(super) uid: Option<u32>,
    /// Where it runs, if not in the directory of its own.
    #[serde(default)]
    pub(super) dir: Option<PathBuf>,
    #[serde(default)]
    pub(super) stop_grace_ms: u64,
    #[serde(default)]
    pub(super) result_file: String,
    pub(super) logs: PathBuf,
}

impl Tag {
    pub(super) fn net(&self) -> NetInfo {
        NetInfo { address: self.address.clone(), ports: self.ports.clone() }
    }

    pub(super) const fn resources(&self) -> Resources {
        Resources { memory_mb: self.memory_mb, disk_mb: self.disk_mb, containers: 1 }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // Writing text to memory cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}
