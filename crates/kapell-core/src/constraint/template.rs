//! Texts with places to be filled in: `{{ run.id }}`, `{{ run.failure | default("none") }}`.
//!
//! Nothing but fields, so that every name is checked when a job is stored and no text can make a host work.

use serde_json::Value as Json;

use super::fields::meant;

/// Every field, besides `run.parameters.NAME`.
pub(super) const FIELDS: &[&str] = &[
    "now",
    "phase",
    "job.id",
    "job.name",
    "job.domain",
    "job.tags",
    "run.id",
    "run.attempt",
    "run.scheduled_at",
    "run.due_at",
    "run.trigger",
    "run.started_at",
    "run.ended_at",
    "run.duration_seconds",
    "run.exit_code",
    "run.failure",
    "constraint.name",
    "constraint.met",
    "constraint.message",
];
const PARAMETERS: &str = "run.parameters.";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field { path: String, default: Option<String> },
}

/// A text that was read and whose fields all exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

impl Template {
    /// Reads a text, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (inside, after) = close(behind).ok_or("`{{` has no `}}`")?;
            parts.push(part(inside)?);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// Fills it in. A field that has no value is its default, or nothing.
    pub fn fill(&self, scope: &Json) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Field { path, default } => match look_up(scope, path) {
                    Json::Null => text.push_str(default.as_deref().unwrap_or_default()),
                    Json::String(value) => text.push_str(value),
                    value
                    @ (Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
                        text.push_str(&value.to_string());
                    }
                },
            }
        }
        text
    }

    /// Fills in all texts of a value. One that is nothing but a field becomes the value of it, a number as a number.
    pub fn fill_all(json: &Json, scope: &Json) -> Json {
        match json {
            Json::Null | Json::Bool(_) | Json::Number(_) => json.clone(),
            Json::String(text) => match Self::parse(text) {
                Ok(template) => template.value(scope),
                Err(_) => json.clone(),
            },
            Json::Array(entries) => {
                entries.iter().map(|entry| Self::fill_all(entry, scope)).collect()
            }
            Json::Object(map) => {
                map.iter().map(|(key, value)| (key.clone(), Self::fill_all(value, scope))).collect()
            }
        }
    }

    fn value(&self, scope: &Json) -> Json {
        match self.0.as_slice() {
            [Part::Field { path, default: None }] => look_up(scope, path).clone(),
            _ => Json::String(self.fill(scope)),
        }
    }
}

/// What stands before the closing braces, which a text in quotes may hold, and what behind them.
fn close(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '}' if !quoted && text[at..].starts_with("}}") => {
                return Some((&text[..at], &text[at + 2..]));
            }
            _ => {}
        }
    }
    None
}

fn part(inside: &str) -> Result<Part, String> {
    let inside = inside.trim();
    if let Some(text) = quoted(inside) {
        return Ok(Part::Text(text.to_owned()));
    }
    let (path, filter) = match inside.split_once('|') {
        Some((path, filter)) => (path.trim(), Some(filter.trim())),
        None => (inside, None),
    };
    let named = path
        .strip_prefix(PARAMETERS)
        .is_some_and(|name| !name.is_empty() && !name.contains(char::is_whitespace));
    if !named && !FIELDS.contains(&path) {
        let meant = meant(path, FIELDS.iter().copied());
        let all = if meant.is_empty() {
            format!("; there are {}, {PARAMETERS}NAME", FIELDS.join(", "))
        } else {
            meant
        };
        return Err(format!("`{path}` is no field{all}"));
    }
    let Some(filter) = filter else {
        return Ok(Part::Field { path: path.to_owned(), default: None });
    };
    let argument = filter
        .strip_prefix("default(")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|it| quoted(it.trim()));
    let Some(default) = argument else {
        return Err(format!("`{filter}` is no filter; there is default(\"TEXT\")"));
    };
    Ok(Part::Field { path: path.to_owned(), default: Some(default.to_owned()) })
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"').filter(|inside| !inside.contains('"'))
}

fn look_up<'a>(scope: &'a Json, path: &str) -> &'a Json {
    let mut found = scope;
    if let Some(name) = path.strip_prefix(PARAMETERS) {
        return &scope["run"]["parameters"][name];
    }
    for part in path.split('.') {
        found = &found[part];
    }
    found
}
