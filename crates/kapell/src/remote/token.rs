//! `kapell token`

use kapell_api::client::{Client, Error};
use kapell_api::v1::{TokenView, TokenWanted};
use kapell_core::access::Purpose;
use kapell_core::board::{CellId, Domain};

use super::args::{Listing, Output, Shown, TokenCommand, TokenCreate, TokenRole};
use super::show::{self, Text, View, to_value};
use super::table::{Cell, Column, Table, coloured, column};
use super::text::{age, long, now};
use crate::logger::style::Colour;
use crate::{print, say};

const LIST: &[Column] = &[
    column("TOKEN", 9, 16),
    column("ROLE", 8, 8),
    column("DOMAINS", 7, 9),
    column("NAME", 6, 8),
    column("STATE", 8, 7),
    column("AGE", 4, 4),
    column("EXPIRES", 5, 9),
];

pub(crate) async fn run(command: TokenCommand, client: &Client) -> anyhow::Result<u8> {
    match command {
        TokenCommand::Create(args) => create(args, client).await,
        TokenCommand::List(show) => show::list(client, Listing { show, watch: false }, all).await,
        TokenCommand::Revoke { id } => {
            for id in id {
                client.revoke_token(&id).await?;
                say(&format!("{id} is revoked\n"));
            }
            Ok(0)
        }
    }
}

async fn create(args: TokenCreate, client: &Client) -> anyhow::Result<u8> {
    let TokenCreate { role, domain, cell, ttl, name, show: Shown { output } } = args;
    let role = match role {
        TokenRole::Operator => Purpose::Operator,
        TokenRole::Reader => Purpose::Reader,
        TokenRole::CellJoin => Purpose::CellJoin,
    };
    let domains = (!domain.is_empty()).then(|| domain.into_iter().map(Domain::from).collect());
    let cell_id = cell.map(CellId::from);
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let made = client.create_token(&TokenWanted { role, domains, name, ttl_ms, cell_id }).await?;
    match output {
        Output::Text => {
            print(&format!("{}\n", made.token));
            let TokenView { id, role, .. } = &made.about;
            let role = role.name();
            say(&format!(
                "token {id}: {role} of {}, {}\n",
                domains_of(&made.about),
                left(&made.about)
            ));
        }
        Output::Json | Output::Yaml => print(&show::data(&to_value(&made), output)),
    }
    Ok(0)
}

async fn all(client: &Client) -> Result<View, Error> {
    let listed = client.tokens().await?;
    let now = now();
    let row = |token: &TokenView| -> Vec<Cell> {
        let colour = if token.state == "valid" { Colour::Green } else { Colour::Yellow };
        vec![
            token.id.as_str().into(),
            token.role.name().into(),
            domains_of(token).into(),
            if token.name.is_empty() { "-".into() } else { token.name.as_str().into() },
            coloured(token.state.as_str(), colour),
            age(token.created_at, now).into(),
            left(token).into(),
        ]
    };
    let rows = listed.iter().map(row).collect();
    let table = Table { columns: LIST, rows, nothing: "no tokens" };
    Ok(View { text: Text::Table(table), value: to_value(&listed), event_id: None })
}

fn domains_of(token: &TokenView) -> String {
    match &token.domains {
        None => "all domains".to_owned(),
        Some(some) => some.iter().map(Domain::as_str).collect::<Vec<_>>().join(","),
    }
}

fn left(token: &TokenView) -> String {
    let left = token.expires_at.0.saturating_sub(now().0);
    format!("in {}", long(u64::try_from(left).unwrap_or(0)))
}
