//! Tasks: run at most once, completed exactly once.

use super::Step;
use super::desired::differing;
use crate::board::actual::InstanceKey;
use crate::board::ids::{CellId, InstanceGuid, ReservationId, TaskGuid};
use crate::board::record::{Record, RecordKey};
use crate::board::request::{Effect, Refusal, Reply};
use crate::board::settings::Settings;
use crate::board::task::{Task, TaskDefinition, TaskState};
use crate::board::{reasons, text, validate};
use crate::job::SchedulerNews;
use crate::planted::Flaw;
use crate::run::is_of_run;
use crate::run::name::TASK_PREFIX;
use crate::seams::Timestamp;

/// What convergence does to a task that waits too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::board) enum Kick {
    Restart,
    GiveUp,
    Resolve,
    Demote,
    Delete,
}

/// Decides whether a task has waited too long for its next step.
pub(in crate::board) fn kick(task: &Task, now: Timestamp, settings: &Settings) -> Option<Kick> {
    let waits = now.since(task.since) >= settings.kick_task;
    let expired =
        task.first_completed_at.is_some_and(|at| now.since(at) >= settings.completed_task);
    match task.state {
        TaskState::Pending if now.since(task.created_at) >= settings.pending_task => {
            Some(Kick::GiveUp)
        }
        TaskState::Pending => waits.then_some(Kick::Restart),
        TaskState::Running => None,
        // The scheduler deletes it when its outcome is stored with its run.
        TaskState::Completed | TaskState::Resolving if is_of_run(task.guid()) => None,
        TaskState::Completed if expired => Some(Kick::Delete),
        TaskState::Completed => (waits && has_callback(task)).then_some(Kick::Resolve),
        // Demoted it would be deleted at once: otherwise a callback that never works keeps it for ever.
        TaskState::Resolving if waits && expired => Some(Kick::Delete),
        TaskState::Resolving => waits.then_some(Kick::Demote),
    }
}

/// How a task ended.
#[derive(Debug, Default)]
pub(super) struct Outcome<'a> {
    pub(super) failed: bool,
    pub(super) reason: &'a str,
    pub(super) result: &'a str,
    pub(super) exit_code: Option<i32>,
}

impl<'a> Outcome<'a> {
    fn failure(reason: &'a str) -> Self {
        Self { failed: true, reason, ..Self::default() }
    }
}

impl Step<'_, '_> {
    pub(super) fn create_task(
        &mut self,
        definition: &TaskDefinition,
        instance_guid: &InstanceGuid,
    ) -> Result<Reply, Refusal> {
        if is_of_run(&definition.task_guid) {
            let text = format!(
                "task_guid: `{TASK_PREFIX}` is what the tasks of runs begin with: take another one"
            );
            return Err(Refusal::Invalid { problems: vec![text] });
        }
        self.take_task(definition, instance_guid)
    }

    pub(super) fn take_task(
        &mut self,
        definition: &TaskDefinition,
        instance_guid: &InstanceGuid,
    ) -> Result<Reply, Refusal> {
        let problems = validate::task(definition);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        let task_guid = &definition.task_guid;
        if let Some(stands) = self.draft.task(task_guid) {
            if stands.definition == *definition {
                return Ok(shown(stands));
            }
            let fields = differing(&stands.definition, definition, &[]);
            let text = format!(
                "task `{task_guid}` is there already and differs in {}: delete it first or take another task_guid",
                fields.join(", "),
            );
            return Err(Refusal::Exists { text, fields });
        }
        let task = Task::pending(definition.clone(), instance_guid.clone(), self.now);
        self.draft.put(Record::Task(Box::new(task.clone())));
        self.effects.push(Effect::StartTask { task_guid: task_guid.clone() });
        Ok(Reply::Task { task: Box::new(task), created: true })
    }

