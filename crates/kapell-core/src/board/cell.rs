//! Where work runs.

use serde::{Deserialize, Serialize};

use super::actual::LrpKey;
use super::ids::{CellId, InstanceGuid, TaskGuid};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Resources {
    pub memory_mb: u32,
    pub disk_mb: u32,
    pub containers: u32,
}

/// What a cell says of itself, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellPresence {
    pub cell_id: CellId,
    /// Tells cells with the same id apart: no two directories of cells have the same.
    #[serde(default)]
    pub home: String,
    /// Where the leader reaches it: `http://HOST:PORT`.
    pub url: String,
    #[serde(default)]
    pub zone: String,
    pub capacity: Resources,
    /// Which schemes of `rootfs` it can run; an absent rootfs every cell can.
    #[serde(default)]
    pub rootfs_schemes: Vec<String>,
    /// What work must ask for to be placed here.
    #[serde(default)]
    pub placement_tags: Vec<String>,
    /// What work may ask for besides.
    #[serde(default)]
    pub optional_placement_tags: Vec<String>,
    #[serde(default)]
    pub evacuating: bool,
    /// The version of its program.
    #[serde(default)]
    pub version: String,
}

/// What a cell answers before work is placed on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellState {
    pub cell_id: CellId,
    pub zone: String,
    pub total: Resources,
    pub available: Resources,
    pub rootfs_schemes: Vec<String>,
    pub placement_tags: Vec<String>,
    pub optional_placement_tags: Vec<String>,
    /// Containers that are reserved, being made or being started.
    pub starting: u32,
    pub lrps: Vec<Held<LrpKey>>,
    pub tasks: Vec<Held<TaskGuid>>,
    pub evacuating: bool,
    /// Its self-test failed too often: it takes no new work.
    pub unhealthy: bool,
}

impl CellState {
    /// A cell that holds nothing, offers nothing besides its room and is well.
    pub fn empty(cell_id: CellId, zone: String, total: Resources) -> Self {
        Self {
            cell_id,
            zone,
            total,
            available: total,
            rootfs_schemes: Vec::new(),
            placement_tags: Vec::new(),
            optional_placement_tags: Vec::new(),
            starting: 0,
            lrps: Vec::new(),
            tasks: Vec::new(),
            evacuating: false,
            unhealthy: false,
        }
    }
}

/// One container of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held<K> {
    pub key: K,
    pub instance_guid: InstanceGuid,
    pub memory_mb: u32,
    pub disk_mb: u32,
}
