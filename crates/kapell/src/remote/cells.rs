//! `kapell cells`

use kapell_api::client::{Client, Error};
use kapell_api::v1::CellView;

use super::args::{Cells, CellsCommand};
use super::show::{self, Text, View, to_value};
use super::table::{Cell, Column, Table, coloured, column};
use super::text::{long, megabytes};
use crate::logger::style::Colour;
use crate::{BAD_INPUT, say};

const LIST: &[Column] = &[
    column("CELL", 9, 12),
    column("STATE", 8, 7),
    column("ZONE", 4, 4),
    column("LRPS", 7, 4),
    column("TASKS", 7, 5),
    column("MEMORY", 5, 6),
    column("DISK", 3, 4),
    column("HEARD", 6, 5),
    column("URL", 2, 12),
    column("VERSION", 1, 7),
];

pub(crate) async fn run(args: Cells, client: &Client) -> anyhow::Result<u8> {
    match args.command {
        None => show::list(client, args.list, all).await,
        Some(CellsCommand::Evacuate { .. }) if !args.list.is_plain() => {
            say("error: --output and --watch are for the list of cells\n");
            Ok(BAD_INPUT)
        }
        Some(CellsCommand::Evacuate { cell_id }) => {
            client.evacuate_cell(&cell_id).await?;
            say(&format!("{cell_id} is being evacuated\n"));
            Ok(0)
        }
    }
}

async fn all(client: &Client) -> Result<View, Error> {
    let listed = client.cells().await?;
    let row = |cell: &CellView| -> Vec<Cell> {
        let colour = if cell.state == "present" { Colour::Green } else { Colour::Yellow };
        let presence = &cell.presence;
        let heard = cell.heard_ms_ago.map_or_else(|| "-".to_owned(), long);
        vec![
            presence.cell_id.as_str().into(),
            coloured(cell.state.as_str(), colour),
            if presence.zone.is_empty() { "-".into() } else { presence.zone.as_str().into() },
            cell.lrps.to_string().into(),
            cell.tasks.to_string().into(),
            megabytes(presence.capacity.memory_mb).into(),
            megabytes(presence.capacity.disk_mb).into(),
            heard.into(),
            presence.url.as_str().into(),
            presence.version.as_str().into(),
        ]
    };
    let table =
        Table { columns: LIST, rows: listed.items.iter().map(row).collect(), nothing: "no cells" };
    let value = to_value(&listed.items);
    Ok(View { text: Text::Table(table), value, event_id: listed.event_id })
}
