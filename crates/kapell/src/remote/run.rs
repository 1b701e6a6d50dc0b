//! `kapell run`

use kapell_api::client::{Client, Error, RunFilter};
use kapell_api::v1::RunView;
use kapell_core::job::when;
use kapell_core::seams::Timestamp;

use super::job_args::{RunCommand, RunList, RunLogs};
use super::run_text::{duration, moment, noted, relative, run_state, trigger};
use super::run_wait::pour;
use super::show::{self, Text, View, to_value};
use super::sink::{Dress, Sink};
use super::table::{Cell, Column, Table, column};
use super::text::{long, now};
use crate::{print, say};

const LIST: &[Column] = &[
    column("RUN", 9, 16),
    column("STATE", 8, 9),
    column("SCHEDULED", 4, 20),
    column("AGE", 6, 6),
    column("TOOK", 5, 4),
    column("TRY", 3, 3),
    column("BY", 2, 8),
    column("WHY", 7, 12),
];
const TIMELINE: &[Column] =
    &[column("AT", 6, 12), column("TRY", 3, 3), column("WHAT", 9, 12), column("WHY", 8, 16)];

pub(crate) async fn run(command: RunCommand, client: &Client) -> anyhow::Result<u8> {
    match command {
        RunCommand::List(args) => {
            show::list(client, args.list, async |client: &Client| all(client, &args).await).await
        }
        RunCommand::Show { run_id, list } => {
            let id = run_id.as_str();
            show::list(client, list, async |client: &Client| one(client, id).await).await
        }
        RunCommand::Logs(args) => logs(&args, client).await,
        RunCommand::Cancel { run_id, now } => {
            for id in run_id {
                let run = client.cancel_run(&id, now).await?.run;
                let what = if run.state.is_final() { "had ended already" } else { "is cancelled" };
                say(&format!("{id} {what}\n"));
            }
            Ok(0)
        }
        RunCommand::Retry { run_id } => {
            let run = client.retry_run(&run_id).await?.run;
            print(&format!("{}\n", run.run_id));
            Ok(0)
        }
    }
}

async fn logs(args: &RunLogs, client: &Client) -> anyhow::Result<u8> {
    let dress = Dress { prefix: String::new(), timestamps: args.timestamps };
    let mut sink = Sink::new(dress, false);
    pour(client, &args.run_id, args.attempt, args.follow, args.tail, &mut sink).await?;
    Ok(0)
}

async fn all(client: &Client, args: &RunList) -> Result<View, Error> {
    let filter = RunFilter {
        job: args.job_id.as_deref(),
        state: args.state.as_deref(),
        active: args.active.then_some(true),
        domain: args.domain.as_deref(),
        limit: Some(args.limit),
        before: None,
    };
    let listed = client.runs(filter).await?;
    let table = Table { columns: LIST, rows: rows(&listed.items), nothing: "no runs" };
    Ok(View { text: Text::Table(table), value: to_value(&listed.items), event_id: listed.event_id })
}

pub(crate) fn rows(runs: &[RunView]) -> Vec<Vec<Cell>> {
    let now = now();
    runs.iter().map(|view| row(view, now)).collect()
}

fn row(view: &RunView, now: Timestamp) -> Vec<Cell> {
    let run = &view.run;
    vec![
        run.run_id.as_str().into(),
        run_state(run.state, run.skipped),
        when::show(run.scheduled_at, &view.timezone).into(),
        relative(run.due_at, now).into(),
        duration(run, now).into(),
        run.attempt.to_string().into(),
        trigger(&run.trigger).into(),
        run.reason.as_str().into(),
    ]
}

pub(crate) const COLUMNS: &[Column] = LIST;

async fn one(client: &Client, id: &str) -> Result<View, Error> {
    let view = client.run(id).await?;
    let value = to_value(&view);
    Ok(View { text: page(&view, now()), value, event_id: None })
}

/// How long a run under way has been in its state.
fn since(view: &RunView, now: Timestamp) -> String {
    let live = view.live.as_ref();
    live.map(|live| format!(", for {}", passed(live.since, now))).unwrap_or_default()
}

fn passed(since: Timestamp, now: Timestamp) -> String {
    long(u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX))
}

/// What is known of a run, and below it every decision about it.
pub(crate) fn page(view: &RunView, now: Timestamp) -> Text {
    let (run, zone) = (&view.run, view.timezone.as_str());
    let skipped = if run.skipped { " (skipped)" } else { "" };
    let mut lines = vec![
        ("run", run.run_id.to_string()),
        ("job", format!("{}, revision {}", view.job_id, run.revision)),
        ("state", format!("{}{skipped}{}", run.state.name(), since(view, now))),
        ("why", run.reason.clone()),
        ("trigger", trigger(&run.trigger)),
        ("scheduled", moment(run.scheduled_at, zone, now)),
    ];
    if run.due_at != run.scheduled_at {
        lines.push(("due", moment(run.due_at, zone, now)));
    }
    let further = [
        ("attempt", (run.attempt > 0).then(|| run.attempt.to_string())),
        ("started", run.started_at.map(|at| moment(at, zone, now))),
        ("next try", run.retry_at.map(|at| moment(at, zone, now))),
        ("ended", run.completed_at.map(|at| moment(at, zone, now))),
        ("took", run.started_at.map(|_| duration(run, now))),
        ("exit code", run.exit_code.map(|code| code.to_string())),
    ];
    lines.extend(further.into_iter().filter_map(|(name, text)| Some((name, text?))));
    if let Some(live) = &view.live {
        let doing = live.doing.as_ref();
        let doing = doing.map(|it| format!("{}, for {}", it.what, passed(it.since, now)));
        let timer =
            live.timer.as_ref().map(|it| format!("{}, {}", it.what, moment(it.at, zone, now)));
        lines.push(("doing", doing.unwrap_or_default()));
        lines.push(("next", timer.unwrap_or_default()));
        lines.push(("heartbeats", live.heartbeats.map(|it| it.to_string()).unwrap_or_default()));
    }
    for (name, value) in &run.parameters {
        lines.push(("parameter", format!("{name}={value}")));
    }
    let told: String = lines
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("{name:<11}{}\n", crate::logger::style::clean(text)))
        .collect();
    let rows = run.timeline.iter().map(|entry| {
        let (what, why) = noted(&entry.noted);
        let at = when::show(entry.at, zone);
        vec![at.into(), entry.attempt.to_string().into(), what.into(), why.into()]
    });
    let rows = rows.collect();
    Text::Page(told, Table { columns: TIMELINE, rows, nothing: "nothing was noted of it yet" })
}
