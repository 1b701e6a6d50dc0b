//! `kapell audit`

use std::collections::BTreeMap;
use std::time::Duration;

use kapell_api::client::Client;
use kapell_backend::executor::Stream as Fd;
use kapell_core::audit::AuditRecord;
use kapell_core::seams::Timestamp;
use kapell_core::workflow::parse_duration;
use kapell_node::stdio;
use tokio::time::sleep;

use super::args::{Audit, Output};
use super::show::{data, to_value};
use super::text::{now, time};
use crate::logger::Style;
use crate::logger::style::{Colour, clean};

/// Between two looks with -f.
const EVERY: Duration = Duration::from_secs(1);
/// Longer than a change takes: it is noted when it ends, with the time when it began.
const LONGEST: Duration = Duration::from_secs(600);

pub(crate) async fn run(args: &Audit, client: &Client) -> anyhow::Result<u8> {
    let usual = || if args.follow { now() } else { Timestamp(0) };
    let mut since = args.since.unwrap_or_else(usual);
    let (mut after, mut shown) = (None, BTreeMap::new());
    loop {
        let page = client.audit(since, after.as_deref()).await?;
        for record in page.records {
            // A host that leads from now on does not know what was shown.
            if args.follow && shown.insert(record.id.clone(), record.at).is_some() {
                continue;
            }
            let text = show(&record, args.show.output);
            if stdio::write_all(Fd::Stdout, text.as_bytes()).is_err() {
                return Ok(0);
            }
        }
        after = Some(page.next);
        match (page.is_last, args.follow) {
            (true, false) => return Ok(0),
            (true, true) => sleep(EVERY).await,
            (false, _) => {}
        }
        if args.follow {
            since = since.max(now().before(LONGEST));
            shown.retain(|_, at| *at >= since);
        }
    }
}

/// So long ago, or a time.
pub(super) fn since(text: &str) -> Result<Timestamp, String> {
    if let Some(ago) = parse_duration(text) {
        return Ok(now().before(ago));
    }
    let at: Result<jiff::Timestamp, _> = text.parse();
    at.map(|at| Timestamp(at.as_millisecond()))
        .map_err(|_| "write a duration such as 2h, or a time such as 2026-01-31T12:00:00Z".into())
}

fn show(record: &AuditRecord, output: Output) -> String {
    match output {
        Output::Json => format!("{}\n", to_value(record)),
        Output::Yaml => format!("---\n{}", data(&to_value(record), output)),
        Output::Text => line(record),
    }
}

fn line(record: &AuditRecord) -> String {
    let style = Style::of_stdout();
    let at = style.paint(Colour::Dim, &time(record.at));
    let (colour, outcome) = match &record.outcome {
        None => (Colour::Yellow, "unknown".to_owned()),
        Some(outcome) => {
            let colour = if outcome.status < 400 { Colour::Green } else { Colour::Red };
            let why = outcome.code.as_ref().map(|code| format!(" {code}")).unwrap_or_default();
            (colour, format!("{}{why}", outcome.status))
        }
    };
    let outcome = style.paint(colour, &clean(&outcome));
    let who = match record.token.as_ref() {
        _ if record.role.is_empty() => "somebody".to_owned(),
        Some(token) if record.name.is_empty() => format!("{} {token}", record.role),
        Some(token) => format!("{} {} ({token})", record.role, record.name),
        None => format!("{} {}", record.role, record.name),
    };
    let about = record.about.iter().map(|(what, name)| format!(" {what}={name}"));
    let about: String = about.collect();
    let count = record.count.map(|count| format!(" x{count}")).unwrap_or_default();
    let via = record.via.as_ref().map(|via| format!(" via {via}")).unwrap_or_default();
    let rest = format!("{}{about}{count} by {who} from {}{via}", record.op, record.from);
    format!("{at} {outcome} {}\n", clean(&rest))
}
