//! `kapell events`

use std::time::Duration;

use kapell_api::client::Client;
use kapell_api::v1::EventView;
use kapell_backend::executor::Stream as Fd;
use kapell_core::board::Event;
use kapell_node::stdio;
use tokio::time::timeout;

use super::args::{Events, Output};
use super::follower::Follower;
use super::show::{data, to_value};
use super::task::outcome;
use crate::logger::Style;
use crate::logger::style::{Colour, clean};

/// Before all that are kept.
const FIRST: &str = "0-0";
/// What is kept comes at once; after this long without any, all have come.
const QUIET: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: &Events, client: &Client) -> anyhow::Result<u8> {
    // With -f from now on, otherwise all that are kept.
    let after = match &args.after {
        Some(after) => Some(after.clone()),
        None if args.follow => None,
        None => Some(FIRST.to_owned()),
    };
    let last = if args.follow { None } else { client.domains().await?.event_id };
    // One that has not happened yet is no place to go on from: the host tells of the gap.
    if let (Some(after), Some(last)) = (&after, &last)
        && number(after).is_some()
        && number(after) == number(last)
    {
        return Ok(0);
    }
    let mut follower = Follower::new(client, after);
    loop {
        let event = if args.follow {
            follower.next().await?
        } else {
            match timeout(QUIET, follower.next()).await {
                Ok(event) => event?,
                Err(_) => return Ok(0),
            }
        };
        let text = show(&event, args.show.output);
        let is_last = last.as_ref().is_some_and(|last| reaches(&event.id, last));
        if stdio::write_all(Fd::Stdout, text.as_bytes()).is_err() || is_last {
            return Ok(0);
        }
    }
}

/// Whether an event is `last` or came after it.
fn reaches(id: &str, last: &str) -> bool {
    match (number(id), number(last)) {
        (Some(id), Some(last)) => id >= last,
        (None, _) | (_, None) => false,
    }
}

/// Of which leader an event is, and its number there.
fn number(id: &str) -> Option<(u64, u64)> {
    let (epoch, number) = id.split_once('-')?;
    Some((epoch.parse().ok()?, number.parse().ok()?))
}

fn show(event: &EventView, output: Output) -> String {
    match output {
        Output::Json => format!("{}\n", to_value(event)),
        Output::Yaml => format!("---\n{}", data(&to_value(event), output)),
        Output::Text => {
            let style = Style::of_stdout();
            let id = style.paint(Colour::Dim, &format!("{:<10}", event.id));
            let about = event.event.as_ref().map(about).unwrap_or_default();
            format!("{id} {:<20} {}\n", event.name, clean(&about))
        }
    }
}

/// What it is about and what changed.
fn about(event: &Event) -> String {
    match event {
        Event::DesiredLrp(change) => change.latest().map_or_else(String::new, |lrp| {
            let before = change.before.as_ref().map(|before| before.instances.to_string());
            let instances = arrow(before, lrp.instances.to_string());
            format!("{} instances {instances}", lrp.process_guid)
        }),
        Event::ActualLrp(change) => change.latest().map_or_else(String::new, |lrp| {
            let before = change.before.as_ref().map(|before| before.state.name().to_owned());
            let state = arrow(before, lrp.state.name().to_owned());
            let cell = lrp.cell_id.as_ref().map(|cell| format!(" on {cell}")).unwrap_or_default();
            let why = super::text::why(lrp, lrp.since);
            let why = if why.is_empty() { why } else { format!(": {why}") };
            format!("{}/{} {state}{cell}{why}", lrp.process_guid, lrp.index)
        }),
        Event::ActualLrpCrashed(crash) => {
            let (guid, index, count) = (&crash.process_guid, crash.index, crash.crash_count);
            let (instance, cell) = (&crash.instance_guid, &crash.cell_id);
            format!("{guid}/{index} {instance} on {cell}, crash {count}: {}", crash.reason)
        }
        Event::Task(change) => change.latest().map_or_else(String::new, |task| {
            let before = change.before.as_ref().map(|before| before.state.name().to_owned());
            let state = arrow(before, task.state.name().to_owned());
            let outcome = outcome(task);
            let outcome = if outcome.is_empty() { outcome } else { format!(": {outcome}") };
            format!("{} {state}{outcome}", task.guid())
        }),
        Event::Domain(change) => {
            change.latest().map_or_else(String::new, |domain| domain.domain.to_string())
        }
        Event::Job(change) => change.latest().map_or_else(String::new, |job| {
            let before = change.before.as_ref().map(|before| before.revision.to_string());
            format!("{} revision {}", job.job_id, arrow(before, job.revision.to_string()))
        }),
        Event::Run(change) => change.latest().map_or_else(String::new, |run| {
            // Between two records there may have been states that are told of, but not stored.
            let before = change.before.as_ref().map(|before| match run.previous_state {
                Some(previous) if before.state != run.state => previous.name().to_owned(),
                Some(_) | None => before.state.name().to_owned(),
            });
            let state = arrow(before, run.state.name().to_owned());
            let why =
                if run.reason.is_empty() { String::new() } else { format!(": {}", run.reason) };
            format!("{} {state}{why}", run.run_id)
        }),
        Event::Cell { cell_id, .. } => cell_id.to_string(),
    }
}

fn arrow(before: Option<String>, after: String) -> String {
    match before {
        Some(before) if before != after => format!("{before} → {after}"),
        Some(_) | None => after,
    }
}
