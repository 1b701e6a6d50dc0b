mod combining;
mod delivery;
mod judging;
mod page;
mod reading;
mod samples;
mod schemas;
mod templates;

use serde_json::Value as Json;

use super::{Constraints, faults, read};
use crate::job::JobDefinition;

fn job(constraints: Json, actions: Json) -> JobDefinition {
    let all = [("job_id", "report".into()), ("constraints", constraints), ("actions", actions)];
    serde_json::from_value(map(all)).unwrap()
}

fn map<const N: usize>(entries: [(&str, Json); N]) -> Json {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn good(constraints: Json) -> Constraints {
    read(&job(constraints, Json::Null)).unwrap()
}

fn told(constraints: Json, actions: Json) -> Vec<String> {
    faults(&job(constraints, actions)).iter().map(ToString::to_string).collect()
}
