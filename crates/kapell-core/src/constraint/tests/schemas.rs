//! The schemas say the same as the reader: checked by a validator that knows only what schemas use.

use serde_json::Value as Json;

use super::samples;
use crate::constraint::schemas;

/// The formats, written down apart from the reader.
fn has_format(name: &str, value: &Json) -> bool {
    let text = value.as_str().unwrap_or_default();
    let word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    match name {
        "http-url" => {
            let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('@'))
        }
        "name" => word(text),
        "figure" => word(text) && !text.starts_with(|c: char| c.is_ascii_digit()),
        "length" => text.starts_with(|c: char| c.is_ascii_digit()),
        "time-of-day" => text.len() == 5 && text.as_bytes()[2] == b':',
        "weekday" => text.len() >= 3,
        "time-zone" => text == "Europe/Berlin",
        "template" => text.matches("{{").count() == text.matches("}}").count(),
        "templates" => !value.to_string().contains("run.di"),
        "header" => !text.contains(' ') && !text.to_ascii_lowercase().starts_with("webhook-"),
        "header-value" => !text.contains('\n'),
        other => panic!("no format {other}"),
    }
}

fn is_type(name: &str, value: &Json) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("no type {other}"),
    }
}

fn seconds(value: &Json) -> f64 {
    serde_json::from_value::<crate::job::Length>(value.clone())
        .map_or(-1.0, |it| it.get().as_secs_f64())
}

fn fits(schema: &Json, value: &Json) -> bool {
    let all = |list: &Json, test: &dyn Fn(&Json) -> bool| {
        list.as_array().unwrap().iter().filter(|it| test(it)).count()
    };
    schema.as_object().unwrap().iter().all(|(key, rule)| match key.as_str() {
        "title" | "description" => true,
        "type" => is_type(rule.as_str().unwrap(), value),
        "format" => has_format(rule.as_str().unwrap(), value),
        "enum" => rule.as_array().unwrap().contains(value),
        "anyOf" => all(rule, &|it| fits(it, value)) >= 1,
        "oneOf" => all(rule, &|it| fits(it, value)) == 1,
        "minimum" => value.as_f64().is_none_or(|it| it >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|it| it <= rule.as_f64().unwrap()),
        "x-least-seconds" => seconds(value) >= rule.as_f64().unwrap(),
        "x-most-seconds" => seconds(value) <= rule.as_f64().unwrap(),
        "minLength" => value.as_str().is_none_or(|it| it.len() as u64 >= rule.as_u64().unwrap()),
        "maxLength" => value.as_str().is_none_or(|it| it.len() as u64 <= rule.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|it| it.len() as u64 >= rule.as_u64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|it| it.len() as u64 <= rule.as_u64().unwrap()),
        "maxProperties" => {
            value.as_object().is_none_or(|it| it.len() as u64 <= rule.as_u64().unwrap())
        }
        "items" => value.as_array().is_none_or(|it| it.iter().all(|it| fits(rule, it))),
        "required" => value.as_object().is_none_or(|it| {
            rule.as_array().unwrap().iter().all(|key| it.contains_key(key.as_str().unwrap()))
        }),
        "propertyNames" => value
            .as_object()
            .is_none_or(|it| it.keys().all(|key| fits(rule, &Json::String(key.clone())))),
        "properties" => value.as_object().is_none_or(|it| {
            it.iter().all(|(key, value)| rule.get(key).is_none_or(|rule| fits(rule, value)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|it| {
            let known =
                |key: &str| schema.get("properties").is_some_and(|all| all.get(key).is_some());
            it.iter()
                .filter(|(key, _)| !known(key))
                .all(|(_, value)| rule != false && fits(rule, value))
        }),
        other => panic!("no keyword {other}"),
    })
}

#[test]
fn good_and_bad_samples_are_the_same_for_schema_and_reader() {
    let schemas = schemas();
    let mut unseen: Vec<&str> = schemas.keys().map(String::as_str).collect();
    for (name, config) in samples::good() {
        assert!(fits(&schemas[name], &config), "{name} must take {config}");
        unseen.retain(|it| *it != name);
    }
    for (name, config, message) in samples::bad() {
        assert!(!fits(&schemas[name], &config), "{name} must not take {config}: {message}");
    }
    assert_eq!(unseen, [""; 0], "all have a sample");
    assert_eq!(schemas.len(), 11 + 14);
}
