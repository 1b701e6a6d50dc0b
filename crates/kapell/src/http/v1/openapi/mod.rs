//! `GET /v1/openapi.json`: made from the table of routes, with hand-written schemas.

mod constraints;
mod jobs;
mod schemas;

use serde_json::{Map, Value, json};

use super::super::route::{Gives, Route, Verb};
use super::table::{Op, ROUTES};

pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        entry[route.method.name().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Kapell",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs work and keeps it running. Times are milliseconds since 1970.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "kapell_session_PORT",
                    "description": "What a browser gets at /login. Requests that change something need an Origin header as well.",
                },
            },
            "parameters": {},
            "headers": {
                "EventId": {
                    "description": "The id of the last event before this was read: resume /v1/events after it.",
                    "schema": { "type": "string" },
                },
                "RetryAfter": { "description": "Seconds.", "schema": { "type": "integer" } },
            },
            "schemas": schemas::all(),
        },
    })
}

fn operation(route: &Route<Op>) -> Value {
    let mut operation = json!({
        "operationId": id(route.does),
        "summary": route.about,
        "tags": [tag(route.path)],
        "responses": responses(route),
    });
    let parameters: Vec<Value> = in_path(route.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": path_schema(name) }))
        .chain(route.query.iter().map(|name| query_parameter(route.does, name)))
        .chain((route.does == Op::Events).then(|| {
            json!({ "name": "Last-Event-ID", "in": "header", "schema": { "type": "string" },
                    "description": "As `after`, and goes before it." })
        }))
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(schema) = route.takes {
        operation["requestBody"] = json!({
            // A time to live can also stand in the query, and who wants nothing special need not say so.
            "required": !matches!(
                route.does,
                Op::SetDomain | Op::PauseJob | Op::TriggerJob | Op::CancelRun
            ),
            "content": { "application/json": { "schema": reference(schema) } },
        });
    }
    operation
}

/// `createTask` from `Op::CreateTask`.
pub(super) fn id(op: Op) -> String {
    let name = format!("{op:?}");
    name[..1].to_ascii_lowercase() + &name[1..]
}

fn tag(path: &str) -> &str {
    path.split('/').nth(2).unwrap_or_default()
}

fn in_path(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_schema(name: &str) -> Value {
    match name {
        "index" => json!({ "type": "integer", "minimum": 0 }),
        "run_id" => reference("RunId"),
        _ => reference("Id"),
    }
}

fn query_parameter(op: Op, name: &str) -> Value {
    let (schema, about) = match name {
        "state" if op == Op::ListRuns => (reference("RunState"), "Only those in this state."),
        "tag" => (json!({ "type": "string" }), "Only those with this tag."),
        "job" => (reference("Id"), "Only those of this job."),
        "active" => (
            json!({ "type": "boolean" }),
            "Only those that have not ended, or with false only those that have.",
        ),
        "before" => (reference("Timestamp"), "Only those that were due before this."),
        "cancel_runs" => (
            json!({ "type": "boolean", "default": false }),
            "Cancel its runs too, also those that are under way.",
        ),
        "dry_run" => (
            json!({ "type": "boolean", "default": false }),
            "Say what is wrong with it, or nothing (204), and change nothing.",
        ),
        "n" => (
            json!({ "type": "integer", "minimum": 1, "maximum": 1_000, "default": 20 }),
            "So many moments.",
        ),
        "at" => (
            json!({ "type": "string", "examples": ["02:30", "2026-11-16 02:30", "2026-11-16T02:30:00Z"] }),
            "Why it did or did not run then, in the time zone of the job.",
        ),
        "attempt" => (
            json!({ "type": "integer", "minimum": 0 }),
            "Which attempt, counted from 0; without it, the last.",
        ),
        "ttl" => (
            json!({ "type": "string", "examples": ["90s", "2m"] }),
            "How long the domain is fresh; without it, for ever.",
        ),
        "domain" => (reference("Id"), "Only those of this domain."),
        "process_guid" => (reference("Id"), "Only those of this process."),
        "cell_id" => (reference("Id"), "Only those on this cell."),
        "index" => (json!({ "type": "integer", "minimum": 0 }), "Only those of this index."),
        "all" => (
            json!({ "type": "boolean", "default": false }),
            "Instances and their evacuating twins.",
        ),
        "state" => (reference("TaskState"), "Only those in this state."),
        "after" => (
            json!({ "type": "string" }),
            "The id of an event, or the `next` of a page: what is after it comes.",
        ),
        "since" => (reference("Timestamp"), "Nothing older."),
        "limit" => (
            json!({ "type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000 }),
            "So many at most.",
        ),
        "follow" => {
            (json!({ "type": "boolean", "default": false }), "Go on while more may be written.")
        }
        "tail" => (json!({ "type": "integer", "minimum": 0 }), "Begin with so many last lines."),
        "format" => (
            json!({ "type": "string", "enum": ["raw", "frames", "events"], "default": "raw" }),
            "What was written, frames with time and stream, or server-sent events.",
        ),
        _ => (json!({ "type": "string" }), ""),
    };
    json!({ "name": name, "in": "query", "schema": schema, "description": about })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn content(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn responses(route: &Route<Op>) -> Value {
    let mut all = Map::new();
    let one =
        |about: &str, schema: &Value| json!({ "description": about, "content": content(schema) });
    match route.gives {
        Gives::One(schema) => drop(all.insert("200".into(), one("It.", &reference(schema)))),
        Gives::Made(schema) => {
            all.insert("201".into(), one("It was made.", &reference(schema)));
            all.insert("200".into(), one("It was there already, just so.", &reference(schema)));
        }
        Gives::New(schema) => {
            all.insert("201".into(), one("It was made.", &reference(schema)));
            let gone = json!({ "description": "It was made, and is gone again already." });
            all.insert("204".into(), gone);
        }
        Gives::Many(schema) => {
            let list = json!({ "type": "array", "items": reference(schema) });
            let mut answer = one("A list.", &list);
            if route.method == Verb::Get {
                answer["headers"] =
                    json!({ "kapell-event-id": { "$ref": "#/components/headers/EventId" } });
            }
            all.insert("200".into(), answer);
        }
        Gives::Nothing => drop(all.insert("204".into(), json!({ "description": "Done." }))),
        Gives::Events => {
            let about =
                "Server-sent events: `id` is the event's, `event` its name, `data` an EventView.";
            let content = json!({ "text/event-stream": { "schema": reference("EventView") } });
            all.insert("200".into(), json!({ "description": about, "content": content }));
        }
        Gives::Log => {
            let content = json!({
                "application/octet-stream": {},
                "text/event-stream": { "schema": reference("LogEvent") },
            });
            all.insert("200".into(), json!({ "description": "The log.", "content": content }));
        }
        Gives::Anything => drop(all.insert("200".into(), one("It.", &json!({ "type": "object" })))),
    }
    for (status, about) in problems(route) {
        let mut answer = one(about, &reference("Problem"));
        if matches!(status, "429" | "503") {
            answer["headers"] =
                json!({ "Retry-After": { "$ref": "#/components/headers/RetryAfter" } });
        }
        all.insert(status.into(), answer);
    }
    all.into()
}

/// Which refusals there are, with their codes.
fn problems(route: &Route<Op>) -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        (
            "400",
            "`unknown_parameter`, `bad_parameter`, `bad_json` (with line and column), `bad_body`, `bad_host`.",
        ),
        (
            "401",
            "`unauthorized`, `token_expired`, `token_revoked`, `token_used`, `token_unknown`, `certificate_expired`, `certificate_foreign`.",
        ),
        ("403", "`forbidden` (with the reason), `foreign_origin`, `no_origin`, `ask_the_leader`."),
        ("421", "`unknown_host`."),
        (
            "502",
            "`leader_unreachable`, `leader_insecure`, `leader_failed`, `cell_unreachable`, `cell_silent`.",
        ),
        (
            "503",
            "`no_leader`, `not_leading`, `starting`, `forwarded_twice`, `too_many_streams`, `read_only` and `audit_unavailable` (nothing was done), `store_unavailable` (whether it was done is not known yet).",
        ),
        ("429", "`busy`, `too_many_connections`: nothing was done."),
        ("504", "`leader_silent`."),
    ];
    if route.path.contains('{') {
        all.push(("404", "`not_found`."));
    }
    if route.method != Verb::Get {
        all.push((
            "409",
            "`exists` (with the fields that differ), `version`, `state`, or what a cell says.",
        ));
        all.push(("422", "`invalid`, with all problems at once."));
    }
    if route.takes.is_some() {
        all.push(("408", "`body_stalled`."));
        all.push(("413", "`body_too_large`."));
        all.push(("415", "`unsupported_media_type`."));
    }
    all.sort_unstable();
    all
}
