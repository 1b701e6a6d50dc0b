//! From the work of a run to the task that does it, and back.

use kapell_core::board::{Task, TaskDefinition};
use kapell_core::job::{Payload, environment};
use kapell_core::run::{RunId, task_guid};

use crate::scheduler::backend::{Attempt, Work};

const RUN: &str = "KAPELL_RUN_ID";
const ATTEMPT: &str = "KAPELL_ATTEMPT";

pub(super) fn of(work: &Work) -> Result<TaskDefinition, String> {
    let Attempt { run_id, number } = &work.attempt;
    let job = &work.definition;
    let task = match job.payload() {
        Some(Payload::Task(task)) => task,
        Some(Payload::Command(_) | Payload::Workflow(_) | Payload::Kubernetes(_)) => {
            return Err("only a task runs on cells".to_owned());
        }
        None => return Err("the job does not say what to run".to_owned()),
    };
    let mut definition = task.task(task_guid(run_id, *number), job.domain.clone());
    definition.env = environment(job, &work.parameters, run_id, *number, work.scheduled_at);
    Ok(definition)
}

/// Whose work a task is. None if somebody else has taken such a name for it.
pub(super) fn attempt(task: &Task) -> Option<Attempt> {
    let value = |name: &str| {
        let variable = task.definition.env.iter().rev().find(|variable| variable.name == name)?;
        variable.value.as_deref()
    };
    let run_id = RunId::parse(value(RUN)?)?;
    let number = value(ATTEMPT)?.parse().ok()?;
    (task_guid(&run_id, number) == *task.guid()).then_some(Attempt { run_id, number })
}
