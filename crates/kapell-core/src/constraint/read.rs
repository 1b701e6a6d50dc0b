//! Reads `constraints` and `actions` of a job.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::Verdict;
use super::action::{ActionSpec, Deed};
use super::catalog::{ACTIONS, CONSTRAINTS, ELSEWHERE};
use super::fault::{Fault, Faults};
use super::fields::{MOST, Shape, keyed, meant, snake};
use super::rule::{LONGEST_TIMEOUT, OnError, Phase, Rule, Spec, timeout};
use crate::board::{JobId, SecretName};
use crate::job::JobDefinition;

/// The constraints of a job, read and found good.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Constraints {
    pub specs: Vec<Spec>,
}

impl Constraints {
    /// Whether there is something to be looked at then.
    pub fn has(&self, phase: Phase) -> bool {
        self.of(phase).next().is_some()
    }

    pub fn of(&self, phase: Phase) -> impl Iterator<Item = &Spec> {
        self.specs.iter().filter(move |spec| spec.rule.phase() == phase)
    }

    fn deeds(&self) -> impl Iterator<Item = &Deed> {
        let lists = self.specs.iter().flat_map(|spec| spec.on_violation.iter().chain(&spec.on_met));
        lists.map(|action| &action.deed)
    }

    /// All secrets that its calls refer to.
    pub fn secrets(&self) -> BTreeSet<SecretName> {
        let mut all = BTreeSet::new();
        for spec in &self.specs {
            match &spec.rule {
                Rule::PreRunHook(target) | Rule::PostRunHook(target) => {
                    all.extend(target.secrets().cloned());
                }
                Rule::HttpHealthCheck(health) => all.extend(health.target.secrets().cloned()),
                Rule::MaxExpectedRunTime { .. }
                | Rule::MaxAllowedRunTime { .. }
                | Rule::RequirePreviousSuccess(_)
                | Rule::TimeWindow(_)
                | Rule::OtherJob(_)
                | Rule::ResourceAvailable(_) => {}
            }
        }
        for deed in self.deeds() {
            if let Deed::Notify(notify) = deed {
                all.extend(notify.target.secrets().cloned());
                all.extend(notify.secret_fields.iter().map(|(_, name)| name.clone()));
            }
        }
        all
    }
}

/// Everything that is wrong with a job's constraints and actions; nothing if they can be used.
pub fn faults(definition: &JobDefinition) -> Vec<Fault> {
    let (read, too_much) = read_all(definition);
    let faults = match read {
        Ok(read) => forgotten(definition, &read),
        Err(faults) => faults,
    };
    faults.into_iter().chain(too_much).collect()
}

/// Whoever asks how the run before ended needs it to be kept, however it ended.
fn forgotten(definition: &JobDefinition, read: &Constraints) -> Vec<Fault> {
    let asks = |spec: &Spec| matches!(spec.rule, Rule::RequirePreviousSuccess(_));
    if !read.specs.iter().any(asks) {
        return Vec::new();
    }
    let history = definition.history;
    let kept = [("history.succeeded", history.succeeded), ("history.failed", history.failed)];
    let message = "must be at least 1 beside `requirePreviousSuccess`: the run before is asked for";
    let none = kept.into_iter().filter(|(_, count)| *count == 0);
    none.map(|(path, _)| Fault { path: path.to_owned(), message: message.to_owned() }).collect()
}

/// The jobs that runs of this one may trigger, for whoever looks for cycles.
pub fn kicks(definition: &JobDefinition) -> Vec<JobId> {
    let read = read(definition).unwrap_or_default();
    let job = |deed: &Deed| match deed {
        Deed::KickOffJob { job, .. } => Some(job.clone()),
        Deed::Retry
        | Deed::Fail
        | Deed::Skip
        | Deed::Proceed
        | Deed::Delay { .. }
        | Deed::Log { .. }
        | Deed::KillAllInstances { .. }
        | Deed::KillLatestInstance { .. }
        | Deed::SkipNextInstance { .. }
        | Deed::Notify(_)
        | Deed::Metric { .. } => None,
    };
    let jobs: BTreeSet<JobId> = read.deeds().filter_map(job).collect();
    jobs.into_iter().collect()
}