    /// The answer is the permission to start the process, so it is given to one reservation, and to that as often as it asks: a
    /// cell makes no two of the same name, and starts one at most once.
    pub(super) fn start_task(
        &mut self,
        guid: &TaskGuid,
        us: &InstanceKey,
        reservation: Option<&ReservationId>,
    ) -> Result<Reply, Refusal> {
        let mut task = self.task_of(guid, us)?;
        let ours = task.cell_id.as_ref() == Some(&us.cell_id);
        let same = reservation.is_some() && task.reservation.as_ref() == reservation;
        match task.state {
            TaskState::Pending => {}
            TaskState::Running if ours && same => return Ok(shown(task)),
            TaskState::Running | TaskState::Completed | TaskState::Resolving => {
                return Err(refused("be started", &task));
            }
        }
        task.cell_id = Some(us.cell_id.clone());
        task.reservation = reservation.cloned();
        task.placement_error = None;
        task.started_at = Some(self.now);
        Ok(shown(self.step_task(task, TaskState::Running)))
    }

    pub(super) fn complete_task(
        &mut self,
        guid: &TaskGuid,
        us: &InstanceKey,
        outcome: &Outcome<'_>,
    ) -> Result<Reply, Refusal> {
        let mut task = self.task_of(guid, us)?;
        let ours = task.cell_id.as_ref() == Some(&us.cell_id);
        match task.state {
            TaskState::Pending => task.cell_id = Some(us.cell_id.clone()),
            TaskState::Running if ours => {}
            TaskState::Completed | TaskState::Resolving if ours => return Ok(shown(task)),
            TaskState::Running | TaskState::Completed | TaskState::Resolving => {
                return Err(refused("be completed from here", &task));
            }
        }
        Ok(shown(self.complete(task, outcome)))
    }

    pub(super) fn cancel_task(&mut self, guid: &TaskGuid) -> Result<Reply, Refusal> {
        let task = self.task(guid)?;
        not_of_run(guid)?;
        self.cancel_it(task)
    }

    pub(super) fn cancel_it(&mut self, task: Task) -> Result<Reply, Refusal> {
        let guid = task.guid().clone();
        match task.state {
            TaskState::Pending => {}
            TaskState::Running => self.effects.extend(task.cell_id.clone().map(|cell_id| {
                let instance = InstanceKey { instance_guid: task.instance_guid.clone(), cell_id };
                Effect::CancelTask { task_guid: guid, instance }
            })),
            TaskState::Completed | TaskState::Resolving => {
                return Err(refused("be cancelled", &task));
            }
        }
        Ok(shown(self.complete(task, &Outcome::failure(reasons::CANCELLED))))
    }

    /// Whoever gets it to RESOLVING is the only one who may call back or delete.
    pub(super) fn resolve_task(&mut self, guid: &TaskGuid) -> Result<Reply, Refusal> {
        let task = self.task(guid)?;
        not_of_run(guid)?;
        match task.state {
            TaskState::Completed => Ok(shown(self.step_task(task, TaskState::Resolving))),
            TaskState::Pending | TaskState::Running | TaskState::Resolving => {
                Err(not_completed(&task))
            }
        }
    }

    pub(super) fn delete_task(&mut self, guid: &TaskGuid) -> Result<Reply, Refusal> {
        let task = self.task(guid)?;
        match task.state {
            TaskState::Resolving => {
                self.draft.delete(RecordKey::Task(guid.clone()));
                Ok(Reply::Done)
            }
            TaskState::Pending | TaskState::Running | TaskState::Completed => {
                Err(not_completed(&task))
            }
        }
    }

    pub(super) fn fail_task_placement(&mut self, guid: &TaskGuid, reason: &str, last: bool) {
        let pending = |task: &Task| task.state == TaskState::Pending;
        let Some(mut task) = self.draft.task(guid).filter(pending) else { return };
        if last {
            self.complete(task, &Outcome::failure(reason));
            return;
        }
        let reason = Some(text::reason(reason));
        if task.placement_error != reason {
            task.placement_error = reason;
            self.step_task(task, TaskState::Pending);
        }
    }

    pub(super) fn fail_lost_task(&mut self, guid: &TaskGuid, cell_id: &CellId) {
        let lost = |task: &Task| {
            task.state == TaskState::Running && task.cell_id.as_ref() == Some(cell_id)
        };
        let Some(task) = self.draft.task(guid).filter(lost) else { return };
        if self.settings.planted.has(Flaw::LostTaskStartsAgain) {
            let again =
                Task { cell_id: None, reservation: None, state: TaskState::Pending, ..task };
            self.step_task(again, TaskState::Pending);
            self.effects.push(Effect::StartTask { task_guid: guid.clone() });
            return;
        }
        self.complete(task, &Outcome::failure(&reasons::cell_lost(cell_id)));
    }

