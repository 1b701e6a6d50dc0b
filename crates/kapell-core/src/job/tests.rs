//! Jobs as they are kept.

mod admit;
mod ahead;
mod change;
mod counted;
mod due;
mod explain;
mod history;
mod length;
mod once;
mod params;
mod removal;
mod round;
mod rules;
mod tasks;
mod update;
mod validate;
mod world;

use serde_json::{Value as Json, json};

use super::JobDefinition;

/// A job with a command, and what else is said of it.
fn job(more: Json) -> JobDefinition {
    let mut all = json!({"job_id": "a", "command": {"command": "x"}});
    let Json::Object(more) = more else { panic!("{more}") };
    all.as_object_mut().unwrap().extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    serde_json::from_value(all).unwrap()
}
