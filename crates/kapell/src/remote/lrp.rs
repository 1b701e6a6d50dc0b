//! `kapell lrp`

use std::collections::BTreeMap;

use kapell_api::client::{ActualFilter, Client, Error};
use kapell_core::board::{ActualLrp, ActualState, DesiredLrp, DesiredUpdate};
use serde_json::Value;

use super::args::LrpCommand;
use super::lrp_run;
use super::show::{self, Text, View, to_value};
use super::table::{Cell, Column, Table, coloured, column};
use super::text::{age, instance_state, megabytes, now, or_dash, why};
use crate::logger::style::{Colour, clean};
use crate::say;

const LIST: &[Column] = &[
    column("PROCESS", 9, 12),
    column("DOMAIN", 3, 6),
    column("RUNNING", 8, 7),
    column("STATE", 7, 12),
    column("MEMORY", 4, 6),
    column("AGE", 5, 4),
];
const INSTANCES: &[Column] = &[
    column("INDEX", 9, 5),
    column("STATE", 8, 9),
    column("SINCE", 6, 5),
    column("CELL", 5, 8),
    column("ADDRESS", 4, 12),
    column("CRASHES", 3, 7),
    column("WHY", 7, 16),
];

pub(crate) async fn run(command: LrpCommand, client: &Client) -> anyhow::Result<u8> {
    match command {
        LrpCommand::List(list) => show::list(client, list, all).await,
        LrpCommand::Run(args) => lrp_run::run(&args, client).await,
        LrpCommand::Show { process_guid, list } => {
            let guid = process_guid.as_str();
            show::list(client, list, async |client: &Client| one(client, guid).await).await
        }
        LrpCommand::Scale { process_guid, instances } => {
            let update = DesiredUpdate { instances: Some(instances), ..DesiredUpdate::default() };
            client.update_desired(&process_guid, &update).await?;
            say(&format!("{process_guid} scaled to {instances}\n"));
            Ok(0)
        }
        LrpCommand::Delete { process_guid } => {
            for guid in process_guid {
                client.remove_desired(&guid).await?;
                say(&format!("{guid} deleted\n"));
            }
            Ok(0)
        }
    }
}

async fn all(client: &Client) -> Result<View, Error> {
    let desired = client.desired_lrps().await?;
    let actual = client.actual_lrps(ActualFilter::default()).await?;
    let mut of: BTreeMap<&str, Vec<&ActualLrp>> = BTreeMap::new();
    for lrp in &actual.items {
        of.entry(lrp.process_guid.as_str()).or_default().push(lrp);
    }
    let now = now();
    let empty = Vec::new();
    let instances = |lrp: &DesiredLrp| of.get(lrp.process_guid.as_str()).unwrap_or(&empty);
    let row = |lrp: &DesiredLrp| -> Vec<Cell> {
        let (running, state) = summary(lrp, instances(lrp));
        vec![
            lrp.process_guid.as_str().into(),
            lrp.domain.as_str().into(),
            format!("{running}/{}", lrp.instances).into(),
            state,
            megabytes(lrp.memory_mb).into(),
            lrp.created_at.map_or_else(|| "-".to_owned(), |at| age(at, now)).into(),
        ]
    };
    let table = Table {
        columns: LIST,
        rows: desired.items.iter().map(row).collect(),
        nothing: "no long-running processes",
    };
    let value = desired.items.iter().map(|lrp| with_instances(lrp, instances(lrp))).collect();
    Ok(View { text: Text::Table(table), value, event_id: desired.event_id })
}

fn with_instances(lrp: &DesiredLrp, instances: &[&ActualLrp]) -> Value {
    let mut value = to_value(lrp);
    value["actual_lrps"] = to_value(&instances);
    value
}

/// How many run, and in a word how it goes.
fn summary(lrp: &DesiredLrp, instances: &[&ActualLrp]) -> (usize, Cell) {
    let count = |state: ActualState| {
        let counts =
            |it: &&&ActualLrp| it.state == state && !it.evacuating && it.index < lrp.instances;
        instances.iter().filter(counts).count()
    };
    let running = count(ActualState::Running);
    let wanted = usize::try_from(lrp.instances).unwrap_or(usize::MAX);
    if running == wanted {
        let word = if wanted == 0 { "stopped" } else { "running" };
        return (running, coloured(word, Colour::Green));
    }
    let parts: Vec<String> = [
        (count(ActualState::Crashed), "crashed"),
        (count(ActualState::Claimed), "starting"),
        (count(ActualState::Unclaimed), "waiting"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, word)| format!("{number} {word}"))
    .collect();
    let colour = if count(ActualState::Crashed) > 0 { Colour::Red } else { Colour::Yellow };
    let text = if parts.is_empty() { "starting".to_owned() } else { parts.join(", ") };
    (running, coloured(text, colour))
}

async fn one(client: &Client, guid: &str) -> Result<View, Error> {
    let lrp = client.desired_lrp(guid).await?;
    let filter = ActualFilter { process_guid: Some(guid), all: true, ..ActualFilter::default() };
    let actual = client.actual_lrps(filter).await?;
    let now = now();
    let row = |it: &ActualLrp| -> Vec<Cell> {
        let ports = |net: &kapell_core::board::NetInfo| {
            let ports: Vec<_> = net.ports.iter().map(|it| it.host_port.to_string()).collect();
            format!("{}:{}", net.address, ports.join(","))
        };
        vec![
            it.index.to_string().into(),
            instance_state(it),
            age(it.since, now).into(),
            or_dash(it.cell_id.as_ref()).into(),
            or_dash(it.net.as_ref().filter(|net| !net.ports.is_empty()).map(ports)).into(),
            it.crash_count.to_string().into(),
            why(it, now).into(),
        ]
    };
    let table = Table {
        columns: INSTANCES,
        rows: actual.items.iter().map(row).collect(),
        nothing: "no instances",
    };
    let value = with_instances(&lrp, &actual.items.iter().collect::<Vec<_>>());
    Ok(View { text: Text::Page(page(&lrp), table), value, event_id: actual.event_id })
}

/// What is desired, one line a field.
fn page(lrp: &DesiredLrp) -> String {
    let mut lines = vec![
        ("process", lrp.process_guid.to_string()),
        ("domain", lrp.domain.to_string()),
        ("instances", lrp.instances.to_string()),
        ("action", to_value(&lrp.action).to_string()),
    ];
    if lrp.memory_mb > 0 {
        lines.push(("memory", megabytes(lrp.memory_mb)));
    }
    if lrp.disk_mb > 0 {
        lines.push(("disk", megabytes(lrp.disk_mb)));
    }
    if let Some(rootfs) = &lrp.rootfs {
        lines.push(("rootfs", rootfs.clone()));
    }
    if !lrp.routes.is_empty() {
        lines.push(("routes", to_value(&lrp.routes).to_string()));
    }
    if !lrp.annotation.is_empty() {
        lines.push(("annotation", lrp.annotation.clone()));
    }
    let lines: String =
        lines.iter().map(|(name, text)| format!("{name:<11}{}\n", clean(text))).collect();
    lines + "\n"
}
