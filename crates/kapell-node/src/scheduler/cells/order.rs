//! From the work of a run to the task that does it, and back.

use kapell_core::board::{Task, TaskDefinition, Variable};
use kapell_core::job::Payload;
use kapell_core::run::{RunId, task_guid};

use crate::scheduler::backend::{Attempt, Work};

const RUN: &str = "KAPELL_RUN_ID";
const ATTEMPT: &str = "KAPELL_ATTEMPT";

pub(super) fn of(work: &Work) -> Result<TaskDefinition, String> {
    let Attempt { run_id, number } = &work.attempt;
    let mut definition = match work.definition.payload() {
        Some(Payload::Task(task)) => task.0.clone(),
        Some(Payload::Command(_) | Payload::Workflow(_)) => {
            return Err("only a task runs on cells".to_owned());
        }
        None => return Err("the job does not say what to run".to_owned()),
    };
    if !definition.completion_callback_url.is_empty() {
        return Err("task.completion_callback_url: a task of a job has none, for the board forgets a task that it has \
                    called back for: leave it out and use a post-run hook"
            .to_owned());
    }
    definition.task_guid = task_guid(run_id, *number);
    definition.domain = work.definition.domain.clone();
    let scheduled = jiff::Timestamp::from_millisecond(work.scheduled_at.0).unwrap_or_default();
    let mut set = |name: &str, value: String| {
        definition.env.retain(|variable| variable.name != name);
        definition.env.push(Variable::plain(name, value));
    };
    for (name, value) in &work.parameters {
        set(name, value.clone());
    }
    set("KAPELL_JOB_ID", run_id.job().to_owned());
    set(RUN, run_id.as_str().to_owned());
    set(ATTEMPT, number.to_string());
    set("KAPELL_SCHEDULED_AT", scheduled.to_string());
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
