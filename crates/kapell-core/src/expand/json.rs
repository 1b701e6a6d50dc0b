//! Paths into JSON: `version`, `items.0.name`, `items[0].name`.
//!
//! What is found comes out as it was written, which matters for numbers: `1.10` is a version, and
//! a long id does not fit a float. So the text is taken apart, not read into values.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Error;

/// Looks `path` up in the JSON text that `name` stands for. Text comes without its quotes.
pub fn look_up(name: &str, text: &str, path: &str) -> Result<String, Error> {
    let not_json = |error: serde_json::Error| Error::NotJson {
        name: name.to_owned(),
        path: path.to_owned(),
        problem: error.to_string(),
    };
    let mut value: &RawValue = serde_json::from_str(text).map_err(not_json)?;
    for key in path.split(['.', '[', ']']).filter(|key| !key.is_empty()) {
        value = take(value, key).map_err(|problem| Error::NoSuchPath {
            name: name.to_owned(),
            path: path.to_owned(),
            problem,
        })?;
    }
    match value.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(value.get()).map_err(not_json),
        Some(_) | None => Ok(compact(value.get())),
    }
}

fn take<'t>(value: &'t RawValue, key: &str) -> Result<&'t RawValue, String> {
    let text = value.get();
    let unreadable = |error: serde_json::Error| error.to_string();
    match text.as_bytes().first() {
        Some(b'{') => {
            let Entries(entries) = serde_json::from_str(text).map_err(unreadable)?;
            // Of two with the same key the later counts, as in most readers.
            let found = entries.iter().rev().find(|(name, _)| name == key);
            found.map(|&(_, value)| value).ok_or_else(|| {
                let keys: Vec<_> = entries.iter().take(8).map(|(name, _)| name.as_str()).collect();
                let there = if keys.is_empty() {
                    "it is empty".to_owned()
                } else {
                    format!("there are {}", keys.join(", "))
                };
                format!("there is no `{key}`; {there}")
            })
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(unreadable)?;
            let found = key.parse::<usize>().ok().and_then(|at| items.get(at).copied());
            found.ok_or_else(|| format!("there is no item `{key}` in a list of {}", items.len()))
        }
        Some(_) | None => Err(format!("`{text}` has no `{key}` in it")),
    }
}

/// Leaves out the space between the parts.
fn compact(text: &str) -> String {
    let (mut in_text, mut escaped) = (false, false);
    text.chars()
        .filter(|&c| {
            let keep = in_text || !c.is_ascii_whitespace();
            if c == '"' && !escaped {
                in_text = !in_text;
            }
            escaped = in_text && c == '\\' && !escaped;
            keep
        })
        .collect()
}

/// The entries of an object in their order, their values as text.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#" {"version": 1.10, "id": 12345678901234567890123, "e": [1E5, -0],
        "t": "a \"b\" \u00e4 \\", "o": {"k  k": "x  \" y", "n": 2.50}, "v": true, "v": null} "#;

    fn at(path: &str) -> String {
        look_up("x", TEXT, path).unwrap()
    }

    #[test]
    fn numbers_come_out_as_written() {
        assert_eq!([at("version"), at("id")], ["1.10", "12345678901234567890123"]);
        assert_eq!([at("e.0"), at("e[1]"), at("e")], ["1E5", "-0", "[1E5,-0]"]);
    }

    #[test]
    fn text_is_read_and_the_rest_is_packed() {
        assert_eq!(at("t"), "a \"b\" ä \\");
        assert_eq!(at("o"), r#"{"k  k":"x  \" y","n":2.50}"#);
        assert_eq!(at("v"), "null");
    }

    #[test]
    fn what_is_not_there_is_told() {
        let told = |path| look_up("x", TEXT, path).unwrap_err().to_string();
        assert_eq!(told("e.2"), "`${x.e.2}`: there is no item `2` in a list of 2");
        assert_eq!(told("version.a"), "`${x.version.a}`: `1.10` has no `a` in it");
        assert!(look_up("x", "{\"a\": 1} b", "a").unwrap_err().to_string().contains("not JSON"));
        assert!(look_up("x", "{\"a\": 01}", "a").unwrap_err().to_string().contains("not JSON"));
    }
}
