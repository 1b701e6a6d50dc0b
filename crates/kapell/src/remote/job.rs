//! `kapell job`

use std::collections::BTreeMap;

use kapell_api::client::{Client, Error, RunFilter};
use kapell_api::v1::{BackfillWanted, JobView, RunBrief, RunView, TriggerWanted, When};
use kapell_core::job::{PauseCause, Payload, when};
use kapell_core::seams::Timestamp;

use super::args::{Apply, Output};
use super::follower::Follower;
use super::job_args::{JobBackfill, JobCommand, JobTrigger};
use super::job_times;
use super::run::{COLUMNS, rows};
use super::run_text::{moment, relative, run_state};
use super::run_wait::{attend, conclude, pour};
use super::show::{self, Text, View, data, terminal, to_value};
use super::sink::{Dress, Sink};
use super::table::{Cell, Column, Table, coloured, column};
use super::text::now;
use super::{apply, job_import, job_messages, job_schema};
use crate::logger::Style;
use crate::logger::style::{Colour, clean};
use crate::{print, say};

const LIST: &[Column] = &[
    column("JOB", 9, 14),
    column("STATE", 7, 9),
    column("SCHEDULE", 5, 12),
    column("NEXT", 8, 10),
    column("LAST", 4, 8),
    column("LAST STATE", 8, 9),
    column("ACTIVE", 3, 6),
    column("DOMAIN", 2, 6),
];
const BACKFILL: &[Column] = &[column("RUN", 9, 16), column("MOMENT", 8, 20)];
/// So many of its last runs are shown of a job.
const LAST_RUNS: u32 = 10;

pub(crate) async fn run(command: JobCommand, client: &Client) -> anyhow::Result<u8> {
    match command {
        JobCommand::Apply(args) => {
            let args = Apply { files: args.files, dry_run: args.dry_run, ..Apply::default() };
            apply::run_jobs(&args, client).await
        }
        JobCommand::List { domain, tag, list } => {
            let (domain, tag) = (domain.as_deref(), tag.as_deref());
            show::list(client, list, async |client: &Client| all(client, domain, tag).await).await
        }
        JobCommand::Show { job_id, list } => {
            let id = job_id.as_str();
            show::list(client, list, async |client: &Client| one(client, id).await).await
        }
        JobCommand::Delete { job_id, cancel_runs } => {
            for id in job_id {
                client.delete_job(&id, cancel_runs).await?;
                say(&format!("{id} deleted\n"));
            }
            Ok(0)
        }
        JobCommand::Pause { job_id, note } => {
            for id in job_id {
                client.pause_job(&id, &note).await?;
                say(&format!("{id} paused\n"));
            }
            Ok(0)
        }
        JobCommand::Resume { job_id } => {
            for id in job_id {
                let job = client.resume_job(&id).await?;
                say(&format!("{id} resumed{}\n", next_said(&job, now())));
            }
            Ok(0)
        }
        JobCommand::Trigger(args) => trigger(args, client).await,
        JobCommand::Backfill(args) => backfill(args, client).await,
        JobCommand::Next(args) => job_times::next(&args, client).await,
        JobCommand::Import(args) => job_import::apply(&args, client).await,
        JobCommand::Simulate(args) => job_times::simulate(&args),
        JobCommand::Schema(args) => job_schema::run(&args),
        JobCommand::Deliveries { job_id, run, list } => {
            let (job, run) = (job_id.as_deref(), run.as_deref());
            let fetch = async |client: &Client| job_messages::all(client, job, run).await;
            show::list(client, list, fetch).await
        }
    }
}

fn next_said(view: &JobView, now: Timestamp) -> String {
    let zone = &view.definition.timezone;
    view.next_at.map(|at| format!(", next at {}", moment(at, zone, now))).unwrap_or_default()
}

async fn all(client: &Client, domain: Option<&str>, tag: Option<&str>) -> Result<View, Error> {
    let listed = client.jobs(domain, tag).await?;
    let table = list(&listed.items, now());
    let value = to_value(&listed.items);
    Ok(View { text: Text::Table(table), value, event_id: listed.event_id })
}

