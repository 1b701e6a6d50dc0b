//! Tables of what is answered, and finding a request's place in them.

use std::collections::BTreeMap;

use hyper::{Method, StatusCode};
use serde_json::json;

use super::answer::Problem;
use super::query::decoded;

/// One line of a table.
#[derive(Debug)]
pub(super) struct Route<O: 'static> {
    pub(super) method: Verb,
    /// With names in braces, each for one part of the path.
    pub(super) path: &'static str,
    pub(super) does: O,
    /// What may stand in the query.
    pub(super) query: &'static [&'static str],
    pub(super) about: &'static str,
    /// The schema of what is sent.
    pub(super) takes: Option<&'static str>,
    pub(super) gives: Gives,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    fn is(self, method: &Method) -> bool {
        method.as_str() == self.name() || (self == Self::Get && method == Method::HEAD)
    }
}

/// What an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    One(&'static str),
    /// 201 if it was made, 200 if it was there already.
    Made(&'static str),
    /// 201: each time another one.
    New(&'static str),
    /// A bare array.
    Many(&'static str),
    /// 204
    Nothing,
    Events,
    Log,
    Anything,
}

/// The values of the names in a path.
#[derive(Debug, Default)]
pub(super) struct Params(BTreeMap<&'static str, String>);

impl Params {
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// Finds what answers a request.
pub(super) fn find<O>(
    routes: &'static [Route<O>],
    method: &Method,
    path: &str,
) -> Result<(&'static Route<O>, Params), Box<Problem>> {
    let mut allowed = Vec::new();
    for route in routes {
        let Some(params) = fits(route.path, path) else { continue };
        if route.method.is(method) {
            return Ok((route, params));
        }
        allowed.push(route.method.name());
    }
    if allowed.is_empty() {
        return Err(not_found(path));
    }
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    allowed.sort_unstable();
    Err(not_allowed(&allowed.join(", ")))
}

fn fits(pattern: &'static str, path: &str) -> Option<Params> {
    let mut params = Params::default();
    let mut parts = path.split('/');
    for wanted in pattern.split('/') {
        let part = parts.next()?;
        match wanted.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
            Some(name) => drop(params.0.insert(name, decoded(part).filter(|it| !it.is_empty())?)),
            None if wanted == part => {}
            None => return None,
        }
    }
    parts.next().is_none().then_some(params)
}

pub(super) fn not_found(path: &str) -> Box<Problem> {
    let text = format!("there is nothing at `{path}`");
    let problem = Problem::new(StatusCode::NOT_FOUND, "not_found", text);
    problem.details(json!({ "path": path }))
}

pub(super) fn not_allowed(methods: &str) -> Box<Problem> {
    let text = format!("only {methods} are possible here");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", text).allow(methods)
}