/// Reads the constraints of a job, or tells all that is wrong with them. What jobs could say before and are refused for now
/// is read as the most that they may.
pub fn read(definition: &JobDefinition) -> Result<Constraints, Vec<Fault>> {
    read_all(definition).0
}

/// With what a job may not say any more.
fn read_all(definition: &JobDefinition) -> (Result<Constraints, Vec<Fault>>, Vec<Fault>) {
    let (faults, too_much) = (Faults::default(), Faults::default());
    let mut reader = Reader { named: BTreeMap::new(), faults, too_much };
    reader.name_actions(&definition.actions);
    if definition.constraints.len() > MOST {
        reader.faults.add("constraints", format!("must be at most {MOST}"));
    }
    let mut specs = Vec::new();
    for (index, entry) in definition.constraints.iter().take(MOST).enumerate() {
        specs.extend(reader.constraint(entry, &format!("constraints[{index}]")));
    }
    let Reader { faults, too_much, .. } = reader;
    let read = if faults.0.is_empty() { Ok(Constraints { specs }) } else { Err(faults.0) };
    (read, too_much.0)
}

const KEYS: &[&str] = &["config", "on_violation", "on_met", "on_error", "recheck_on_retry"];

struct Reader {
    /// Those of `actions:`; one that could not be read is nothing, and was told already.
    named: BTreeMap<String, Option<ActionSpec>>,
    faults: Faults,
    /// What jobs that are stored may say, and new ones may not.
    too_much: Faults,
}

/// An entry of a list: its name, what is said about it, and where that stands.
struct Entry<'a> {
    name: &'a str,
    value: &'a Json,
    path: String,
    /// `{name: …, config: …}`: the name stands among the keys.
    flat: bool,
}

fn entry<'a>(json: &'a Json, path: &str, what: &str) -> Result<Entry<'a>, String> {
    match json {
        Json::String(name) => {
            Ok(Entry { name, value: &Json::Null, path: path.to_owned(), flat: false })
        }
        Json::Object(map) => match (map.get("name"), map.iter().next()) {
            (Some(Json::String(name)), _) => {
                Ok(Entry { name, value: json, path: path.to_owned(), flat: true })
            }
            (None, Some((name, value))) if map.len() == 1 => {
                Ok(Entry { name, value, path: format!("{path}.{name}"), flat: false })
            }
            _ => Err(format!(
                "must be the name of {what} with what it takes below it, as `- NAME: {{…}}`"
            )),
        },
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) => {
            Err(format!("must be {what}: a name, or a name with what it takes"))
        }
    }
}

fn find(shapes: &'static [Shape], name: &str) -> Option<&'static Shape> {
    let name = snake(name);
    shapes.iter().find(|shape| snake(shape.name) == name)
}

/// `requirePreviousSuccess: true` and the like: `false` leaves it out.
fn switch<'a>(shape: &Shape, config: &'a Json) -> Option<&'a Json> {
    match config {
        Json::Bool(on) if shape.main.is_none() => on.then_some(&Json::Null),
        Json::Null
        | Json::Bool(_)
        | Json::Number(_)
        | Json::String(_)
        | Json::Array(_)
        | Json::Object(_) => Some(config),
    }
}

impl Reader {
    fn name_actions(&mut self, actions: &Json) {
        let map = match actions {
            Json::Null => return,
            Json::Object(map) if map.len() <= MOST => map,
            Json::Bool(_)
            | Json::Number(_)
            | Json::String(_)
            | Json::Array(_)
            | Json::Object(_) => {
                self.faults.add(
                    "actions",
                    format!("must be a mapping of at most {MOST} names, each with an action"),
                );
                return;
            }
        };
        for (name, json) in map {
            let path = format!("actions.{name}");
            if find(ACTIONS, name).is_some() {
                self.faults
                    .add(&path, format!("`{name}` is an action itself: choose another name"));
            }
            let action = self.action(json, &path, false);
            self.named.insert(name.clone(), action);
        }
    }

