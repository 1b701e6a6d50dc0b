//! `kapell task run`

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use kapell_api::client::{Client, Error};
use kapell_api::v1::EventView;
use kapell_core::board::{Action, Event, Run, Task, TaskDefinition, TaskState, Variable};
use kapell_core::log::Frame;
use kapell_core::seams::Ids as _;
use kapell_node::system::SystemIds;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::FAILED;
use super::args::TaskRun;
use super::follower::Follower;
use super::logs::{Of, Trail};
use super::sink::{Dress, Sink};
use crate::logger::style::clean;
use crate::{print, say};

/// Between two looks at the task, should an event be missed.
const LOOK: Duration = Duration::from_secs(2);
/// So many looks after the end of a task its log is taken to be at its end too.
const LOOKS_AFTER_END: u32 = 5;
/// How long we wait to hear that it is cancelled.
const CANCEL: Duration = Duration::from_secs(10);
const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

pub(crate) async fn run(args: &TaskRun, client: &Client) -> anyhow::Result<u8> {
    let definition = define(args)?;
    let guid = definition.task_guid.as_str();
    if !args.wait {
        client.create_task(&definition).await?;
        print(&format!("{guid}\n"));
        return Ok(0);
    }
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    // Before the task is there, so that nothing of its life is missed.
    let follower = Follower::begin(client).await?;
    let task = client.create_task(&definition).await?;
    say(&format!("task {guid}\n"));
    let task = tokio::select! {
        task = attend(client, follower, task) => task?,
        _ = interrupt.recv() => return Ok(cancel(client, guid, INTERRUPTED).await),
        _ = terminate.recv() => return Ok(cancel(client, guid, TERMINATED).await),
    };
    if args.rm
        && let Err(error) = client.delete_task(guid).await
        && !error.is_not_found()
    {
        say(&format!("cannot delete {guid}: {error}\n"));
    }
    Ok(conclude(&task))
}

fn define(args: &TaskRun) -> anyhow::Result<TaskDefinition> {
    let [path, arguments @ ..] = args.command.as_slice() else { bail!("no program is named") };
    let env = args.env.iter().map(|(name, value)| Variable::plain(name, value));
    let guid = args.name.clone().unwrap_or_else(|| draw_name(path, SystemIds.draw()));
    Ok(TaskDefinition {
        task_guid: guid.into(),
        domain: args.domain.as_str().into(),
        rootfs: None,
        memory_mb: args.memory,
        disk_mb: args.disk,
        max_pids: 0,
        cpu_millis: 0,
        log_rate: 0,
        placement_tags: Vec::new(),
        env: env.collect(),
        action: Action::Run(Run { path: path.clone(), args: arguments.to_vec(), ..Run::default() }),
        result_file: args.result_file.clone(),
        completion_callback_url: String::new(),
        annotation: String::new(),
    })
}

/// A guid that tells people what runs, and that nobody else has.
pub(crate) fn draw_name(path: &str, drawn: u64) -> String {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .take(32)
        .collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "task" } else { name };
    format!("{name}-{:012x}", drawn & 0xffff_ffff_ffff)
}

