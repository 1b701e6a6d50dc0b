//! Tasks that do the work of runs: the scheduler's, and nobody else's.

use super::Step;
use super::tasks::shown;
use crate::board::record::RecordKey;
use crate::board::request::{Refusal, Reply, RunTask};
use crate::board::task::{TaskDefinition, TaskState};
use crate::run::is_of_run;

impl Step<'_, '_> {
    pub(super) fn run_task(&mut self, request: &RunTask) -> Result<Reply, Refusal> {
        match request {
            RunTask::Create { definition, instance_guid } => {
                let problems = unfit(definition);
                if !problems.is_empty() {
                    return Err(Refusal::Invalid { problems });
                }
                self.take_task(definition, instance_guid)
            }
            RunTask::Cancel { task_guid } => {
                let task = self.task(task_guid)?;
                match task.state {
                    TaskState::Pending | TaskState::Running => self.cancel_it(task),
                    TaskState::Completed | TaskState::Resolving => Ok(shown(task)),
                }
            }
            RunTask::Delete { task_guid } => {
                let Some(task) = self.draft.task(task_guid) else { return Ok(Reply::Done) };
                match task.state {
                    TaskState::Completed | TaskState::Resolving => {
                        self.draft.delete(RecordKey::Task(task_guid.clone()));
                        Ok(Reply::Done)
                    }
                    TaskState::Pending | TaskState::Running => {
                        let state = task.state.name();
                        let text = format!(
                            "task `{task_guid}` of a run is {state}: cancel it before it is deleted"
                        );
                        Err(Refusal::State { text })
                    }
                }
            }
        }
    }
}

/// What keeps a definition from being the work of a run.
fn unfit(definition: &TaskDefinition) -> Vec<String> {
    let guid = &definition.task_guid;
    let mut problems = Vec::new();
    if !is_of_run(guid) {
        problems.push(format!("task_guid: `{guid}` is not one of a run"));
    }
    if !definition.completion_callback_url.is_empty() {
        // Whoever is called back has it deleted, and the run would never hear of its end.
        problems.push(
            "completion_callback_url: the task of a run has none; use an action of its job"
                .to_owned(),
        );
    }
    problems
}
