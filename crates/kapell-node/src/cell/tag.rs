use std::path::PathBuf;
use std::time::Duration;

use kapell_core::board::{
    Action, Check, Domain, InstanceGuid, NetInfo, PortMapping, Resources, Run, Variable,
};
use kapell_core::recipe::Recipe;
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
    /// 0 is no limit; so are the other limits.
    pub(super) memory_mb: u32,
    pub(super) disk_mb: u32,
    #[serde(default)]
    pub(super) cpu_millis: u32,
    #[serde(default)]
    pub(super) max_pids: u32,
    #[serde(default)]
    pub(super) log_rate: Option<u64>,
    #[serde(default)]
    pub(super) rootfs: Option<String>,
    #[serde(default)]
    pub(super) address: String,
    #[serde(default)]
    pub(super) ports: Vec<PortMapping>,
    /// The user that is its own, if it was given one.
    #[serde(default)]
    pub(super) uid: Option<u32>,
    #[serde(default)]
    pub(super) stop_grace_ms: u64,
    #[serde(default)]
    pub(super) result_file: String,
    pub(super) logs: PathBuf,
    #[serde(default)]
    pub(super) env: Vec<Variable>,
    #[serde(default)]
    pub(super) setup: Option<Action>,
    /// What it does; older agents have left one program in it, and did not say which.
    #[serde(default = "one_program")]
    pub(super) action: Action,
    #[serde(default)]
    pub(super) monitor: Option<Action>,
    #[serde(default)]
    pub(super) check: Option<Check>,
    #[serde(default)]
    pub(super) readiness: Option<Check>,
    #[serde(default)]
    pub(super) start_timeout_ms: u64,
}

fn one_program() -> Action {
    Action::Run(Run::default())
}

impl Tag {
    pub(super) fn net(&self) -> NetInfo {
        NetInfo { address: self.address.clone(), ports: self.ports.clone() }
    }

    pub(super) const fn resources(&self) -> Resources {
        Resources { memory_mb: self.memory_mb, disk_mb: self.disk_mb, containers: 1 }
    }

    pub(super) fn recipe(&self) -> Recipe {
        Recipe { setup: self.setup.clone(), action: self.action.clone() }
    }

    /// The program, if one is all there is: the driver then knows all that has happened to it.
    pub(super) const fn plain(&self) -> Option<&Run> {
        if self.setup.is_some() { None } else { self.action.as_run() }
    }

    pub(super) const fn is_task(&self) -> bool {
        matches!(self.key, Key::Task(_))
    }

    pub(super) const fn stop_grace(&self) -> Duration {
        Duration::from_millis(self.stop_grace_ms)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // Writing text to memory cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}
