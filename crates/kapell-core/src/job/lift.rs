//! Fields that may be said in several ways: in two spellings, and as constraints of the same names.
//!
//! The fields count. A constraint of such a name stays where it is, and says the same.

use std::fmt;

use serde_json::{Map, Value as Json};

use super::definition::{CatchUpPolicy, JobDefinition, Overlap};
use super::length::Length;
use super::validate::MOST_RUNS;
use crate::board::validate::quoted;

/// What a constraint says of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Runs(u32),
    Policy(CatchUpPolicy),
    Window(Length),
    RunTime(Length),
}

/// The constraints that are fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    MaxConcurrentRuns,
    CatchUp,
    CatchUpWindow,
    MaxAllowedRunTime,
}

impl Named {
    fn of(name: &str) -> Option<Self> {
        match name {
            "maxConcurrentRuns" | "max_concurrent_runs" => Some(Self::MaxConcurrentRuns),
            "catchUp" | "catch_up" => Some(Self::CatchUp),
            "catchUpWindow" | "catch_up_window" => Some(Self::CatchUpWindow),
            "maxAllowedRunTime" | "max_allowed_run_time" => Some(Self::MaxAllowedRunTime),
            _ => None,
        }
    }

    /// The key of its value in `config`.
    const fn key(self) -> &'static str {
        match self {
            Self::MaxConcurrentRuns | Self::MaxAllowedRunTime => "limit",
            Self::CatchUp => "policy",
            Self::CatchUpWindow => "window",
        }
    }

    /// Why it takes no actions, if it takes none.
    const fn no_actions(self) -> Option<&'static str> {
        match self {
            Self::MaxConcurrentRuns => {
                Some("takes no actions: `overlap` says what becomes of a run above the limit")
            }
            Self::CatchUp | Self::CatchUpWindow => {
                Some("takes no actions: it says which missed moments are made up for")
            }
            Self::MaxAllowedRunTime => None,
        }
    }
}

impl Said {
    const fn field(self) -> &'static str {
        match self {
            Self::Runs(_) => "max_concurrent_runs",
            Self::Policy(_) => "catch_up.policy",
            Self::Window(_) => "catch_up.window",
            Self::RunTime(_) => "max_allowed_run_time",
        }
    }

    /// What the definition has, if that is something else.
    fn other_than(self, job: &JobDefinition) -> Option<String> {
        let in_force = match self {
            Self::Runs(_) => Self::Runs(job.max_concurrent_runs),
            Self::Policy(_) => Self::Policy(job.catch_up.policy),
            Self::Window(_) => Self::Window(job.catch_up.window),
            Self::RunTime(_) => match job.max_allowed_run_time {
                Some(limit) => Self::RunTime(limit),
                None => return Some("nothing".to_owned()),
            },
        };
        (in_force != self).then(|| in_force.to_string())
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs(count) => count.fmt(f),
            Self::Policy(policy) => f.write_str(policy.name()),
            Self::Window(length) | Self::RunTime(length) => length.fmt(f),
        }
    }
}

/// Why a limit cannot stand beside `overlap: allow`.
pub(crate) fn no_limit(runs: impl fmt::Display) -> String {
    format!("`allow` is no limit, but `max_concurrent_runs` says {runs}; leave one of them out")
}

/// Makes one field of all that says the same, in a definition as it is written with every key that was given.
pub(crate) fn lift(job: &mut Map<String, Json>) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, other) in [
        ("max_concurrent_runs", "maxConcurrentRuns"),
        ("max_allowed_run_time", "maxAllowedRunTime"),
    ] {
        if let Some(value) = job.remove(other) {
            faults.extend(claim(job, key, key, value, other));
        }
    }
    faults.extend(catch_up(job));
    let constraints = job.get("constraints").and_then(Json::as_array).cloned();
    for entry in constraints.iter().flatten() {
        // What is wrong with it is told when the definition is checked.
        for said in said(entry).unwrap_or_default() {
            assume(job, said);
        }
    }
    if job.get("overlap").and_then(Json::as_str) == Some("allow")
        && let Some(runs) = job.get("max_concurrent_runs")
    {
        faults.push(format!("overlap: {}", no_limit(runs)));
        job.remove("overlap");
    }
    faults
}

/// Everything that constraints say otherwise than the fields of a definition.
pub(crate) fn left(job: &JobDefinition) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, entry) in job.constraints.iter().enumerate() {
        let field = format!("constraints[{at}]");
        match said(entry) {
            Err(text) => faults.push(format!("{field}{text}")),
            Ok(all) => faults.extend(all.into_iter().filter_map(|said| {
                if let Said::Runs(runs) = said
                    && job.overlap == Overlap::Allow
                {
                    return Some(format!("{field}: {}", no_limit(runs)));
                }
                let (key, other) = (said.field(), said.other_than(job)?);
                let end = "leave one of them out";
                Some(format!("{field}: says {said}, but `{key}` says {other}; {end}"))
            })),
        }
    }
    faults
}

/// Sets what nobody has set, or tells of a contradiction.
fn claim(
    of: &mut Map<String, Json>,
    key: &str,
    shown: &str,
    value: Json,
    by: &str,
) -> Option<String> {
    match of.get(key) {
        Some(stands) if *stands != value => {
            let (value, stands) = (bare(&value), bare(stands));
            Some(format!("{by}: says {value}, but `{shown}` says {stands}; leave one of them out"))
        }
        Some(_) => None,
        None => {
            of.insert(key.to_owned(), value);
            None
        }
    }
}

