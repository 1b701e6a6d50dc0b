//! `kapell job next` and `kapell job simulate`

use std::path::PathBuf;

use anyhow::bail;
use kapell_api::client::Client;
use kapell_api::v1::{NextMoment, NextMoments};
use kapell_core::job::explain::{clock_change, pass_reason};
use kapell_core::job::simulate::{Simulation, simulate as walk};
use kapell_core::job::{JobDefinition, when};
use kapell_core::manifest::Document;
use kapell_core::schedule::Schedule;
use kapell_core::seams::Timestamp;
use serde_json::json;

use super::FAILED;
use super::args::Output;
use super::files::{name, read};
use super::job_args::{JobNext, JobSimulate};
use super::run_text::relative;
use super::show::{data, terminal, to_value};
use super::table::{Cell, Column, Table, column};
use super::text::now;
use crate::http::coming;
use crate::logger::Style;
use crate::{BAD_INPUT, print, say};

const NEXT: &[Column] =
    &[column("MOMENT", 9, 20), column("IN", 6, 6), column("BEGINS", 5, 20), column("NOTE", 7, 10)];
const SIMULATED: &[Column] = &[
    column("MOMENT", 9, 20),
    column("BEGINS", 6, 20),
    column("RUNS", 8, 4),
    column("NOTE", 7, 10),
];
/// So many moments of one job a simulation shows.
const MOST: usize = 10_000;

pub(crate) async fn next(args: &JobNext, client: &Client) -> anyhow::Result<u8> {
    let Some(job_id) = &args.job_id else { return next_of_file(args) };
    let moments = client.next_moments(job_id, args.count).await?;
    if let Some(why) = &moments.hold {
        say(&format!("job `{job_id}`: {why}\n"));
    }
    show(&moments, args.show.output);
    Ok(0)
}

/// The same without a host.
pub(crate) fn next_of_file(args: &JobNext) -> anyhow::Result<u8> {
    let Some(file) = &args.file else { bail!("give a job or a file") };
    let Some(jobs) = jobs(file) else { return Ok(BAD_INPUT) };
    let several = jobs.len() > 1;
    for definition in &jobs {
        let schedule = match schedule(definition) {
            Ok(schedule) => schedule,
            Err(code) => return Ok(code),
        };
        if several && args.show.output == Output::Text {
            print(&format!("job/{}\n", definition.job_id));
        }
        show(&coming(definition, &schedule, now(), args.count), args.show.output);
    }
    Ok(0)
}

fn show(next: &NextMoments, output: Output) {
    print(&match output {
        Output::Text => {
            let width = terminal().map(|(width, _)| width);
            table(next, now()).render(width, Style::of_stdout())
        }
        Output::Json | Output::Yaml => data(&to_value(next), output),
    });
}

pub(crate) fn table(next: &NextMoments, now: Timestamp) -> Table {
    let zone = next.timezone.as_str();
    let row = |it: &NextMoment| -> Vec<Cell> {
        let excluded = it.excluded.as_ref().map(|calendar| excluded(calendar));
        let notes: Vec<String> = excluded.into_iter().chain(it.clock_change.clone()).collect();
        let begins = if it.due_at == it.at { "-".to_owned() } else { when::show(it.due_at, zone) };
        vec![
            when::show(it.at, zone).into(),
            relative(it.at, now).into(),
            begins.into(),
            notes.join("; ").into(),
        ]
    };
    let rows = next.moments.iter().map(row).collect();
    Table { columns: NEXT, rows, nothing: "nothing is scheduled" }
}

fn excluded(calendar: &str) -> String {
    if calendar.is_empty() {
        "does not run: excluded".to_owned()
    } else {
        format!("does not run: excluded by {calendar}")
    }
}

/// The jobs of a file. If anything is wrong it was told, and there are none.
fn jobs(file: &PathBuf) -> Option<Vec<JobDefinition>> {
    let documents = read(std::slice::from_ref(file))?;
    let mut jobs = Vec::new();
    for document in documents {
        match document {
            Document::Job(job) => jobs.push(*job),
            Document::Lrp { .. } | Document::Task(_) => {
                say(&format!("error: {} is no job and has no schedule\n", name(&document)));
                return None;
            }
        }
    }
    Some(jobs)
}

fn schedule(definition: &JobDefinition) -> Result<Schedule, u8> {
    Schedule::of(definition).map_err(|faults| {
        for fault in faults {
            say(&format!("error: job/{}: {fault}\n{}\n", definition.job_id, fault.carets()));
        }
        BAD_INPUT
    })
}

pub(crate) fn simulate(args: &JobSimulate) -> anyhow::Result<u8> {
    let Some(jobs) = jobs(&args.file) else { return Ok(BAD_INPUT) };
    let mut values = Vec::new();
    for definition in &jobs {
        let schedule = match schedule(definition) {
            Ok(schedule) => schedule,
            Err(code) => return Ok(code),
        };
        let read = |text: &str| when::read(text, &definition.timezone, now());
        let (from, to) = match (read(&args.from), read(&args.to)) {
            (Ok(from), Ok(to)) if from < to => (from, to),
            (Ok(_), Ok(_)) => bail!("--from must be before --to"),
            (Err(why), _) => bail!("--from: {why}"),
            (_, Err(why)) => bail!("--to: {why}"),
        };
        let simulation = walk(definition, &schedule, (from, to), MOST);
        match args.show.output {
            Output::Text => print(&told(definition, &simulation)),
            Output::Json | Output::Yaml => values.push(value(definition, &simulation)),
        }
        if let Some(more) = simulation.more_from {
            let more = when::show(more, &definition.timezone);
            say(&format!(
                "job/{}: cut at {MOST} moments; go on with --from at {more}\n",
                definition.job_id
            ));
        }
    }
    if args.show.output != Output::Text {
        print(&data(&values.into(), args.show.output));
    }
    Ok(if jobs.is_empty() { FAILED } else { 0 })
}

fn value(definition: &JobDefinition, simulation: &Simulation) -> serde_json::Value {
    let moments = simulation.moments.iter().map(|it| {
        json!({
            "at": it.at,
            "due_at": it.due_at,
            "runs": it.passed.is_none(),
            "passed": it.passed,
            "clock_change": it.change.map(clock_change),
        })
    });
    json!({
        "job_id": definition.job_id,
        "timezone": definition.timezone,
        "moments": moments.collect::<Vec<_>>(),
    })
}

/// What would have run, as text.
pub(crate) fn told(definition: &JobDefinition, simulation: &Simulation) -> String {
    let zone = definition.timezone.as_str();
    let rows = simulation.moments.iter().map(|it| -> Vec<Cell> {
        let why = it.passed.as_ref().map(|why| pass_reason(why).1);
        let change = it.change.map(|change| clock_change(change).to_owned());
        let notes: Vec<String> = why.into_iter().chain(change).collect();
        let begins = if it.due_at == it.at { "-".to_owned() } else { when::show(it.due_at, zone) };
        let runs = if it.passed.is_none() { "yes" } else { "no" };
        vec![when::show(it.at, zone).into(), begins.into(), runs.into(), notes.join("; ").into()]
    });
    let table = Table { columns: SIMULATED, rows: rows.collect(), nothing: "it is never due" };
    let count = simulation.moments.iter().filter(|it| it.passed.is_none()).count();
    let of = simulation.moments.len();
    let head = format!("job/{}: {count} of {of} moments would run\n", definition.job_id);
    head + &table.render(terminal().map(|(width, _)| width), Style::of_stdout())
}
