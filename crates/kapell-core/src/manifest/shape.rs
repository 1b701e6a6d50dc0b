//! What may stand under which key.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::plain::plain;

use crate::source::{Problem, Span};
use crate::workflow::reader::{Fields, Reader};
use crate::yaml::{Node, Value};

pub(super) const LRP: &[&str] = &[
    "kind",
    "process_guid",
    "domain",
    "instances",
    "rootfs",
    "memory_mb",
    "disk_mb",
    "max_pids",
    "cpu_millis",
    "log_rate",
    "placement_tags",
    "setup",
    "action",
    "monitor",
    "check",
    "readiness",
    "start_timeout_ms",
    "stop_grace_ms",
    "env",
    "ports",
    "annotation",
    "routes",
    "version",
    "created_at",
    "updated_at",
    "incarnation",
    "retiring",
    "actual_lrps",
];
pub(super) const TASK: &[&str] = &[
    "kind",
    "task_guid",
    "domain",
    "rootfs",
    "memory_mb",
    "disk_mb",
    "max_pids",
    "cpu_millis",
    "log_rate",
    "placement_tags",
    "env",
    "action",
    "result_file",
    "completion_callback_url",
    "annotation",
];

pub(super) type Keys = &'static [&'static str];

/// The actions: name, keys, and those of them that must be there.
const ACTIONS: [(&str, Keys, Keys); 9] = [
    ("run", &["path", "args", "dir", "env", "user"], &["path"]),
    ("download", &["from", "to", "checksum"], &["from", "to"]),
    ("upload", &["from", "to"], &["from", "to"]),
    ("timeout", &["action", "timeout_ms"], &["action", "timeout_ms"]),
    ("try", &["action"], &["action"]),
    ("parallel", &["actions"], &["actions"]),
    ("serial", &["actions"], &["actions"]),
    ("codependent", &["actions"], &["actions"]),
    (
        "emit_progress",
        &["action", "start_message", "success_message", "failure_message"],
        &["action"],
    ),
];
const ACTION_NAMES: &[&str] = &[
    "run",
    "download",
    "upload",
    "timeout",
    "try",
    "parallel",
    "serial",
    "codependent",
    "emit_progress",
];
const VARIABLE: &[&str] = &["name", "value", "secret"];
const REFERENCE: &[&str] = &["secret"];
const CHECK: &[&str] = &["http", "tcp", "every_ms", "timeout_ms"];

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Texts,
    Whole {
        most: i64,
    },
    Port,
    Ports,
    Env,
    Action,
    Actions,
    /// A mapping with these keys, of which some must be there.
    Fields {
        keys: Keys,
        needed: Keys,
    },
    /// A mapping of anything.
    Free,
    /// The board's own: it may stand there and counts for nothing.
    Ignored,
}

/// A key means the same wherever it stands.
fn shape(key: &str) -> Shape {
    const SMALL: i64 = u32::MAX as i64;
    match key {
        "instances" | "memory_mb" | "disk_mb" | "max_pids" | "cpu_millis" => {
            Shape::Whole { most: SMALL }
        }
        "start_timeout_ms" | "stop_grace_ms" | "timeout_ms" | "every_ms" | "log_rate" => {
            Shape::Whole { most: i64::MAX }
        }
        "args" | "placement_tags" => Shape::Texts,
        "port" => Shape::Port,
        "ports" => Shape::Ports,
        "check" | "readiness" => Shape::Fields { keys: CHECK, needed: &[] },
        "http" => Shape::Fields { keys: &["port", "path"], needed: &["port"] },
        "tcp" => Shape::Fields { keys: &["port"], needed: &["port"] },
        "env" => Shape::Env,
        "action" | "setup" | "monitor" => Shape::Action,
        "actions" => Shape::Actions,
        "routes" => Shape::Free,
        "kind" | "version" | "created_at" | "updated_at" | "incarnation" | "retiring"
        | "actual_lrps" => Shape::Ignored,
        _ => Shape::Text,
    }
}

