//! From a command to the task that runs it.

use std::ffi::OsStr;

use kapell_backend::executor::{Error, Job};
use kapell_core::board::{Action, Run, TaskDefinition, TaskGuid, Variable, validate};
use kapell_core::workflow::OnCell;

/// The longest argument that a program can be given.
const LONGEST_ARGUMENT: usize = (128 << 10) - 1;
/// What fits on the board with all that it adds.
const LARGEST: usize = 190 << 10;

/// The task that runs a command. A shell that would only be asked if the program cannot be
/// executed is asked at once: nobody here can try.
pub(super) fn of(
    job: &Job,
    guid: TaskGuid,
    wanted: &OnCell,
    annotation: String,
) -> Result<TaskDefinition, Error> {
    let (program, args) = match &job.otherwise {
        Some((program, args)) => (program, args),
        None => (&job.program, &job.args),
    };
    let path = program.to_string_lossy().into_owned();
    let refused = |reason: String| Error::NotStarted { program: path.clone(), reason };
    let text = |value: &OsStr| {
        let text = value.to_str().map(str::to_owned);
        text.ok_or_else(|| refused(format!("{} is not UTF-8", value.display())))
    };
    if let Some(dir) = job.dir.as_ref().filter(|dir| dir.is_relative()) {
        return Err(refused(format!(
            "`dir: {}` is relative, which is nowhere on a cell: write the whole path as it is there, or leave it out",
            dir.display()
        )));
    }
    if args.iter().any(|arg| arg.len() > LONGEST_ARGUMENT) {
        return Err(Error::TooLarge { program: path });
    }
    let env = job.env.iter().map(|(name, value)| {
        Ok(Variable::plain(text(name.as_os_str())?, text(value.as_os_str())?))
    });
    let run = Run {
        path: path.clone(),
        args: args.iter().map(|arg| text(arg.as_os_str())).collect::<Result<_, _>>()?,
        dir: job.dir.as_ref().map(|dir| text(dir.as_os_str())).transpose()?,
        env: env.collect::<Result<_, Error>>()?,
        user: None,
    };
    let size = run.args.iter().map(String::len).sum::<usize>()
        + run
            .env
            .iter()
            .map(|it| it.name.len() + it.value.as_ref().map_or(0, String::len))
            .sum::<usize>();
    if size > LARGEST {
        return Err(Error::TooLarge { program: path });
    }
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
    if problems.is_empty() { Ok(definition) } else { Err(refused(problems.join("; "))) }
}
