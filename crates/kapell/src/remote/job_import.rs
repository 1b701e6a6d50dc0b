//! `kapell job import`

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use kapell_api::client::Client;
use kapell_core::schedule::Fault;
use kapell_core::schedule::crontab::{self, Columns, CrontabLine};
use serde_json::{Value, json};

use super::apply;
use super::files::read_text;
use super::job_args::JobImport;
use super::yaml;
use crate::{BAD_INPUT, print, say};

/// The longest part of an id that is made of a command.
const LONGEST: usize = 40;

/// Makes jobs of a crontab, and applies them.
pub(crate) async fn apply(args: &JobImport, client: &Client) -> anyhow::Result<u8> {
    let Some(documents) = read(args)? else { return Ok(BAD_INPUT) };
    let shown = args.crontab.display().to_string();
    let Some(documents) = read_text(&shown, &text_of(&documents)) else { return Ok(BAD_INPUT) };
    apply::have(&documents, false, client).await
}

/// Makes jobs of a crontab, and prints them. Needs no host.
pub(crate) fn show(args: &JobImport) -> anyhow::Result<u8> {
    let Some(documents) = read(args)? else { return Ok(BAD_INPUT) };
    print(&text_of(&documents));
    Ok(0)
}

fn text_of(documents: &[Value]) -> String {
    documents.iter().map(yaml::emit).collect::<Vec<_>>().join("---\n")
}

fn read(args: &JobImport) -> anyhow::Result<Option<Vec<Value>>> {
    let shown = args.crontab.display().to_string();
    let text = text(&args.crontab).with_context(|| format!("cannot read `{shown}`"))?;
    let columns = if args.system { Columns::System } else { Columns::User };
    // A crontab goes by the clock of its machine.
    let here = jiff::tz::TimeZone::system();
    let timezone = args.timezone.as_deref().or_else(|| here.iana_name()).unwrap_or("UTC");
    match crontab::read(&text, columns) {
        Ok(lines) => Ok(Some(documents(&lines, &args.prefix, timezone))),
        Err(faults) => {
            say(&complaints(&shown, &faults));
            Ok(None)
        }
    }
}

fn text(path: &Path) -> std::io::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        return std::io::stdin().lock().read_to_string(&mut text).map(|_| text);
    }
    std::fs::read_to_string(path)
}

pub(crate) fn complaints(path: &str, faults: &[Fault]) -> String {
    let one = |fault: &Fault| format!("error: {path}: {fault}\n{}\n", fault.carets());
    faults.iter().map(one).collect()
}

/// A job for each line, with an id that tells what it runs, as a file would say it.
pub(crate) fn documents(lines: &[CrontabLine], prefix: &str, timezone: &str) -> Vec<Value> {
    let mut taken = BTreeSet::new();
    let mut documents = Vec::new();
    for line in lines {
        let base = format!("{prefix}-{}", slug(&line.command));
        let mut id = base.clone();
        let mut number = 2;
        while !taken.insert(id.clone()) {
            id = format!("{base}-{number}");
            number += 1;
        }
        documents.push(document(&id, line, timezone));
    }
    documents
}

fn document(job_id: &str, line: &CrontabLine, timezone: &str) -> Value {
    let mut command = json!({ "command": line.command });
    if !line.env.is_empty() {
        let env = line.env.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        command["env"] = env.collect();
    }
    if let Some(user) = &line.user {
        command["user"] = user.as_str().into();
    }
    json!({
        "kind": "job",
        "job_id": job_id,
        "schedule": [line.schedule],
        "timezone": line.timezone.as_deref().unwrap_or(timezone),
        "command": command,
    })
}

/// Of `/usr/bin/backup --all > /dev/null`, `backup`.
fn slug(command: &str) -> String {
    let word = command.split_whitespace().next().unwrap_or_default();
    let word = word.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let slug: String = word.chars().map(plain).take(LONGEST).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "job".to_owned() } else { slug.to_owned() }
}