    fn constraint(&mut self, json: &Json, path: &str) -> Option<Spec> {
        let entry =
            entry(json, path, "a constraint").map_err(|why| self.faults.add(path, why)).ok()?;
        if ELSEWHERE.iter().any(|name| snake(name) == snake(entry.name)) {
            return None;
        }
        let Some(shape) = find(CONSTRAINTS, entry.name) else {
            let names =
                || CONSTRAINTS.iter().map(|shape| shape.name).chain(ELSEWHERE.iter().copied());
            let meant = meant(entry.name, names());
            let all = if meant.is_empty() {
                format!("; there are {}", names().collect::<Vec<_>>().join(", "))
            } else {
                meant
            };
            self.faults.add(path, format!("there is no constraint `{}`{all}", entry.name));
            return None;
        };
        let none = Map::new();
        let (keys, plain) = match entry.value {
            Json::Object(map) => (map, None),
            plain @ (Json::Null
            | Json::Bool(_)
            | Json::Number(_)
            | Json::String(_)
            | Json::Array(_)) => (&none, Some(plain)),
        };
        let keys = keyed(keys, &entry.path, &mut self.faults);
        for (key, (written, _)) in &keys {
            self.check_key(shape, &entry, key, written);
        }
        let get = |key: &str| keys.get(key).copied();
        let (config, at) = match (plain, get("config")) {
            (Some(plain), _) => (plain, entry.path.clone()),
            (None, Some((written, config))) => (config, format!("{}.{written}", entry.path)),
            (None, None) => (&Json::Null, format!("{}.config", entry.path)),
        };
        let config = switch(shape, config)?;
        let before = self.faults.0.len();
        let values = shape.read(config, &at, &mut self.faults);
        if let Some(given) = values.length("timeout").filter(|given| *given > LONGEST_TIMEOUT) {
            let why = format!(
                "must be at most {LONGEST_TIMEOUT}, not {given}: all runs share the places in which they are checked"
            );
            self.too_much.add(&format!("{at}.timeout"), why);
        }
        let rule = if self.faults.0.len() == before { Rule::of(shape.name, &values) } else { None };
        let on_violation = self.list(get("on_violation"), &entry.path);
        let on_met = self.list(get("on_met"), &entry.path);
        let on_error = self.on_error(get("on_error"), &entry.path);
        let recheck_on_retry = self.recheck(get("recheck_on_retry"), &entry.path);
        let rule = rule?;
        let on_violation = on_violation.unwrap_or_else(|| rule.default_actions());
        let on_met = on_met.unwrap_or_default();
        let timeout = rule.patience(timeout(&values));
        let spec = Spec {
            name: shape.name,
            rule,
            on_violation,
            on_met,
            on_error,
            recheck_on_retry,
            timeout,
        };
        self.consistent(&spec, &entry.path);
        Some(spec)
    }

    fn check_key(&mut self, shape: &Shape, entry: &Entry<'_>, key: &str, written: &str) {
        if KEYS.contains(&key) || (entry.flat && key == "name") {
            return;
        }
        let why = if shape.field(key).is_some() {
            "belongs below `config`".to_owned()
        } else {
            let meant = meant(written, KEYS.iter().copied());
            let all =
                if meant.is_empty() { format!("; there are {}", KEYS.join(", ")) } else { meant };
            format!("a constraint has no such key{all}")
        };
        self.faults.add(&format!("{}.{written}", entry.path), why);
    }

    fn on_error(&mut self, given: Option<(&str, &Json)>, path: &str) -> OnError {
        let Some((written, json)) = given else { return OnError::default() };
        match json.as_str() {
            Some("block") => OnError::Block,
            Some("allow") => OnError::Allow,
            Some("retry") => OnError::Retry,
            Some(_) | None => {
                self.faults.add(&format!("{path}.{written}"), "must be one of block, allow, retry");
                OnError::default()
            }
        }
    }

