//! From a command to the task that runs it.

use kapell_backend::executor::{Error, Job};
use kapell_core::board::{Action, Run, TaskDefinition, TaskGuid, Variable, validate};
use kapell_core::workflow::OnCell;

use crate::flow::plainly::{There, plainly};

/// Of arguments and environment it takes what fits on the board with all that it adds.
const ON_A_CELL: There = There { place: "on a cell", largest: 190 << 10 };

/// The task that runs a command.
pub(super) fn of(
    job: &Job,
    guid: TaskGuid,
    wanted: &OnCell,
    annotation: String,
) -> Result<TaskDefinition, Error> {
    let plain = plainly(job, ON_A_CELL)?;
    let mut words = plain.words.into_iter();
    let path = words.next().unwrap_or_default();
    let run = Run {
        path: path.clone(),
        args: words.collect(),
        dir: plain.dir,
        env: plain.env.into_iter().map(|(name, value)| Variable::plain(name, value)).collect(),
        user: None,
    };
    let definition = TaskDefinition {
        task_guid: guid,
        domain: wanted.domain.clone(),
        rootfs: wanted.rootfs.clone(),
        memory_mb: wanted.memory_mb,
        disk_mb: wanted.disk_mb,
        max_pids: wanted.max_pids,
        cpu_millis: wanted.cpu_millis,
        log_rate: 0,
        placement_tags: wanted.placement_tags.clone(),
        env: Vec::new(),
        action: Action::Run(run),
        result_file: String::new(),
        completion_callback_url: String::new(),
        annotation,
    };
    let problems = validate::task(&definition);
    if problems.is_empty() {
        return Ok(definition);
    }
    Err(Error::NotStarted { program: path, reason: problems.join("; ") })
}
