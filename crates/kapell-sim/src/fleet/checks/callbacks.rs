use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{InstanceGuid, Record, Request, Task, TaskGuid, TaskState};

use super::{Check, clocks_are_true};
use crate::fleet::fact::Fact;
use crate::fleet::ledger::Change;
use crate::fleet::plan::Fault;
use crate::fleet::view::View;

/// How often one caller tries.
const TRIES: usize = 3;
/// How much sooner than by the true clock a host may find a task old.
const SLACK: Duration = Duration::from_secs(2);

/// A completion callback has at most one caller at a time, and is called at least once.
///
/// Each step to RESOLVING that a commit makes allows one host to call, at most [`TRIES`] times; a call names
/// the version of the task that allows it. When it begins to call, the task still stands in that version
/// (where hosts are not paused and clocks do not jump: else it may have been given to another caller by then;
/// and unless a client has deleted it). A complete task with a callback that was never called goes only when it
/// is too old, or when a client has deleted it.
#[derive(Debug, Default)]
pub(super) struct Callbacks {
    /// Who has used each permission, and how often.
    allowed: BTreeMap<(InstanceGuid, u64), Option<(usize, usize)>>,
    called: BTreeSet<InstanceGuid>,
    completed: BTreeMap<InstanceGuid, Duration>,
    deleted: BTreeSet<TaskGuid>,
}

impl Callbacks {
    fn calling(
        &mut self,
        (host, task, container, version): (usize, &TaskGuid, &InstanceGuid, u64),
        view: &View<'_>,
    ) -> Result<(), String> {
        let what = format!("the callback of {task} ({container}) version {version}");
        let Some(used) = self.allowed.get_mut(&(container.clone(), version)) else {
            if self.deleted.contains(task) {
                // It was resolved and deleted in one commit.
                return Ok(());
            }
            return Err(format!("host {host} calls {what}, which no commit allows"));
        };
        let first = used.is_none();
        let (by, times) = used.get_or_insert((host, 0));
        *times += 1;
        if *by != host {
            return Err(format!("hosts {by} and {host} both call {what}"));
        }
        if *times > TRIES {
            return Err(format!("host {host} calls {what} {times} times"));
        }
        let stands = view.records.tasks.get(task).is_some_and(|it| {
            it.instance_guid == *container
                && it.version == version
                && it.state == TaskState::Resolving
        });
        let sure = clocks_are_true(view.plan) && !view.plan.faults.contains(&Fault::Pause);
        if first && sure && !stands && !self.deleted.contains(task) {
            return Err(format!("host {host} calls {what}, which stands no more"));
        }
        Ok(())
    }

    fn committed(&mut self, change: &Change, view: &View<'_>) -> Result<(), String> {
        if let Some(Record::Task(task)) = &change.after {
            if task.state == TaskState::Resolving {
                self.allowed.entry((task.instance_guid.clone(), task.version)).or_default();
            }
            if task.first_completed_at.is_some() {
                self.completed.entry(task.instance_guid.clone()).or_insert(view.now);
            }
        }
        let Some(Record::Task(before)) = &change.before else { return Ok(()) };
        let is_it = |after: &Task| after.instance_guid == before.instance_guid;
        let same = |after: &Record| after.as_task().is_some_and(is_it);
        if change.after.as_ref().is_some_and(same) || self.may_go(before, view) {
            return Ok(());
        }
        let (guid, container) = (before.guid(), &before.instance_guid);
        Err(format!("task {guid} ({container}) goes, and its callback was never called"))
    }

    fn may_go(&self, task: &Task, view: &View<'_>) -> bool {
        let since = self.completed.get(&task.instance_guid);
        task.definition.completion_callback_url.is_empty()
            || self.called.contains(&task.instance_guid)
            || self.deleted.contains(task.guid())
            || since.is_some_and(|at| view.now + SLACK >= *at + view.settings.completed_task)
            || !clocks_are_true(view.plan)
    }
}

impl Check for Callbacks {
    fn name(&self) -> &'static str {
        "callbacks"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        if let Fact::Calling { host, task, container, version } = fact {
            return self.calling((*host, task, container, *version), view);
        }
        if let Fact::Called { container, .. } = fact {
            self.called.insert(container.clone());
        }
        if let Fact::Asked { request: Request::DeleteTask { task_guid } } = fact {
            self.deleted.insert(task_guid.clone());
        }
        if let Fact::Committed { changes, .. } = fact {
            for change in changes {
                self.committed(change, view)?;
            }
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
