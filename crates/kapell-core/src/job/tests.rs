//! Jobs as they are kept.

mod length;
mod params;
mod round;
mod validate;

use serde_json::{Value as Json, json};

use super::JobDefinition;

/// A job with a command, and what else is said of it.
fn job(more: Json) -> JobDefinition {
    let mut all = json!({"job_id": "a", "command": {"command": "x"}});
    let Json::Object(more) = more else { panic!("{more}") };
    all.as_object_mut().unwrap().extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    serde_json::from_value(all).unwrap()
}
