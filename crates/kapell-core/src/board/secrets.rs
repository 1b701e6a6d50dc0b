//! Which secrets work refers to, and which cell gets them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::action::{Action, Variable};
use super::actual::{ActualLrp, ActualState, LrpKey};
use super::desired::DesiredLrp;
use super::ids::{CellId, Domain, InstanceGuid, SecretName, TaskGuid};
use super::records::Records;
use super::task::{TaskDefinition, TaskState};

/// A container, by the work that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    Lrp { key: LrpKey, instance_guid: InstanceGuid },
    Task { task_guid: TaskGuid, instance_guid: InstanceGuid },
}

impl Holder {
    /// Where its records lie.
    pub fn partition(&self) -> &str {
        match self {
            Self::Lrp { key, .. } => key.process_guid.as_str(),
            Self::Task { task_guid, .. } => task_guid.as_str(),
        }
    }
}

/// What a container is to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub domain: Domain,
    pub names: BTreeSet<SecretName>,
}

/// The board does not have this container on this cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no secrets: the board does not have container `{container}` on cell `{cell}`")]
pub struct NotPlaced {
    pub container: InstanceGuid,
    pub cell: CellId,
}

/// Decides which secrets a cell gets for a container: those that its recipe refers to, if it is placed there.
pub fn due(records: &Records, cell: &CellId, holder: &Holder) -> Result<Due, NotPlaced> {
    let (found, container) = match holder {
        Holder::Lrp { key, instance_guid } => {
            (of_instance(records, cell, key, instance_guid), instance_guid)
        }
        Holder::Task { task_guid, instance_guid } => {
            let task = records.tasks.get(task_guid).filter(|task| {
                task.state == TaskState::Running
                    && task.cell_id.as_ref() == Some(cell)
                    && task.instance_guid == *instance_guid
            });
            let due = task.map(|task| Due {
                domain: task.definition.domain.clone(),
                names: of_task(&task.definition),
            });
            (due, instance_guid)
        }
    };
    found.ok_or_else(|| NotPlaced { container: container.clone(), cell: cell.clone() })
}

fn of_instance(records: &Records, cell: &CellId, key: &LrpKey, guid: &InstanceGuid) -> Option<Due> {
    let is_there = |lrp: &&ActualLrp| {
        let is_placed = match lrp.state {
            ActualState::Claimed | ActualState::Running => true,
            ActualState::Unclaimed | ActualState::Crashed => false,
        };
        is_placed && lrp.cell_id.as_ref() == Some(cell) && lrp.instance_guid.as_ref() == Some(guid)
    };
    let both = [records.instances.get(key), records.evacuating.get(key)];
    let lrp = both.into_iter().flatten().find(is_there)?;
    // Another one of its name has another recipe.
    let desired = records.desired.get(&key.process_guid);
    let desired = desired.filter(|it| it.incarnation == lrp.incarnation && !it.forgotten)?;
    Some(Due { domain: desired.domain.clone(), names: of_lrp(desired) })
}

/// All secrets that a process refers to, in whatever it does.
pub fn of_lrp(lrp: &DesiredLrp) -> BTreeSet<SecretName> {
    let mut names = BTreeSet::new();
    add(&lrp.env, &mut names);
    for action in [lrp.setup.as_ref(), Some(&lrp.action), lrp.monitor.as_ref()] {
        add_actions(action, &mut names);
    }
    names
}

/// All secrets that a task refers to.
pub fn of_task(definition: &TaskDefinition) -> BTreeSet<SecretName> {
    let mut names = BTreeSet::new();
    add(&definition.env, &mut names);
    add_actions(Some(&definition.action), &mut names);
    names
}

/// All secrets that an action refers to.
pub fn of_action(action: &Action) -> BTreeSet<SecretName> {
    let mut names = BTreeSet::new();
    add_actions(Some(action), &mut names);
    names
}

fn add(env: &[Variable], names: &mut BTreeSet<SecretName>) {
    names.extend(env.iter().filter_map(|variable| variable.secret.clone()));
}

fn add_actions(action: Option<&Action>, names: &mut BTreeSet<SecretName>) {
    for run in action.into_iter().flat_map(Action::all).filter_map(Action::as_run) {
        add(&run.env, names);
    }
}
