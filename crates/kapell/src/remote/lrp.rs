//! `kapell lrp`

use std::collections::{BTreeMap, BTreeSet};

use kapell_api::client::{ActualFilter, Client, Error};
use kapell_core::board::{ActualLrp, ActualState, DesiredLrp, DesiredUpdate};
use kapell_core::seams::Timestamp;
use serde_json::{Value, json};

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

/// Nobody desires it, and it is there.
const NOT_DESIRED: &str = "not desired";

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
    let (table, value) = list(&desired.items, &actual.items, now());
    Ok(View { text: Text::Table(table), value, event_id: desired.event_id })
}

/// What is desired with its instances, and instances of what is not desired.
pub(crate) fn list(desired: &[DesiredLrp], actual: &[ActualLrp], now: Timestamp) -> (Table, Value) {
    let mut of: BTreeMap<&str, Vec<&ActualLrp>> = BTreeMap::new();
    for lrp in actual {
        of.entry(lrp.process_guid.as_str()).or_default().push(lrp);
    }
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
    let known: BTreeSet<&str> = desired.iter().map(|it| it.process_guid.as_str()).collect();
    let others: Vec<&Vec<&ActualLrp>> =
        of.iter().filter(|(guid, _)| !known.contains(*guid)).map(|(_, lrps)| lrps).collect();
    let rows = desired.iter().map(row).chain(others.iter().map(|it| undesired_row(it)));
    let table = Table { columns: LIST, rows: rows.collect(), nothing: "no long-running processes" };
    let value = desired.iter().map(|lrp| with_instances(lrp, instances(lrp)));
    let value = value.chain(others.iter().map(|it| undesired(it))).collect();
    (table, value)
}

fn with_instances(lrp: &DesiredLrp, instances: &[&ActualLrp]) -> Value {
    let mut value = to_value(lrp);
    value["actual_lrps"] = to_value(&instances);
    value
}

/// Instances of a process that nobody desires.
fn undesired(instances: &[&ActualLrp]) -> Value {
    let first = instances.first();
    json!({
        "process_guid": first.map(|lrp| &lrp.process_guid),
        "domain": first.map(|lrp| &lrp.domain),
        "instances": 0,
        "desired": false,
        "actual_lrps": instances,
    })
}

fn undesired_row(instances: &[&ActualLrp]) -> Vec<Cell> {
    let running = instances.iter().filter(|it| it.state == ActualState::Running).count();
    let first = instances.first();
    vec![
        first.map_or("-", |lrp| lrp.process_guid.as_str()).into(),
        first.map_or("-", |lrp| lrp.domain.as_str()).into(),
        format!("{running}/0").into(),
        coloured(NOT_DESIRED, Colour::Yellow),
        "-".into(),
        "-".into(),
    ]
}

/// How many run, and in a word how it goes. One that moves runs for as long as its evacuating twin does.
fn summary(lrp: &DesiredLrp, instances: &[&ActualLrp]) -> (usize, Cell) {
    let count = |state: ActualState| {
        let counts = |it: &&&ActualLrp| it.state == state && lrp.wants_this(it);
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
    let lrp = match client.desired_lrp(guid).await {
        Err(error) if !error.is_not_found() => return Err(error),
        found => found,
    };
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
    let instances: Vec<&ActualLrp> = actual.items.iter().collect();
    let (page, value) = match (lrp, instances.first()) {
        (Ok(lrp), _) => (page(&lrp), with_instances(&lrp, &instances)),
        (Err(_), Some(first)) => (undesired_page(first), undesired(&instances)),
        (Err(error), None) => return Err(error),
    };
    Ok(View { text: Text::Page(page, table), value, event_id: actual.event_id })
}

fn undesired_page(lrp: &ActualLrp) -> String {
    lines(&[
        ("process", lrp.process_guid.to_string()),
        ("domain", lrp.domain.to_string()),
        ("instances", NOT_DESIRED.to_owned()),
    ])
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
    self::lines(&lines)
}

fn lines(fields: &[(&str, String)]) -> String {
    let lines: String =
        fields.iter().map(|(name, text)| format!("{name:<11}{}\n", clean(text))).collect();
    lines + "\n"
}
