//! `kapell seats`: who holds which seat.

use std::time::Duration;

use jiff::Timestamp;
use kapell_core::seat::{Epoch, Record, Seat};
use kapell_node::elections::look;
use kapell_store::{Error, Location, keys};
use serde_json::json;

use crate::cli::{Output, Seats};
use crate::config::Config;
use crate::print;
use crate::store::{block_on, open};

/// One seat that was ever held.
struct Row {
    seat: Seat,
    /// The last one given out.
    epoch: Epoch,
    holder: Option<(Record, Option<Duration>)>,
}

pub(crate) fn run(args: &Seats, config: &Config) -> anyhow::Result<u8> {
    let location = config.store(args.store.store.as_deref())?;
    let rows = if let Location::File(dir) = &location {
        match look(dir) {
            Ok(Some((seat, record))) => {
                vec![Row { seat, epoch: record.epoch, holder: Some((record, None)) }]
            }
            // Who opens it learns whether there never was one or its log is missing.
            Ok(None) | Err(Error::Absent { .. }) => read(&location)?,
            Err(error) => return Err(error.into()),
        }
    } else {
        read(&location)?
    };
    print(&match args.output {
        Output::Json => as_json(&rows)?,
        Output::Text => as_text(&rows),
    });
    Ok(0)
}

fn read(location: &Location) -> anyhow::Result<Vec<Row>> {
    let entries = block_on(async {
        let store = open(location, "kapell seats", false).await?;
        Ok(store.list().await?)
    })?;
    let row = |(key, entry): (_, kapell_store::model::Entry)| {
        let seat = keys::seat_of(&key)?;
        let holder =
            entry.held.and_then(|held| Some((Record::decode(&held.value)?, held.remaining)));
        Some(Row { seat, epoch: Epoch(entry.generation.0), holder })
    };
    Ok(entries.into_iter().filter_map(row).collect())
}

fn since(record: &Record) -> String {
    Timestamp::from_millisecond(record.since.0).map_or_else(|_| "-".to_owned(), |at| at.to_string())
}

fn as_json(rows: &[Row]) -> anyhow::Result<String> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let record = row.holder.as_ref().map(|(record, _)| record);
            let remaining = row.holder.as_ref().and_then(|(_, remaining)| *remaining);
            json!({
                "seat": row.seat,
                "epoch": row.epoch,
                "owner": record.map(|record| record.owner),
                "address": record.map(|record| &record.address),
                "expires_in_ms": remaining.and_then(|left| u64::try_from(left.as_millis()).ok()),
                "since": record.map(since),
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}

fn as_text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<5} {:<11} {:<16} {:<22} {:<13} SINCE\n",
        "SEAT", "EPOCH", "OWNER", "ADDRESS", "EXPIRES IN MS"
    );
    for row in rows {
        let (owner, address, expires, since) = match &row.holder {
            Some((record, left)) => (
                record.owner.to_string(),
                record.address.clone(),
                left.map_or("never".to_owned(), |left| left.as_millis().to_string()),
                since(record),
            ),
            None => ("vacant".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()),
        };
        let (seat, epoch) = (row.seat, row.epoch);
        text += &format!("{seat:<5} {epoch:<11} {owner:<16} {address:<22} {expires:<13} {since}\n");
    }
    text
}
