//! `kapell job deliveries`

use kapell_api::client::{Client, Error};
use kapell_api::v1::WebhookDelivery;

use super::run_text::relative;
use super::show::{Text, View, to_value};
use super::table::{Cell, Column, Table, coloured, column};
use super::text::now;
use crate::logger::style::Colour;

const LIST: &[Column] = &[
    column("RUN", 9, 16),
    column("WHAT", 6, 14),
    column("TO", 7, 14),
    column("STATE", 8, 9),
    column("TRIES", 4, 5),
    column("ANSWER", 3, 6),
    column("ASKED", 5, 8),
    column("WHY", 7, 12),
];

pub(crate) async fn all(
    client: &Client,
    job: Option<&str>,
    run: Option<&str>,
) -> Result<View, Error> {
    let listed = client.deliveries(job, run).await?;
    let rows = listed.items.iter().map(row).collect();
    let table = Table { columns: LIST, rows, nothing: "no messages since this host leads" };
    Ok(View { text: Text::Table(table), value: to_value(&listed.items), event_id: listed.event_id })
}

fn row(it: &WebhookDelivery) -> Vec<Cell> {
    let colour = match it.state.as_str() {
        "delivered" => Colour::Green,
        "given_up" => Colour::Red,
        _ => Colour::Yellow,
    };
    vec![
        it.run_id.as_str().into(),
        it.what.as_str().into(),
        it.place.as_str().into(),
        coloured(it.state.replace('_', " "), colour),
        it.attempts.to_string().into(),
        it.status.map_or_else(|| "-".to_owned(), |status| status.to_string()).into(),
        relative(it.asked_at, now()).into(),
        it.why.as_str().into(),
    ]
}