pub(crate) fn list(jobs: &[JobView], now: Timestamp) -> Table {
    let row = |view: &JobView| -> Vec<Cell> {
        let last = view.last_run.as_ref();
        let next = view.next_at.map_or_else(|| "-".to_owned(), |at| relative(at, now));
        vec![
            view.job.job_id.as_str().into(),
            state(view),
            schedule(view).into(),
            next.into(),
            last.map_or_else(|| "-".to_owned(), |run| relative(began(run), now)).into(),
            last.map_or_else(|| "-".into(), |run| run_state(run.state, run.skipped)),
            view.active_runs.to_string().into(),
            view.job.domain.as_str().into(),
        ]
    };
    Table { columns: LIST, rows: jobs.iter().map(row).collect(), nothing: "no jobs" }
}

/// One that makes up for a moment, or was skipped, did not begin when it was scheduled.
fn began(run: &RunBrief) -> Timestamp {
    run.started_at.or(run.completed_at).unwrap_or(run.scheduled_at)
}

fn state(view: &JobView) -> Cell {
    if view.job.removed {
        coloured("removed", Colour::Red)
    } else if view.job.paused.is_some() {
        coloured("paused", Colour::Yellow)
    } else if view.definition.suspend {
        coloured("suspended", Colour::Yellow)
    } else {
        coloured("on", Colour::Green)
    }
}

fn schedule(view: &JobView) -> String {
    let lines = &view.definition.schedule;
    if lines.is_empty() { "-".to_owned() } else { lines.join("; ") }
}

async fn one(client: &Client, id: &str) -> Result<View, Error> {
    let job = client.job(id).await?;
    let filter = RunFilter { job: Some(id), limit: Some(LAST_RUNS), ..RunFilter::default() };
    let runs = client.runs(filter).await?;
    let mut value = to_value(&job);
    value["runs"] = to_value(&runs.items);
    Ok(View { text: page(&job, &runs.items, now()), value, event_id: runs.event_id })
}

/// What is known of a job, and below it its last runs.
pub(crate) fn page(view: &JobView, runs: &[RunView], now: Timestamp) -> Text {
    let JobView { job, definition, .. } = view;
    let zone = definition.timezone.as_str();
    let paused = job.paused.as_ref().map(|pause| {
        let by = match &pause.cause {
            PauseCause::Person { who } => format!("by {who}"),
            PauseCause::Failures { run_id } => format!("after {run_id} failed"),
        };
        let note = if pause.note.is_empty() { String::new() } else { format!(": {}", pause.note) };
        format!("{by}, {}{note}", moment(pause.at, zone, now))
    });
    let suspended = definition.suspend.then(|| format!("yes {}", definition.suspend_note));
    let named = Some(definition.name.clone()).filter(|name| !name.is_empty());
    let failures = job.failures_in_a_row;
    let lines = [
        ("job", Some(job.job_id.to_string())),
        ("name", named),
        ("domain", Some(job.domain.to_string())),
        ("state", Some(state(view).text)),
        ("paused", paused),
        ("suspended", suspended),
        ("schedule", Some(format!("{} ({zone})", schedule(view)))),
        ("next", view.next_at.map(|at| moment(at, zone, now))),
        ("does", definition.payload().map(does)),
        ("overlap", Some(overlap(view))),
        ("tags", Some(definition.tags.join(", "))),
        ("parameters", Some(parameters(view))),
        ("failures", (failures > 0).then(|| format!("{failures} in a row"))),
        ("revision", Some(job.revision.to_string())),
        ("changed", Some(moment(job.updated_at, zone, now))),
    ];
    let mut told = String::new();
    for (name, text) in lines {
        let text = text.unwrap_or_default();
        if !text.is_empty() {
            told.push_str(&format!("{name:<11}{}\n", clean(text.trim_end())));
        }
    }
    let table = Table { columns: COLUMNS, rows: rows(runs), nothing: "it has not run yet" };
    Text::Page(told, table)
}

