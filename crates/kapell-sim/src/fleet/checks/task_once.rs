use std::collections::{BTreeMap, BTreeSet};

use kapell_core::board::{CellId, InstanceGuid, Record, Task, TaskGuid, TaskState};

use super::Check;
use crate::fleet::fact::{Fact, Process, Unit};
use crate::fleet::ledger::Change;
use crate::fleet::view::View;

/// A task starts at most once, ever, and only where the board has said so.
///
/// A task is its guid with the instance guid that it was created with: a new one of the same name is
/// another one. Before its process begins, a commit has said that it is this cell's. A task that a
/// commit shows as completed without failure has run, and runs no more.
#[derive(Debug, Default)]
pub(super) struct TaskOnce {
    /// Whose commits have said that a task is.
    allowed: BTreeMap<Creation, BTreeSet<CellId>>,
    begun: BTreeMap<Creation, CellId>,
    over: BTreeSet<Creation>,
}

type Creation = (TaskGuid, InstanceGuid);

fn creation(task: &Task) -> Creation {
    (task.guid().clone(), task.instance_guid.clone())
}

fn task_of(process: &Process) -> Option<Creation> {
    match &process.unit {
        Unit::Lrp(_) => None,
        Unit::Task(guid) => Some((guid.clone(), process.container.clone())),
    }
}

impl TaskOnce {
    fn began(&mut self, process: &Process) -> Result<(), String> {
        let Some(creation) = task_of(process) else { return Ok(()) };
        let (guid, container) = &creation;
        let cell = &process.cell;
        if !self.allowed.get(&creation).is_some_and(|cells| cells.contains(cell)) {
            return Err(format!("task {guid} ({container}) began on {cell} unasked"));
        }
        match self.begun.insert(creation.clone(), cell.clone()) {
            None => Ok(()),
            Some(first) => Err(format!("task {guid} ({container}) began on {first} and on {cell}")),
        }
    }

    fn committed(&mut self, change: &Change) -> Result<(), String> {
        let Some(Record::Task(task)) = &change.after else { return Ok(()) };
        let creation = creation(task);
        // What is started and cancelled in one commit is never seen running.
        self.allowed.entry(creation.clone()).or_default().extend(task.cell_id.clone());
        let complete = match task.state {
            TaskState::Pending | TaskState::Running => false,
            TaskState::Completed | TaskState::Resolving => true,
        };
        if complete && !task.failed && !self.over.contains(&creation) {
            let (guid, container) = creation;
            return Err(format!("task {guid} ({container}) succeeded and did not run"));
        }
        Ok(())
    }
}

impl Check for TaskOnce {
    fn name(&self) -> &'static str {
        "task once"
    }

    fn saw(&mut self, fact: &Fact, _view: &View<'_>) -> Result<(), String> {
        if let Fact::Began(process) = fact {
            return self.began(process);
        }
        if let Fact::Over(process) = fact {
            self.over.extend(task_of(process));
        }
        if let Fact::Committed { changes, .. } = fact {
            for change in changes {
                self.committed(change)?;
            }
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
