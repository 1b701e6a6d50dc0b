//! What a configuration may hold: one table from which the reader and the schema are made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::fault::Faults;
use crate::board::{JobId, SecretName};
use crate::job::Length;
use crate::source::closest;

/// The longest text of a configuration.
pub(super) const LONGEST: usize = 4096;
/// The most entries of a list or a mapping.
pub(super) const MOST: usize = 32;

/// What a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text in which `{{ run.id }}` and the like are filled in.
    Template,
    /// Any JSON; its texts are filled in.
    Body,
    /// A URL of HTTP without user and password.
    Url,
    /// A length of time, at least and at most so many seconds.
    Length {
        least: u64,
        most: u64,
    },
    Flag,
    Count {
        least: u64,
        most: u64,
    },
    Number,
    Choice(&'static [&'static str]),
    Job,
    /// The name of a secret of the job's domain.
    Secret,
    /// The name of a figure.
    Figure,
    Zone,
    /// `08:30`
    TimeOfDay,
    /// `mon`, `tuesday`; one or a list.
    Weekdays,
    /// Codes of HTTP; one or a list.
    Statuses,
    /// A list of texts.
    Texts,
    /// Names of headers, each with a text or `{secret: NAME}`.
    Headers,
    /// Names, each with a template.
    Parameters,
}

/// A field of a configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) about: &'static str,
}

/// What a constraint or an action is called and takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) fields: &'static [Field],
    /// The field that is meant where there is a plain value instead of a mapping.
    pub(super) main: Option<&'static str>,
    /// Exactly one of these must be there.
    pub(super) one_of: &'static [&'static str],
}

/// A value that was read and fits its field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Json(Json),
    Length(Length),
    Flag(bool),
    Count(u64),
    Number(f64),
    Minute(u16),
    Weekdays(Vec<u8>),
    Statuses(Vec<u16>),
    Texts(Vec<String>),
    Headers(Vec<(String, Header)>),
    Parameters(BTreeMap<String, String>),
}

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Header {
    Text(String),
    Secret(SecretName),
}

/// The fields of a configuration that are there and fit.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Values(pub(super) BTreeMap<&'static str, Value>);

impl Values {
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    pub(super) fn length(&self, name: &str) -> Option<Length> {
        match self.0.get(name) {
            Some(Value::Length(length)) => Some(*length),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        match self.0.get(name) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn count(&self, name: &str) -> Option<u32> {
        match self.0.get(name) {
            Some(Value::Count(count)) => u32::try_from(*count).ok(),
            _ => None,
        }
    }

    pub(super) fn job(&self, name: &str) -> Option<JobId> {
        self.text(name).map(|name| JobId::from(name.as_str()))
    }

    pub(super) fn secret(&self, name: &str) -> Option<SecretName> {
        self.text(name).map(|name| SecretName::from(name.as_str()))
    }
}

/// The one spelling of a key that counts: `onViolation` is `on_violation`.
pub(super) fn snake(key: &str) -> String {
    let mut text = String::with_capacity(key.len() + 4);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// `did you mean …`, if something is near enough.
pub(super) fn meant<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    closest(word, names).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// A mapping with its keys in the one spelling; what is there in two spellings is told.
pub(super) fn keyed<'a>(
    map: &'a Map<String, Json>,
    path: &str,
    faults: &mut Faults,
) -> BTreeMap<String, (&'a str, &'a Json)> {
    let mut all: BTreeMap<String, (&str, &Json)> = BTreeMap::new();
    for (key, value) in map {
        if let Some((first, _)) = all.insert(snake(key), (key, value)) {
            faults.add(path, format!("`{first}` and `{key}` are the same key: write one of them"));
        }
    }
    all
}

fn take(field: &'static Field, json: &Json, path: &str, values: &mut Values, faults: &mut Faults) {
    if json.is_null() && !field.required {
        return;
    }
    if let Some(value) = field.kind.read(json, path, faults) {
        values.0.insert(field.name, value);
    }
}

impl Shape {
    pub(super) fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == key)
    }

    /// Reads a mapping of fields, or the plain value that stands for one.
    pub(super) fn read(&self, json: &Json, path: &str, faults: &mut Faults) -> Values {
        let mut values = Values::default();
        match json {
            Json::Object(map) => {
                for (key, (written, value)) in keyed(map, path, faults) {
                    let Some(field) = self.field(&key) else {
                        faults.add(&format!("{path}.{written}"), self.unknown(written));
                        continue;
                    };
                    take(field, value, &format!("{path}.{written}"), &mut values, faults);
                }
            }
            Json::Null => {}
            plain @ (Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_)) => {
                match self.main.and_then(|main| self.field(main)) {
                    Some(field) => take(field, plain, path, &mut values, faults),
                    None => faults.add(path, format!("must be a mapping{}", self.takes())),
                }
            }
        }
        self.complete(&values, json, path, faults);
        values
    }

    fn complete(&self, values: &Values, json: &Json, path: &str, faults: &mut Faults) {
        let given = |name: &str| match json {
            Json::Object(map) => {
                map.iter().any(|(key, value)| snake(key) == name && !value.is_null())
            }
            Json::Null => false,
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                values.0.contains_key(name) || self.main == Some(name)
            }
        };
        for field in self.fields.iter().filter(|field| field.required && !given(field.name)) {
            faults.add(&format!("{path}.{}", field.name), format!("is missing: {}", field.about));
        }
        let there = self.one_of.iter().filter(|name| given(name)).count();
        if !self.one_of.is_empty() && there != 1 {
            let names: Vec<String> = self.one_of.iter().map(|name| format!("`{name}`")).collect();
            faults.add(path, format!("must have exactly one of {}", names.join(" and ")));
        }
    }

    pub(super) fn unknown(&self, written: &str) -> String {
        let meant = meant(written, self.fields.iter().map(|field| field.name));
        format!(
            "`{}` has no such field{}",
            self.name,
            if meant.is_empty() { self.takes() } else { meant }
        )
    }

    fn takes(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
        if names.is_empty() {
            "; it takes none".to_owned()
        } else {
            format!("; it takes {}", names.join(", "))
        }
    }
}