fn does(payload: Payload<'_>) -> String {
    match payload {
        Payload::Command(command) => {
            let args = command.args.iter().flatten().map(String::as_str);
            std::iter::once(command.command.as_str()).chain(args).collect::<Vec<_>>().join(" ")
        }
        Payload::Task(_) => "a task on a cell".to_owned(),
        Payload::Kubernetes(kubernetes) => kubernetes.tell(),
        Payload::Workflow(workflow) => match &workflow.file {
            Some(file) => format!("the workflow {file}"),
            None => "a workflow".to_owned(),
        },
    }
}

fn overlap(view: &JobView) -> String {
    let definition = &view.definition;
    let overlap = to_value(&definition.overlap);
    let group = definition.group.as_ref().map(|group| format!(", in group {}", group.name));
    format!(
        "{}, at most {} at once{}",
        overlap.as_str().unwrap_or_default(),
        definition.max_concurrent_runs,
        group.unwrap_or_default()
    )
}

fn parameters(view: &JobView) -> String {
    let shown = view.definition.parameters.iter().map(|it| match &it.default {
        Some(default) => format!("{}={default}", it.name),
        None => it.name.clone(),
    });
    shown.collect::<Vec<_>>().join(", ")
}

async fn trigger(args: JobTrigger, client: &Client) -> anyhow::Result<u8> {
    let wanted = TriggerWanted { parameters: args.params.into_iter().collect() };
    let waits = args.wait || args.follow;
    // Before the run is there, so that nothing of its life is missed.
    let follower = if waits { Some(Follower::begin(client).await?) } else { None };
    let run_id = client.trigger_job(&args.job_id, &wanted).await?.run.run_id;
    let Some(follower) = follower else {
        print(&format!("{run_id}\n"));
        return Ok(0);
    };
    say(&format!("run {run_id}\n"));
    let log = async {
        if !args.follow {
            return;
        }
        let mut sink = Sink::new(Dress::default(), true);
        match pour(client, run_id.as_str(), None, true, None, &mut sink).await {
            Ok(()) => {}
            // One that did nothing wrote nothing.
            Err(error) if error.is_not_found() => {}
            Err(error) => say(&format!("the log of {run_id} cannot be read: {error}\n")),
        }
    };
    let ((), run) = tokio::join!(log, attend(client, follower, run_id.as_str()));
    Ok(conclude(&run?.run))
}

async fn backfill(args: JobBackfill, client: &Client) -> anyhow::Result<u8> {
    let wanted = BackfillWanted {
        from: When::Text(args.from),
        to: When::Text(args.to),
        dry_run: args.dry_run,
        parameters: args.params.into_iter().collect::<BTreeMap<_, _>>(),
        key: if args.again { format!("again at {}", now().0) } else { String::new() },
    };
    let done = client.backfill_job(&args.job_id, &wanted).await?;
    if args.show.output != Output::Text {
        print(&data(&to_value(&done), args.show.output));
        return Ok(0);
    }
    let rows = done.runs.iter().map(|run| -> Vec<Cell> {
        vec![run.run_id.as_str().into(), when::show(run.scheduled_at, &done.timezone).into()]
    });
    let table =
        Table { columns: BACKFILL, rows: rows.collect(), nothing: "it was not due in that time" };
    print(&table.render(terminal().map(|(width, _)| width), Style::of_stdout()));
    let there = done.runs.iter().filter(|run| run.there).count();
    let count = done.runs.len() - there;
    let runs = if count == 1 { "run" } else { "runs" };
    let would = if args.dry_run { "would be made" } else { "made" };
    let rest = match there {
        0 => String::new(),
        there => format!("; {there} there already, which `--again` would make anew"),
    };
    say(&format!("{count} {runs} {would}{rest}\n"));
    Ok(0)
}
