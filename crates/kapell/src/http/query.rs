//! What stands after the `?`, and names in a path.

use std::collections::BTreeMap;

use hyper::StatusCode;
use kapell_core::percent;
use serde_json::json;

use super::answer::Problem;

/// The names and values of a query or of a form, as they were sent.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('&')
        .filter(|each| !each.is_empty())
        .map(|each| each.split_once('=').unwrap_or((each, "")))
}

pub(super) fn decoded(text: &str) -> Option<String> {
    percent::decode(text).ok()
}

/// The parameters of a request, all of them known.
#[derive(Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn parse(text: &str, known: &[&str]) -> Result<Self, Box<Problem>> {
        let mut found = BTreeMap::new();
        for (name, value) in pairs(text) {
            let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
                return Err(bad(&format!("`{name}` in the query is not text"), name));
            };
            if !known.contains(&name.as_str()) {
                let text = format!("there is no parameter `{name}` here");
                let details = json!({ "parameter": name, "known": known });
                return Err(Problem::new(StatusCode::BAD_REQUEST, "unknown_parameter", text)
                    .details(details));
            }
            if found.insert(name.clone(), value).is_some() {
                return Err(bad(&format!("`{name}` stands twice in the query"), &name));
            }
        }
        Ok(Self(found))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A switch: absent is no, present without a value is yes.
    pub(super) fn switch(&self, name: &str) -> Result<bool, Box<Problem>> {
        match self.get(name) {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(other) => Err(bad(&format!("`{name}` is true or false, not `{other}`"), name)),
        }
    }

    pub(super) fn number<T: std::str::FromStr>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Box<Problem>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let wrong = || bad(&format!("`{name}` is a whole number, not `{text}`"), name);
        text.parse().map(Some).map_err(|_| wrong())
    }
}

/// A parameter that says nothing.
pub(super) fn bad(text: &str, parameter: &str) -> Box<Problem> {
    let problem = Problem::new(StatusCode::BAD_REQUEST, "bad_parameter", text);
    problem.details(json!({ "parameter": parameter }))
}
