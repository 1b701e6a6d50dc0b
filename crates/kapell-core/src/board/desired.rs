//! What somebody wants to be running.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::{Action, Run, Variable};
use super::actual::ActualLrp;
use super::check::Check;
use super::ids::{Domain, ProcessGuid};
use crate::seams::Timestamp;

/// A process of which a number of instances is to run for as long as this stands.
///
/// What comes behind `routes` is the board's; in a request it counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesiredLrp {
    pub process_guid: ProcessGuid,
    pub domain: Domain,
    #[serde(default = "one")]
    pub instances: u32,
    /// What the instance sees as `/`; without it, the cell's own file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<String>,
    #[serde(default)]
    pub memory_mb: u32,
    #[serde(default)]
    pub disk_mb: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_pids: u32,
    /// Thousandths of a processor; 0 is no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_millis: u32,
    /// So many bytes of output a second are kept; 0 is what the cell has.
    #[serde(default, skip_serializing_if = "is_zero_long")]
    pub log_rate: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement_tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Action>,
    pub action: Action,
    /// Run over and over: an instance is well while this succeeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<Action>,
    /// Asked over and over, instead of `monitor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// Whether an instance that runs is to be sent work; without it, it always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Check>,
    /// How long `monitor` or `check` may take until it first succeeds; 0 is as long as it likes.
    #[serde(default, skip_serializing_if = "is_zero_long")]
    pub start_timeout_ms: u64,
    /// Between asking an instance to stop and killing it; without it, the cell's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    /// What an instance listens on, as it sees it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub annotation: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub routes: BTreeMap<String, Value>,
    /// Grows with every change.
    #[serde(default)]
    pub version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Which one of its name: no two that were desired under it have the same.
    #[serde(default, skip_serializing_if = "is_zero_long")]
    pub incarnation: u64,
    /// Deleted. It stands until its last instance is gone, and nobody is shown it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub removing: bool,
    /// Instances that somebody has given up, by scaling down or deleting, may still be there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retiring: bool,
    /// It stands for one that cannot be read: nobody knows what is desired, and nobody is shown it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub forgotten: bool,
}

impl DesiredLrp {
    /// One instance of something, and nothing else said about it.
    pub const fn new(process_guid: ProcessGuid, domain: Domain, action: Action) -> Self {
        Self {
            process_guid,
            domain,
            instances: one(),
            rootfs: None,
            memory_mb: 0,
            disk_mb: 0,
            max_pids: 0,
            cpu_millis: 0,
            log_rate: 0,
            placement_tags: Vec::new(),
            setup: None,
            action,
            monitor: None,
            check: None,
            readiness: None,
            start_timeout_ms: 0,
            stop_grace_ms: None,
            env: Vec::new(),
            ports: Vec::new(),
            annotation: String::new(),
            routes: BTreeMap::new(),
            version: 0,
            created_at: None,
            updated_at: None,
            incarnation: 0,
            removing: false,
            retiring: false,
            forgotten: false,
        }
    }

    /// What stands in the place of one that cannot be read.
    pub fn forgotten(process_guid: ProcessGuid) -> Self {
        let unknown = Self::new(process_guid, Domain::new(""), Action::Run(Run::default()));
        Self { removing: true, forgotten: true, ..unknown }
    }

    /// Whether there is to be an instance with this index.
    pub const fn wants(&self, index: u32) -> bool {
        !self.removing && index < self.instances
    }

    /// Whether this is an instance that there is to be.
    pub const fn wants_this(&self, lrp: &ActualLrp) -> bool {
        self.wants(lrp.index) && lrp.incarnation == self.incarnation
    }

    /// Whether somebody has given this instance up, by scaling down or deleting.
    pub const fn has_given_up(&self, lrp: &ActualLrp) -> bool {
        let is_other = lrp.incarnation != self.incarnation && !self.forgotten;
        !self.wants_this(lrp) && (self.retiring || is_other)
    }

    /// Whether the same instances are wanted and given up.
    pub(super) const fn aims_as(&self, other: &Self) -> bool {
        self.instances == other.instances
            && self.incarnation == other.incarnation
            && self.removing == other.removing
            && self.forgotten == other.forgotten
            && self.retiring == other.retiring
    }
}

/// What of a [`DesiredLrp`] may change without restarting anything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesiredUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<BTreeMap<String, Value>>,
    /// Refused unless this is the version that stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(it: &bool) -> bool {
    !*it
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) const fn is_zero_long(number: &u64) -> bool {
    *number == 0
}
