//! `kapell plan`: what applying files would come to.

use kapell_api::client::Client;
use kapell_api::v1::{Plan, Wishes};
use kapell_core::board::plan::{Step, Unit, Wish};
use kapell_core::manifest::Document;

use super::FAILED;
use super::args::{self, Output};
use super::files::{name, read};
use super::show::{data, terminal, to_value};
use super::table::{Cell, Column, Table, coloured, column};
use super::text::or_dash;
use crate::logger::Style;
use crate::logger::style::Colour;
use crate::{BAD_INPUT, print, say};

const COLUMNS: &[Column] = &[
    column("UNIT", 5, 12),
    column("STEP", 4, 8),
    column("COUNT", 1, 5),
    column("CELL", 3, 8),
    column("WHY", 2, 20),
];

pub(crate) async fn run(args: &args::Plan, client: &Client) -> anyhow::Result<u8> {
    let Some(documents) = read(&args.files) else { return Ok(BAD_INPUT) };
    if let Some(job) = documents.iter().find(|it| matches!(it, Document::Job(_))) {
        say(&format!(
            "error: {} takes no room until it runs: see `kapell apply --dry-run` and `kapell job simulate`\n",
            name(job)
        ));
        return Ok(BAD_INPUT);
    }
    let plan = client.plan(&wishes(documents)).await?;
    print(&match args.show.output {
        Output::Text => {
            let width = terminal().map(|(width, _)| width);
            table(&plan).render(width, Style::of_stdout()) + &summary(&plan)
        }
        Output::Json | Output::Yaml => data(&to_value(&plan), args.show.output),
    });
    Ok(if plan.fits { 0 } else { FAILED })
}

pub(crate) fn wishes(documents: Vec<Document>) -> Wishes {
    let mut wishes = Wishes::default();
    for document in documents {
        wishes.order.push(name(&document));
        match document {
            Document::Lrp { lrp, counts } => {
                if !counts {
                    wishes.keep_instances.push(lrp.process_guid.clone());
                }
                wishes.lrps.push(*lrp);
            }
            Document::Task(task) => wishes.tasks.push(*task),
            // Of a job there is nothing to be placed.
            Document::Job(_) => {}
        }
    }
    wishes
}

/// Each wish with its counts, and below them what would be started, stopped, and not.
pub(crate) fn table(plan: &Plan) -> Table {
    let wishes = plan.wishes.iter().map(wish);
    let units = plan.units.iter().map(unit);
    let stops = plan.stops.iter().map(|stop| {
        let cell = or_dash(stop.cell_id.as_ref());
        row(&stop.subject, coloured("stop", Colour::Yellow), "", &cell, "")
    });
    let rows = wishes.chain(units).chain(stops).collect();
    Table { columns: COLUMNS, rows, nothing: "nothing is to be planned" }
}

fn row(unit: &str, step: Cell, count: &str, cell: &str, why: &str) -> Vec<Cell> {
    vec![unit.into(), step, count.into(), cell.into(), why.into()]
}

fn wish(wish: &Wish) -> Vec<Cell> {
    let colour = match wish.step {
        Step::Create | Step::ScaleUp => Colour::Green,
        Step::ScaleDown | Step::Update => Colour::Yellow,
        Step::Unchanged | Step::NotDone => Colour::Dim,
        Step::Refused => Colour::Red,
    };
    let count = if wish.before == wish.after {
        wish.after.to_string()
    } else {
        format!("{} → {}", wish.before, wish.after)
    };
    let fields = wish.fields.join(", ");
    let why = wish.reason.as_deref().unwrap_or(&fields);
    row(&wish.subject, coloured(wish.step.name(), colour), &count, "", why)
}

fn unit(unit: &Unit) -> Vec<Cell> {
    let step = match (&unit.cell_id, unit.waits) {
        (Some(_), false) => coloured("start", Colour::Green),
        (Some(_), true) => coloured("waits, start", Colour::Green),
        (None, false) => coloured("no cell", Colour::Red),
        (None, true) => coloured("waits, no cell", Colour::Red),
    };
    let why = unit.reason.as_deref().unwrap_or_default();
    row(&unit.subject, step, "", &or_dash(unit.cell_id.as_ref()), why)
}

pub(crate) fn summary(plan: &Plan) -> String {
    let (mut placed, mut lacking, mut others) = (0_usize, 0_usize, 0_usize);
    for unit in &plan.units {
        match (unit.wished, unit.cell_id.is_some()) {
            (true, true) => placed += 1,
            (true, false) => lacking += 1,
            (false, true) => {}
            (false, false) => others += 1,
        }
    }
    let of = |step: Step| plan.wishes.iter().filter(|wish| wish.step == step).count();
    let refused = of(Step::Refused);
    let mut parts = Vec::new();
    if refused == 0 {
        parts.push(format!("{placed} would start"));
    }
    let silent = plan.silent.len();
    for (count, what) in [
        (plan.stops.len(), "would be stopped"),
        (lacking, "would find no cell"),
        (refused, "would be refused"),
        (of(Step::NotDone), "not done because of that"),
        (others, "of others find no cell either"),
        (silent, if silent == 1 { "cell did not answer" } else { "cells did not answer" }),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    let verdict = match (refused, plan.fits) {
        (0, true) => "all fits",
        (0, false) => "not all fits",
        (_, _) => "nothing would be done",
    };
    format!("{verdict}: {}; nothing was changed\n", parts.join(", "))
}