/// Writes what the task writes, until it is complete.
async fn attend(client: &Client, mut follower: Follower, mut task: Task) -> anyhow::Result<Task> {
    let guid = task.guid().to_string();
    let mut sink = Sink::new(Dress::default(), true);
    let mut log = Log::NotYet;
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks.reset();
    let mut quiet = 0;
    loop {
        if task.state != TaskState::Pending && matches!(log, Log::NotYet) {
            log = Log::Read(Box::new(Trail::new(client, Of::Task(guid.clone()), true, None)));
        }
        let is_complete = matches!(task.state, TaskState::Completed | TaskState::Resolving);
        if is_complete && (matches!(log, Log::Ended) || quiet >= LOOKS_AFTER_END) {
            return Ok(task);
        }
        let seen = tokio::select! {
            frame = log.next() => {
                quiet = 0;
                match frame {
                    Ok(Some(frame)) if sink.take(&frame).is_ok() => {}
                    Ok(_) => log = Log::Ended,
                    Err(error) => {
                        // One that was never placed has none.
                        if !error.is_not_found() {
                            say(&format!("the log of {guid} cannot be read: {error}\n"));
                        }
                        log = Log::Ended;
                    }
                }
                continue;
            }
            event = follower.next() => about(&event?, &guid),
            _ = looks.tick() => Seen::Unknown,
        };
        task = match seen {
            Seen::Nothing => continue,
            Seen::Changed(task) => *task,
            Seen::Gone => bail!("task {guid} was deleted before it was seen to be complete"),
            Seen::Unknown => {
                quiet += u32::from(is_complete);
                match client.task(&guid).await {
                    Ok(task) => task,
                    Err(error) if error.passes() => continue,
                    Err(_) if is_complete => return Ok(task),
                    Err(error) => return Err(error.into()),
                }
            }
        };
    }
}

enum Log {
    NotYet,
    Read(Box<Trail>),
    Ended,
}

impl Log {
    async fn next(&mut self) -> Result<Option<Frame>, Error> {
        match self {
            Self::Read(trail) => trail.next().await,
            Self::NotYet | Self::Ended => std::future::pending().await,
        }
    }
}

/// What an event says about a task.
enum Seen {
    Nothing,
    Changed(Box<Task>),
    Gone,
    /// Events were lost: look.
    Unknown,
}

fn about(event: &EventView, guid: &str) -> Seen {
    match &event.event {
        Some(Event::Task(change)) => match (&change.before, &change.after) {
            (_, Some(after)) if after.guid().as_str() == guid => Seen::Changed(after.clone()),
            (Some(before), None) if before.guid().as_str() == guid => match before.state {
                // Deleted as soon as it was complete: that is how it ended.
                TaskState::Completed | TaskState::Resolving => Seen::Changed(before.clone()),
                TaskState::Pending | TaskState::Running => Seen::Gone,
            },
            (_, Some(_) | None) => Seen::Nothing,
        },
        Some(
            Event::DesiredLrp(_)
            | Event::ActualLrp(_)
            | Event::ActualLrpCrashed(_)
            | Event::Domain(_)
            | Event::Job(_)
            | Event::Run(_)
            | Event::Cell { .. },
        ) => Seen::Nothing,
        None => Seen::Unknown,
    }
}

async fn cancel(client: &Client, guid: &str, code: u8) -> u8 {
    match timeout(CANCEL, client.cancel_task(guid)).await {
        Ok(Ok(())) => say(&format!("task {guid} cancelled\n")),
        Ok(Err(error)) => say(&format!("cannot cancel task {guid}: {error}\n")),
        Err(_) => say(&format!("cannot cancel task {guid}: no answer within {CANCEL:?}\n")),
    }
    code
}

/// The exit code of a task is ours too.
pub(crate) fn conclude(task: &Task) -> u8 {
    if !task.failed {
        return 0;
    }
    match task.exit_code.and_then(|code| u8::try_from(code).ok()) {
        Some(code @ 1..) => code,
        Some(0) | None => {
            say(&format!("task {} failed: {}\n", task.guid(), clean(&task.failure_reason)));
            match unstartable(task) {
                Some(code) => code,
                None => FAILED,
            }
        }
    }
}

/// What a shell would say of a program that could not be started. Only the reason tells, so it must be, word for
/// word, what a cell says of the very program that was asked for.
fn unstartable(task: &Task) -> Option<u8> {
    let Action::Run(Run { path, .. }) = &task.definition.action else { return None };
    let said = task.failure_reason.strip_prefix(&format!("`{path}` "))?;
    match said {
        "is not there" | "was not found in PATH" => Some(NOT_FOUND),
        "may not be executed"
        | "was found in PATH but may not be executed"
        | "is neither a program for this machine nor a script with `#!`" => Some(NOT_EXECUTABLE),
        _ => None,
    }
}
