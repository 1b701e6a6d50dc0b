//! `kapell task`, but for `run`

use kapell_api::client::{Client, Error};
use kapell_core::board::{Task, TaskState};

use super::args::TaskCommand;
use super::show::{self, Text, View, to_value};
use super::table::{Cell, Column, Table, column};
use super::text::{age, now, or_dash, task_state};
use super::{task_run, text};
use crate::say;

const LIST: &[Column] = &[
    column("TASK", 9, 14),
    column("STATE", 8, 9),
    column("DOMAIN", 2, 6),
    column("CELL", 4, 8),
    column("AGE", 5, 4),
    column("RESULT", 7, 12),
];
const FIELDS: &[Column] = &[column("FIELD", 9, 8), column("VALUE", 8, 12)];

pub(crate) async fn run(command: TaskCommand, client: &Client) -> anyhow::Result<u8> {
    match command {
        TaskCommand::Run(args) => task_run::run(&args, client).await,
        TaskCommand::List(list) => show::list(client, list, all).await,
        TaskCommand::Show { task_guid, list } => {
            let guid = task_guid.as_str();
            show::list(client, list, async |client: &Client| one(client, guid).await).await
        }
        TaskCommand::Cancel { task_guid } => {
            for guid in task_guid {
                client.cancel_task(&guid).await?;
                say(&format!("{guid} cancelled\n"));
            }
            Ok(0)
        }
        TaskCommand::Delete { task_guid } => {
            for guid in task_guid {
                client.delete_task(&guid).await?;
                say(&format!("{guid} deleted\n"));
            }
            Ok(0)
        }
    }
}

async fn all(client: &Client) -> Result<View, Error> {
    let listed = client.tasks().await?;
    let now = now();
    let row = |task: &Task| -> Vec<Cell> {
        vec![
            task.guid().as_str().into(),
            task_state(task.state, task.failed),
            task.definition.domain.as_str().into(),
            or_dash(task.cell_id.as_ref()).into(),
            age(task.created_at, now).into(),
            outcome(task).into(),
        ]
    };
    let table =
        Table { columns: LIST, rows: listed.items.iter().map(row).collect(), nothing: "no tasks" };
    let value = to_value(&listed.items);
    Ok(View { text: Text::Table(table), value, event_id: listed.event_id })
}

/// What came of it, or why nothing yet.
pub(crate) fn outcome(task: &Task) -> String {
    match task.state {
        TaskState::Pending => task.placement_error.clone().unwrap_or_default(),
        TaskState::Running => String::new(),
        TaskState::Completed | TaskState::Resolving if task.failed => {
            format!("failed: {}", task.failure_reason)
        }
        TaskState::Completed | TaskState::Resolving if task.result.is_empty() => {
            "succeeded".to_owned()
        }
        TaskState::Completed | TaskState::Resolving => task.result.clone(),
    }
}

async fn one(client: &Client, guid: &str) -> Result<View, Error> {
    let task = client.task(guid).await?;
    let now = now();
    let mut rows: Vec<Vec<Cell>> = vec![
        vec!["task".into(), task.guid().as_str().into()],
        vec!["state".into(), task_state(task.state, task.failed)],
        vec!["domain".into(), task.definition.domain.as_str().into()],
        vec!["action".into(), to_value(&task.definition.action).to_string().into()],
        vec!["created".into(), format!("{} ago", age(task.created_at, now)).into()],
        vec!["since".into(), format!("{} ago", age(task.since, now)).into()],
    ];
    let memory = task.definition.memory_mb;
    let further = [
        ("cell", task.cell_id.as_ref().map(ToString::to_string)),
        ("memory", (memory > 0).then(|| text::megabytes(memory))),
        ("exit code", task.exit_code.map(|code| code.to_string())),
        ("failure", task.failed.then(|| task.failure_reason.clone())),
        ("waits", task.placement_error.clone()),
        ("result", Some(task.result.clone()).filter(|result| !result.is_empty())),
    ];
    for (name, text) in further {
        rows.extend(text.map(|text| vec![name.into(), text.into()]));
    }
    let table = Table { columns: FIELDS, rows, nothing: "" };
    Ok(View { text: Text::Table(table), value: to_value(&task), event_id: None })
}