/// Stands where something that is needed is missing, so that the rest can be judged too.
fn stand_in(key: &str) -> Json {
    let action = || serde_json::json!({"run": {"path": "missing"}});
    match shape(key) {
        // A URL, and a relative path as well.
        Shape::Text if matches!(key, "from" | "to") => "http://missing".into(),
        Shape::Text => "missing".into(),
        Shape::Whole { .. } | Shape::Port => 1.into(),
        Shape::Action => action(),
        Shape::Actions => Json::Array(vec![action()]),
        Shape::Texts | Shape::Ports | Shape::Env => Json::Array(Vec::new()),
        Shape::Fields { .. } | Shape::Free | Shape::Ignored => Json::Object(Map::new()),
    }
}

/// Makes JSON of a document, and remembers where each field stands.
#[derive(Debug)]
pub(super) struct Builder<'r> {
    pub(super) reader: &'r mut Reader,
    pub(super) spans: BTreeMap<String, Span>,
    before: usize,
}

impl<'r> Builder<'r> {
    pub(super) fn new(reader: &'r mut Reader) -> Self {
        let before = reader.problems.len() + reader.errors_left_out;
        Self { reader, spans: BTreeMap::new(), before }
    }

    /// How many problems there are so far.
    pub(super) fn told(&self) -> usize {
        self.reader.problems.len() + self.reader.errors_left_out
    }

    fn is_bad(&self) -> bool {
        self.told() > self.before
    }

    /// The typed form. What is wrong already was left out, so that the rest can be judged too.
    pub(super) fn finish<T: DeserializeOwned>(
        &mut self,
        node: &Node<'_>,
        value: Json,
    ) -> Option<T> {
        let made = serde_json::from_value(value);
        if let Err(error) = &made
            && !self.is_bad()
        {
            self.reader.report(Problem::error(node.span, error.to_string()));
        }
        made.ok()
    }

    pub(super) fn object(
        &mut self,
        node: &Node<'_>,
        what: &str,
        keys: Keys,
        needed: Keys,
        path: &str,
    ) -> Option<Json> {
        let fields = self.reader.fields(node, what, keys)?;
        Some(self.object_of(&fields, what, keys, needed, path))
    }

    pub(super) fn object_of(
        &mut self,
        fields: &Fields<'_, '_>,
        what: &str,
        keys: Keys,
        needed: Keys,
        path: &str,
    ) -> Json {
        self.need(fields, what, needed);
        let mut object = Map::new();
        for key in keys {
            let Some(value) = fields.get(key) else { continue };
            let path = if path.is_empty() { (*key).to_owned() } else { format!("{path}.{key}") };
            self.spans.insert(path.clone(), value.span);
            if let Some(value) = self.value(value, key, &path) {
                object.insert((*key).to_owned(), value);
            }
        }
        for key in needed {
            object.entry(*key).or_insert_with(|| stand_in(key));
        }
        Json::Object(object)
    }

    /// Tells of keys that must be there and are not.
    pub(super) fn need(&mut self, fields: &Fields<'_, '_>, what: &str, needed: Keys) {
        for key in needed.iter().filter(|key| fields.get(key).is_none()) {
            let span = fields.key_span(key).unwrap_or(fields.span);
            let problem = Problem::error(span, format!("{what} has no `{key}`"));
            self.reader.report(problem.help(format!("add `{key}: …`")));
        }
    }

    fn value(&mut self, node: &Node<'_>, key: &str, path: &str) -> Option<Json> {
        let what = format!("`{key}`");
        match shape(key) {
            Shape::Text => self.reader.text(node, &what).map(Json::from),
            Shape::Whole { most } => self.reader.whole(node, &what, 0..=most).map(Json::from),
            Shape::Texts => self.list(node, &what, path, |this, item, _| {
                this.reader.text(item, &what).map(Json::from)
            }),
            Shape::Port => self.port(node),
            Shape::Ports => self.list(node, &what, path, |this, item, _| this.port(item)),
            Shape::Env => self.env(node, path),
            Shape::Action => self.action(node, path),
            Shape::Actions => self.list(node, &what, path, Self::action),
            Shape::Fields { keys, needed } => {
                let told = self.told();
                // Of something with a fault in it nothing more can be said.
                self.object(node, &what, keys, needed, path).filter(|_| self.told() == told)
            }
            Shape::Free => {
                if matches!(node.value, Value::Map(_)) {
                    return Some(plain(node));
                }
                let message = format!("{what} must be a mapping, not {}", node.what());
                self.reader
                    .report(Problem::error(node.span, message).help("write `name: value` lines"));
                None
            }
            Shape::Ignored => None,
        }
    }