fn catch_up(job: &mut Map<String, Json>) -> Vec<String> {
    let mut merged = Map::new();
    let mut faults = Vec::new();
    for by in ["catch_up", "catchUp"] {
        let Some(Json::Object(parts)) = job.remove(by) else { continue };
        for (part, value) in parts {
            let shown = format!("catch_up.{part}");
            faults.extend(claim(&mut merged, &part, &shown, value, by));
        }
    }
    for by in ["catch_up_window", "catchUpWindow"] {
        if let Some(window) = job.remove(by) {
            faults.extend(claim(&mut merged, "window", "catch_up.window", window, by));
        }
    }
    if !merged.is_empty() {
        job.insert("catch_up".to_owned(), Json::Object(merged));
    }
    faults
}

/// Sets a field that is not there.
fn assume(job: &mut Map<String, Json>, said: Said) {
    let text = Json::from(said.to_string());
    let (key, part, value) = match said {
        Said::Runs(count) => ("max_concurrent_runs", None, count.into()),
        Said::Policy(_) => ("catch_up", Some("policy"), text),
        Said::Window(_) => ("catch_up", Some("window"), text),
        Said::RunTime(_) => ("max_allowed_run_time", None, text),
    };
    let Some(part) = part else {
        job.entry(key).or_insert(value);
        return;
    };
    let parts = job.entry(key).or_insert_with(|| Json::Object(Map::new()));
    if let Json::Object(parts) = parts {
        parts.entry(part).or_insert(value);
    }
}

/// What a constraint says of fields: nothing if it is another one. A fault begins with where in the constraint it is.
fn said(entry: &Json) -> Result<Vec<Said>, String> {
    let Some((named, name, body)) = named(entry) else { return Ok(Vec::new()) };
    let at = |text: &str| format!(".{name}: {text}");
    let value = match body.as_object() {
        Some(parts) => {
            let is_more = |key: &String| !matches!(key.as_str(), "name" | "config");
            if let Some(text) = named.no_actions().filter(|_| parts.keys().any(is_more)) {
                return Err(at(text));
            }
            parts.get("config").ok_or_else(|| at("must have a `config`"))?
        }
        None if body.is_null() => {
            return match named {
                Named::MaxConcurrentRuns | Named::CatchUp | Named::CatchUpWindow => {
                    Err(at("must have a `config`"))
                }
                // That is told where constraints are read.
                Named::MaxAllowedRunTime => Ok(Vec::new()),
            };
        }
        None => body,
    };
    let one = || match value.as_object() {
        Some(config) => {
            let (key, only) = (named.key(), config.len() == 1);
            let text = format!("`config` must be the value itself, or `{{{key}: …}}`");
            config.get(key).filter(|_| only).ok_or(text)
        }
        None => Ok(value),
    };
    match named {
        Named::MaxConcurrentRuns => one().and_then(runs).map(|it| vec![Said::Runs(it)]),
        Named::CatchUp => match value.as_object() {
            Some(config) => catch_up_said(config),
            None => policy(value).map(|it| vec![Said::Policy(it)]),
        },
        Named::CatchUpWindow => one().and_then(length).map(|it| vec![Said::Window(it)]),
        Named::MaxAllowedRunTime => one().and_then(length).map(|it| vec![Said::RunTime(it)]),
    }
    .map_err(|text| at(&text))
}

/// `{name: {…}}`, `{name: name, config: …}` or the name alone.
fn named(entry: &Json) -> Option<(Named, &str, &Json)> {
    if let Some(name) = entry.as_str() {
        return Some((Named::of(name)?, name, &Json::Null));
    }
    let parts = entry.as_object()?;
    if let Some(name) = parts.get("name").and_then(Json::as_str) {
        return Some((Named::of(name)?, name, entry));
    }
    let mut parts = parts.iter();
    let (name, body) = parts.next().filter(|_| parts.next().is_none())?;
    Some((Named::of(name)?, name, body))
}

fn catch_up_said(config: &Map<String, Json>) -> Result<Vec<Said>, String> {
    let said = config.iter().map(|(key, value)| match key.as_str() {
        "policy" => policy(value).map(Said::Policy),
        "window" => length(value).map(Said::Window),
        _ => Err("`config` must be `{policy: …, window: …}`".to_owned()),
    });
    said.collect()
}

fn runs(value: &Json) -> Result<u32, String> {
    let number = match value {
        Json::Number(number) => number.as_u64(),
        Json::String(text) => text.trim().parse().ok(),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    };
    let runs =
        number.and_then(|it| u32::try_from(it).ok()).filter(|it| (1..=MOST_RUNS).contains(it));
    runs.ok_or_else(|| {
        format!("must be a whole number from 1 to {MOST_RUNS}, not {}", shown(value))
    })
}

fn policy(value: &Json) -> Result<CatchUpPolicy, String> {
    let known = CatchUpPolicy::ALL.into_iter().find(|it| value.as_str() == Some(it.name()));
    known.ok_or_else(|| format!("must be one of none, last and all, not {}", shown(value)))
}

fn length(value: &Json) -> Result<Length, String> {
    let fault = || format!("must be a duration such as `90s` or `1h30m`, not {}", shown(value));
    serde_json::from_value(value.clone()).map_err(|_| fault())
}

fn shown(value: &Json) -> String {
    quoted(&bare(value))
}

/// A value as people write it.
fn bare(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
