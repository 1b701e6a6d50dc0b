//! The parts of a job that may be written in several ways.

use serde_json::{Value as Json, json};

use super::keys;
use crate::job::validate::MOST_RETRIES;
use crate::manifest::plain::plain;
use crate::manifest::shape::Builder;
use crate::source::Problem;
use crate::yaml::{self, Node, Value};

impl Builder<'_> {
    /// A name, or `{name, limit}`.
    pub(super) fn group(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        match node.value {
            Value::Scalar(_) => {
                self.reader.text(node, "`group`").map(|name| json!({ "name": name }))
            }
            Value::List(_) | Value::Map(_) => {
                self.part(node, "`group`", keys::GROUP, &["name"], path).map(Json::Object)
            }
        }
    }

    /// A policy, or `{policy, window}`.
    pub(super) fn catch_up(&mut self, node: &Node<'_>, what: &str, path: &str) -> Option<Json> {
        match node.value {
            Value::Scalar(_) => self.policy(node, what).map(|policy| json!({ "policy": policy })),
            Value::List(_) | Value::Map(_) => {
                self.part(node, what, keys::CATCH_UP, &[], path).map(Json::Object)
            }
        }
    }

    /// How often, or all of it.
    pub(super) fn retry(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        match node.value {
            Value::Scalar(_) => {
                let retries = self.reader.whole(node, "`retry`", 0..=i64::from(MOST_RETRIES))?;
                Some(json!({ "max_retries": retries }))
            }
            Value::List(_) | Value::Map(_) => {
                self.part(node, "`retry`", keys::RETRY, &["max_retries"], path).map(Json::Object)
            }
        }
    }

    /// A file, or `{file | text, params}`.
    pub(super) fn workflow(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        match node.value {
            Value::Scalar(_) => {
                self.reader.text(node, "`workflow`").map(|file| json!({ "file": file }))
            }
            Value::List(_) | Value::Map(_) => {
                self.part(node, "`workflow`", keys::WORKFLOW, &[], path).map(Json::Object)
            }
        }
    }

    /// A PodSpec of Kubernetes: a mapping, or a text that is one in YAML or JSON. Others judge it.
    pub(super) fn pod_spec(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        if matches!(node.value, Value::Map(_) | Value::List(_)) {
            self.free(node, path);
            return Some(plain(node));
        }
        let text = self.reader.full_text(node, "`pod_spec`")?;
        let read = yaml::parse(text);
        let wrong = match read.as_deref() {
            Ok([document]) if matches!(document.value, Value::Map(_)) => {
                return Some(plain(document));
            }
            Ok([document]) => {
                format!("the text of `pod_spec` must be a mapping, not {}", document.what())
            }
            Ok(_) => "the text of `pod_spec` must be one document".to_owned(),
            Err(problem) => format!("the text of `pod_spec` cannot be read: {}", problem.message),
        };
        let problem = Problem::error(node.span, wrong);
        self.reader.report(problem.help("write `pod_spec: {containers: […]}`"));
        None
    }

    /// A text for the shell, a program with its arguments, or a mapping that has either.
    pub(super) fn command(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        let mut command = match node.value {
            Value::Scalar(_) | Value::List(_) => {
                let words = self.words(node, path)?;
                [("command".to_owned(), words)].into_iter().collect()
            }
            Value::Map(_) => self.part(node, "`command`", keys::COMMAND, &["command"], path)?,
        };
        if let Some(Json::Array(words)) = command.get_mut("command") {
            let args = words.split_off(1);
            let program = words.pop().unwrap_or_default();
            if command.contains_key("args") {
                let span = self.span(&format!("{path}.args"), node);
                let problem =
                    Problem::error(span, "`args` stands beside a `command` with arguments");
                self.reader.report(problem.help("write all arguments in one of them"));
                return None;
            }
            command.insert("command".to_owned(), program);
            command.insert("args".to_owned(), Json::Array(args));
        }
        Some(Json::Object(command))
    }

    /// A text, or at least one word.
    pub(super) fn words(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        match &node.value {
            Value::Scalar(_) => self.reader.full_text(node, "`command`").map(Json::from),
            Value::List(items) if items.is_empty() => {
                let problem = Problem::error(node.span, "`command` is an empty list");
                self.reader.report(problem.help("write `[program, argument]`"));
                None
            }
            Value::List(_) | Value::Map(_) => {
                let told = self.told();
                let words = self.list(node, "`command`", path, |this, item, _| {
                    this.reader.text(item, "a word of `command`").map(Json::from)
                });
                words.filter(|_| self.told() == told)
            }
        }
    }

    pub(super) fn task(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        let fields = self.reader.fields_spelt(node, "`task`", keys::TASK, keys::OF_A_TASK)?;
        Some(self.object_of(&fields, "`task`", keys::TASK, &["action"], path))
    }

    /// `{name, default, …}` items or names, or `NAME: default` and `NAME: {default, …}` lines.
    pub(super) fn parameters(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        let Value::Map(entries) = &node.value else {
            return self.list(node, "`parameters`", path, |this, item, path| match item.value {
                Value::Scalar(_) => {
                    this.reader.text(item, "a parameter").map(|name| json!({ "name": name }))
                }
                Value::List(_) | Value::Map(_) => {
                    let needed = &["name"];
                    let made = this.part(item, "a parameter", keys::PARAMETER, needed, path);
                    made.map(Json::Object)
                }
            });
        };
        let mut list = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let path = format!("{path}[{}]", list.len());
            self.spans.insert(path.clone(), key.span);
            list.extend(self.named_parameter(key, value, &path));
        }
        Some(Json::Array(list))
    }

    fn named_parameter(&mut self, key: &Node<'_>, value: &Node<'_>, path: &str) -> Option<Json> {
        let name = self.reader.text(key, "the name of a parameter")?;
        let mut parameter = match value.value {
            Value::Scalar(_) if value.is_null() => serde_json::Map::new(),
            Value::Scalar(_) | Value::List(_) => {
                self.spans.insert(format!("{path}.default"), value.span);
                let default = self.reader.text(value, "the default of a parameter")?;
                [("default".to_owned(), default.into())].into_iter().collect()
            }
            Value::Map(_) => self.part(value, "a parameter", keys::PARAMETER_VALUE, &[], path)?,
        };
        parameter.insert("name".to_owned(), name.into());
        Some(Json::Object(parameter))
    }

    /// A list of mappings and names, which others judge.
    pub(super) fn constraints(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        self.list(node, "`constraints`", path, |this, item, path| {
            match item.value {
                Value::Map(_) => {}
                // One that needs no `config` is said by its name.
                Value::Scalar(_) => {
                    return this.reader.text(item, "a constraint").map(Json::from);
                }
                Value::List(_) => {
                    let message = format!("a constraint must be a mapping, not {}", item.what());
                    let problem = Problem::error(item.span, message);
                    this.reader.report(problem.help("write `NAME: {config: …}`"));
                    return None;
                }
            }
            this.free(item, path);
            Some(plain(item))
        })
    }

    /// A mapping, which others judge.
    pub(super) fn actions_by_name(&mut self, node: &Node<'_>, path: &str) -> Option<Json> {
        if !matches!(node.value, Value::Map(_)) {
            let message = format!("`actions` must be a mapping, not {}", node.what());
            let problem = Problem::error(node.span, message);
            self.reader.report(problem.help("write `NAME: {…}` lines"));
            return None;
        }
        self.free(node, path);
        Some(plain(node))
    }
}