    pub(super) fn kick_task(&mut self, guid: &TaskGuid) {
        let Some(task) = self.draft.task(guid) else { return };
        match kick(&task, self.now, self.settings) {
            None => {}
            Some(Kick::Restart) => {
                self.effects.push(Effect::StartTask { task_guid: guid.clone() });
            }
            Some(Kick::GiveUp) => {
                let reason = reasons::not_started(task.placement_error.as_deref());
                self.complete(task, &Outcome::failure(&reason));
            }
            Some(Kick::Resolve) => self.call_back(&task),
            Some(Kick::Demote) => {
                let task = self.step_task(task, TaskState::Completed);
                self.call_back(&task);
            }
            Some(Kick::Delete) => {
                self.draft.delete(RecordKey::Task(guid.clone()));
                if has_callback(&task) {
                    self.effects.push(Effect::Untold { task: Box::new(task) });
                }
            }
        }
    }

    pub(super) fn task(&self, guid: &TaskGuid) -> Result<Task, Refusal> {
        self.draft.task(guid).ok_or_else(|| no_task(guid))
    }

    /// The task that a container is of; not one that only bears the same name.
    fn task_of(&self, guid: &TaskGuid, us: &InstanceKey) -> Result<Task, Refusal> {
        let any = self.settings.planted.has(Flaw::NamesakeMistaken);
        let same = |task: &Task| any || task.instance_guid == us.instance_guid;
        self.draft.task(guid).filter(same).ok_or_else(|| no_task(guid))
    }

    fn complete(&mut self, mut task: Task, outcome: &Outcome<'_>) -> Task {
        task.failed = outcome.failed;
        task.failure_reason = text::reason(outcome.reason);
        task.result = text::result(outcome.result);
        task.exit_code = outcome.exit_code;
        task.placement_error = None;
        task.first_completed_at = task.first_completed_at.or(Some(self.now));
        let task = self.step_task(task, TaskState::Completed);
        self.call_back(&task);
        task
    }

    /// It stays COMPLETED until its turn to be called has come.
    fn call_back(&mut self, task: &Task) {
        if has_callback(task) {
            self.effects.push(Effect::CallBack { task: Box::new(task.clone()) });
        }
    }

    fn step_task(&mut self, mut task: Task, to: TaskState) -> Task {
        if task.state != to {
            debug_assert!(task.state.next().contains(&to), "{:?} to {to:?}", task.state);
            task.since = self.now;
            if is_of_run(task.guid()) {
                self.effects
                    .push(Effect::Scheduler(SchedulerNews::Task { guid: task.guid().clone() }));
            }
        }
        task.state = to;
        task.version += 1;
        self.draft.put(Record::Task(Box::new(task.clone())));
        task
    }
}

fn has_callback(task: &Task) -> bool {
    !task.definition.completion_callback_url.is_empty()
}

/// What does the work of a run goes and ends with its run.
fn not_of_run(guid: &TaskGuid) -> Result<(), Refusal> {
    if !is_of_run(guid) {
        return Ok(());
    }
    let text =
        format!("task `{guid}` does the work of a run: cancel the run with `kapell run cancel`");
    Err(Refusal::State { text })
}

pub(super) fn shown(task: Task) -> Reply {
    Reply::Task { task: Box::new(task), created: false }
}

fn no_task(guid: &TaskGuid) -> Refusal {
    Refusal::NotFound { what: "task".to_owned(), name: guid.to_string() }
}

fn place(task: &Task) -> String {
    task.cell_id.as_ref().map_or_else(String::new, |cell| format!(" on cell `{cell}`"))
}

fn refused(wish: &str, task: &Task) -> Refusal {
    let (guid, state) = (task.guid(), task.state.name());
    let text = format!("task `{guid}` cannot {wish}: it is already {state}{}", place(task));
    Refusal::State { text }
}

fn not_completed(task: &Task) -> Refusal {
    let (guid, state) = (task.guid(), task.state.name());
    let text = format!("only a COMPLETED task can be deleted: `{guid}` is {state}{}", place(task));
    Refusal::State { text }
}
