//! Schemas of constraints and actions, made of the same table that the reader goes by.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::catalog::{ACTIONS, CONSTRAINTS};
use super::fields::{Kind, LONGEST, MOST, Shape};

/// A JSON schema for what each constraint (`constraint/time_window`) and each action (`action/webhook`) takes: the value of
/// `config`, in `snake_case`.
pub fn schemas() -> BTreeMap<String, Json> {
    let constraints =
        CONSTRAINTS.iter().map(|shape| (format!("constraint/{}", shape.name), schema(shape)));
    let actions = ACTIONS.iter().map(|shape| (format!("action/{}", shape.name), schema(shape)));
    constraints.chain(actions).collect()
}

fn schema(shape: &Shape) -> Json {
    let mut properties = Map::new();
    for field in shape.fields {
        let mut about = kind(field.kind);
        about["description"] = field.about.into();
        if !field.required {
            about = json!({ "anyOf": [about, { "type": "null" }] });
        }
        properties.insert(field.name.to_owned(), about);
    }
    let required: Vec<&str> =
        shape.fields.iter().filter(|it| it.required).map(|it| it.name).collect();
    let mut mapping = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if !shape.one_of.is_empty() {
        let there = |name: &&str| json!({ "required": [name], "properties": { *name: { "type": "string" } } });
        mapping["oneOf"] = shape.one_of.iter().map(there).collect();
    }
    let mut forms = vec![mapping];
    if let Some(field) = shape.main.and_then(|main| shape.field(main)) {
        forms.push(kind(field.kind));
    }
    if required.is_empty() && shape.one_of.is_empty() {
        forms.push(json!({ "type": "null" }));
    }
    json!({ "title": shape.name, "description": shape.about, "anyOf": forms })
}

fn kind(kind: Kind) -> Json {
    let text = || json!({ "type": "string", "minLength": 1, "maxLength": LONGEST });
    let format = |name: &str| json!({ "type": "string", "minLength": 1, "maxLength": LONGEST, "format": name });
    let many = |one: Json| json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1, "maxItems": MOST }] });
    match kind {
        Kind::Template => format("template"),
        Kind::Body => json!({ "format": "templates" }),
        Kind::Url => format("http-url"),
        Kind::Length { least, most } => json!({
            "anyOf": [{ "type": "string", "format": "length" }, { "type": "number" }],
            "x-least-seconds": least,
            "x-most-seconds": most,
        }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Number => json!({ "type": "number" }),
        Kind::Choice(choices) => json!({ "enum": choices }),
        Kind::Job | Kind::Secret => format("name"),
        Kind::Figure => format("figure"),
        Kind::Zone => format("time-zone"),
        Kind::TimeOfDay => format("time-of-day"),
        Kind::Weekdays => many(format("weekday")),
        Kind::Statuses => many(json!({ "type": "integer", "minimum": 100, "maximum": 599 })),
        Kind::Texts => many(text()),
        Kind::Headers => json!({
            "type": "object",
            "maxProperties": MOST,
            "propertyNames": { "format": "header" },
            "additionalProperties": {
                "anyOf": [
                    { "type": "string", "maxLength": LONGEST, "format": "header-value" },
                    {
                        "type": "object",
                        "properties": { "secret": format("name") },
                        "required": ["secret"],
                        "additionalProperties": false,
                    },
                ],
            },
        }),
        Kind::Parameters => {
            json!({ "type": "object", "maxProperties": MOST, "additionalProperties": format("template") })
        }
    }
}