    fn recheck(&mut self, given: Option<(&str, &Json)>, path: &str) -> bool {
        let Some((written, json)) = given else { return true };
        json.as_bool().unwrap_or_else(|| {
            self.faults.add(&format!("{path}.{written}"), "must be true or false");
            true
        })
    }

    /// What would never do what it says.
    fn consistent(&mut self, spec: &Spec, path: &str) {
        let retries = |list: &[ActionSpec]| {
            list.iter().any(|action| action.verdict() == Some(Verdict::Retry))
        };
        if !spec.recheck_on_retry
            && (retries(&spec.on_violation) || spec.on_error == OnError::Retry)
        {
            let why = "must be true where a violation or an error means `retry`: else the next attempt passes it over";
            self.faults.add(&format!("{path}.recheck_on_retry"), why);
        }
    }

    fn list(&mut self, given: Option<(&str, &Json)>, path: &str) -> Option<Vec<ActionSpec>> {
        let (written, json) = given?;
        let path = format!("{path}.{written}");
        let one = std::slice::from_ref(json);
        let entries = match json {
            Json::Null => return None,
            Json::Array(entries) => entries.as_slice(),
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => one,
        };
        if entries.len() > MOST {
            self.faults.add(&path, format!("must be at most {MOST} actions"));
        }
        let mut list = Vec::new();
        for (index, entry) in entries.iter().take(MOST).enumerate() {
            list.extend(self.action(entry, &format!("{path}[{index}]"), true));
        }
        let words: Vec<&str> =
            list.iter().filter(|it| it.verdict().is_some()).map(|it| it.name).collect();
        if let [first, second, ..] = words.as_slice() {
            self.faults.add(&path, format!("`{first}` and `{second}` contradict each other: a list says one of retry, fail, skip, proceed once"));
        }
        Some(list)
    }

    fn action(&mut self, json: &Json, path: &str, may_name: bool) -> Option<ActionSpec> {
        let entry =
            entry(json, path, "an action").map_err(|why| self.faults.add(path, why)).ok()?;
        if let (Json::String(name), true) = (json, may_name)
            && let Some(named) = self.named.get(name)
        {
            return named.clone();
        }
        let Some(shape) = find(ACTIONS, entry.name) else {
            let given = self.named.keys().map(String::as_str).filter(|_| may_name);
            let names: Vec<&str> = ACTIONS.iter().map(|shape| shape.name).chain(given).collect();
            let meant = meant(entry.name, names.iter().copied());
            let all =
                if meant.is_empty() { format!("; there are {}", names.join(", ")) } else { meant };
            self.faults.add(path, format!("there is no action `{}`{all}", entry.name));
            return None;
        };
        let (required, config, at) = self.unwrap(&entry);
        let before = self.faults.0.len();
        let values = shape.read(&config, &at, &mut self.faults);
        let deed = if self.faults.0.len() == before { Deed::of(shape.name, &values) } else { None };
        deed.map(|deed| ActionSpec { name: shape.name, deed, required })
    }

    /// Takes `required` out of an action, and what it takes from below `config` or from beside it.
    fn unwrap(&mut self, entry: &Entry<'_>) -> (bool, Json, String) {
        let Json::Object(map) = entry.value else {
            return (true, entry.value.clone(), entry.path.clone());
        };
        let mut fields = Map::new();
        let (mut required, mut config, mut at) = (true, None, entry.path.clone());
        for (key, value) in map {
            match snake(key).as_str() {
                "name" if entry.flat => {}
                "required" => match value.as_bool() {
                    Some(flag) => required = flag,
                    None => {
                        self.faults.add(&format!("{}.{key}", entry.path), "must be true or false");
                    }
                },
                "config" => (config, at) = (Some(value.clone()), format!("{}.{key}", entry.path)),
                _ => drop(fields.insert(key.clone(), value.clone())),
            }
        }
        match config {
            None => (required, Json::Object(fields), at),
            Some(config) => {
                for key in fields.keys() {
                    self.faults.add(
                        &format!("{}.{key}", entry.path),
                        "belongs below `config`, as there is one",
                    );
                }
                (required, config, at)
            }
        }
    }
}
