//! A plan as it is asked for and told.

use serde::{Deserialize, Serialize};

use crate::board::desired::DesiredLrp;
use crate::board::ids::{CellId, ProcessGuid};
use crate::board::task::TaskDefinition;

/// What would be applied.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wishes {
    #[serde(default)]
    pub lrps: Vec<DesiredLrp>,
    #[serde(default)]
    pub tasks: Vec<TaskDefinition>,
    /// Of these as many instances stay as there are, if they stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_instances: Vec<ProcessGuid>,
}

/// What applying it would come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Nothing is refused, and there is room for all of it.
    pub fits: bool,
    pub wishes: Vec<Wish>,
    /// What would be placed: of the wishes, and what waits on the board already.
    pub units: Vec<Unit>,
    /// Instances that would be stopped. The room they leave is not counted on.
    pub stops: Vec<Stop>,
    /// Cells that did not say how they stand: nothing is placed on them here.
    pub silent: Vec<CellId>,
}

/// One wish, and what it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// `lrp/GUID` or `task/GUID`.
    pub subject: String,
    pub step: Step,
    /// What changes, or what cannot be changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Why it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Instances that are desired now, and then; of a task, 0 or 1.
    pub before: u32,
    pub after: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Create,
    ScaleUp,
    ScaleDown,
    /// Only what nobody has to be started or stopped for.
    Update,
    Unchanged,
    Refused,
}

impl Step {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::ScaleUp => "scale up",
            Self::ScaleDown => "scale down",
            Self::Update => "update",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
        }
    }
}

/// One instance or task, and where it would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// `lrp/GUID/INDEX` or `task/GUID`.
    pub subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<CellId>,
    /// Why it would run nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It is one of the wishes, or belongs to one.
    pub wished: bool,
    /// It waits on the board already.
    pub waits: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<CellId>,
}
