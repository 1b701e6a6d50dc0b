//! `kapell domain`

use kapell_api::client::{Client, Error};

use super::args::DomainCommand;
use super::show::{self, Text, View, to_value};
use super::table::{Cell, Column, Table, coloured, column};
use super::text::{long, now};
use crate::logger::style::Colour;
use crate::say;

const LIST: &[Column] = &[column("DOMAIN", 9, 12), column("STATE", 8, 5), column("EXPIRES", 5, 9)];

pub(crate) async fn run(command: DomainCommand, client: &Client) -> anyhow::Result<u8> {
    match command {
        DomainCommand::List(list) => show::list(client, list, all).await,
        DomainCommand::Set { name, ttl } => {
            let ttl = ttl.filter(|ttl| !ttl.is_zero());
            client.set_domain(&name, ttl).await?;
            let until = match ttl {
                Some(ttl) => format!("for {}", kapell_core::workflow::show_duration(ttl)),
                None => "for ever".to_owned(),
            };
            say(&format!("{name} is fresh {until}\n"));
            Ok(0)
        }
    }
}

async fn all(client: &Client) -> Result<View, Error> {
    let listed = client.domains().await?;
    let now = now();
    let row = |domain: &kapell_api::v1::DomainView| -> Vec<Cell> {
        let state = if domain.fresh {
            coloured("fresh", Colour::Green)
        } else {
            coloured("stale", Colour::Yellow)
        };
        let expires = match domain.expires_at {
            None => "never".to_owned(),
            Some(at) if at > now => {
                format!("in {}", long(u64::try_from(at.0 - now.0).unwrap_or(0)))
            }
            Some(at) => format!("{} ago", super::text::age(at, now)),
        };
        vec![domain.domain.as_str().into(), state, expires.into()]
    };
    let table = Table {
        columns: LIST,
        rows: listed.items.iter().map(row).collect(),
        nothing: "no domains",
    };
    let value = to_value(&listed.items);
    Ok(View { text: Text::Table(table), value, event_id: listed.event_id })
}