    fn port(&mut self, node: &Node<'_>) -> Option<Json> {
        self.reader.whole(node, "a port", 1..=65_535).map(Json::from)
    }

    pub(super) fn list(
        &mut self,
        node: &Node<'_>,
        what: &str,
        path: &str,
        mut each: impl FnMut(&mut Self, &Node<'_>, &str) -> Option<Json>,
    ) -> Option<Json> {
        let Value::List(items) = &node.value else {
            let message = format!("{what} must be a list, not {}", node.what());
            self.reader.report(Problem::error(node.span, message).help("write `[a, b]`"));
            return None;
        };
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            // By its place among those that are kept: so are they counted when they are judged.
            let path = format!("{path}[{}]", list.len());
            self.spans.insert(path.clone(), item.span);
            list.extend(each(self, item, &path));
        }
        Some(Json::Array(list))
    }

    /// `{name, value}` or `{name, secret}` items, as in requests, or `NAME: value` and `NAME: {secret: name}` lines.
    pub(super) fn env(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        let entries = match &node.value {
            Value::List(_) => {
                return self.list(node, "`env`", path, |this, item, path| {
                    this.object(item, "a variable", VARIABLE, &["name"], path)
                });
            }
            Value::Map(entries) => entries.as_slice(),
            Value::Scalar(_) => &[],
        };
        let (references, values): (Vec<_>, Vec<_>) =
            entries.iter().cloned().partition(|(_, value)| matches!(value.value, Value::Map(_)));
        let values = match node.value {
            Value::Map(_) => &Node { span: node.span, value: Value::Map(values) },
            Value::List(_) | Value::Scalar(_) => node,
        };
        let variables = self.reader.variables(values, "`env`");
        let item = |(name, value)| serde_json::json!({"name": name, "value": value});
        let mut all: Vec<Json> = variables.into_iter().map(item).collect();
        for (key, value) in &references {
            let Some(name) = self.reader.variable_name(key, "`env`") else { continue };
            if all.iter().any(|each| each["name"] == *name) {
                let problem = Problem::error(key.span, format!("variable `{name}` is set twice"));
                self.reader.report(problem.help("remove one of the two"));
                continue;
            }
            let place = format!("{path}[{}]", all.len());
            self.spans.insert(place.clone(), value.span);
            let made = self.object(value, "a variable", REFERENCE, REFERENCE, &place);
            if let Some(Json::Object(mut variable)) = made {
                variable.insert("name".to_owned(), name.into());
                all.push(Json::Object(variable));
            }
        }
        Some(Json::Array(all))
    }

    fn action(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        let fields = self.reader.fields(node, "an action", ACTION_NAMES)?;
        let mut names = fields.keys();
        let name = names.next();
        let (Some(name), None) = (name, names.next()) else {
            let message = "an action must have exactly one name";
            let problem = Problem::error(node.span, message);
            self.reader.report(problem.help("for several, use `serial: {actions: […]}`"));
            return None;
        };
        let (_, keys, needed) = ACTIONS.iter().find(|(each, ..)| *each == name)?;
        let Some(inner) = fields.get(name) else {
            let span = fields.key_span(name).unwrap_or(node.span);
            let problem = Problem::error(span, format!("`{name}` says nothing"));
            self.reader.report(problem.help(format!("its keys are {}", keys.join(", "))));
            return None;
        };
        let path = format!("{path}.{name}");
        let value = self.object(inner, &format!("`{name}`"), keys, needed, &path)?;
        Some(Json::Object([(name.to_owned(), value)].into_iter().collect()))
    }

    /// Reports texts such as `action.run.path: must not be empty`, each where its field stands.
    pub(super) fn place(&mut self, node: &Node<'_>, texts: Vec<String>) {
        for text in texts {
            let path = text.split_once(": ").map_or("", |(path, _)| path);
            let span = self.span(path, node);
            self.reader.report(Problem::error(span, text));
        }
    }

    /// Where a field stands, or else what it stands in.
    pub(super) fn span(&self, path: &str, node: &Node<'_>) -> Span {
        let mut path = path;
        loop {
            if let Some(span) = self.spans.get(path) {
                return *span;
            }
            let Some(end) = path.rfind(['.', '[']) else { return node.span };
            path = &path[..end];
        }
    }
}
