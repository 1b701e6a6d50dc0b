//! A plan as it is asked for and told.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// In which order they would be applied, each as `lrp/GUID` or `task/GUID`. What is not named here
    /// comes after it: first LRPs, then tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
}

/// One of the things that would be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    Lrp { lrp: &'a DesiredLrp, keeps: bool },
    Task(&'a TaskDefinition),
}

impl Asked<'_> {
    /// The name whose hash says which shard it is for.
    pub fn partition(&self) -> &str {
        match self {
            Self::Lrp { lrp, .. } => lrp.process_guid.as_str(),
            Self::Task(task) => task.task_guid.as_str(),
        }
    }

    fn subject(&self) -> String {
        match self {
            Self::Lrp { lrp, .. } => format!("lrp/{}", lrp.process_guid),
            Self::Task(task) => format!("task/{}", task.task_guid),
        }
    }
}

impl Wishes {
    /// All of them, one after the other as they would be applied.
    pub fn in_order(&self) -> Vec<Asked<'_>> {
        let keeps = |guid: &ProcessGuid| self.keep_instances.contains(guid);
        let lrps = self.lrps.iter().map(|lrp| Asked::Lrp { lrp, keeps: keeps(&lrp.process_guid) });
        let mut all: Vec<Asked<'_>> = lrps.chain(self.tasks.iter().map(Asked::Task)).collect();
        let place: BTreeMap<&str, usize> = self.order.iter().map(String::as_str).zip(0..).collect();
        all.sort_by_cached_key(|asked| place.get(&*asked.subject()).copied().unwrap_or(usize::MAX));
        all
    }
}

/// What applying it would come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Nothing is refused, and there is room for all of it. If something is refused, nothing is done.
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
    /// Because another one is refused: all are applied, or none.
    NotDone,
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
            Self::NotDone => "not done",
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
    /// Why it would run nowhere. Many have the same reason, and share its text.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "shared")]
    pub reason: Option<Arc<str>>,
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

/// A text that several have, written for each.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde asks so")]
    pub(super) fn serialize<S: Serializer>(
        text: &Option<Arc<str>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Arc<str>>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Into::into))
    }
}
