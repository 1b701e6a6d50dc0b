//! Walks a YAML tree, collects typed values, and reports everything that does not fit.

use std::time::Duration;

use rustc_hash::FxHashSet;

use super::duration::parse_duration;
use crate::source::{Problem, Severity, Span, closest};
use crate::yaml::{Node, Value};

/// A key that may be written two ways, and how we call it.
const ALIASES: [(&str, &str); 1] = [("retryPolicy", "retry_policy")];

/// What other tools call our keys.
const ELSEWHERE: [(&str, &str); 12] = [
    ("cmd", "command"),
    ("run", "command"),
    ("needs", "depends"),
    ("depends_on", "depends"),
    ("dependsOn", "depends"),
    ("working_dir", "dir"),
    ("workdir", "dir"),
    ("cwd", "dir"),
    ("retries", "retry_policy"),
    ("retry", "retry_policy"),
    ("continueOn", "continue_on_error"),
    ("allow_failure", "continue_on_error"),
];

/// How many problems are kept: nobody reads more, and a file can have a million.
const MAX_PROBLEMS: usize = 200;

/// How the keys of a mapping may be spelt, and what is said to those who write others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spelling {
    /// The key that a word stands for, of those that are known.
    pub(crate) key: fn(&str, &[&'static str]) -> Option<&'static str>,
    /// What would be right instead of a word that is no key.
    pub(crate) instead: fn(&str, &[&'static str]) -> Option<String>,
}

impl Spelling {
    const USUAL: Self = Self { key: usual_key, instead: usual_instead };
}

fn usual_key(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = ALIASES.iter().find(|(other, _)| *other == word).map_or(word, |(_, ours)| ours);
    known.iter().find(|&&name| name == word).copied()
}

fn usual_instead(word: &str, known: &[&'static str]) -> Option<String> {
    let meant = ELSEWHERE.iter().find(|(other, _)| *other == word).map(|&(_, ours)| ours);
    meant.filter(|ours| known.contains(ours)).map(|meant| format!("did you mean `{meant}`?"))
}

/// Collects problems while values are read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) problems: Vec<Problem>,
    pub(crate) errors_left_out: usize,
    pub(crate) warnings_left_out: usize,
}

/// The known keys of one mapping that are present.
#[derive(Debug)]
pub(crate) struct Fields<'n, 'a> {
    pub(crate) span: Span,
    entries: Vec<(&'static str, &'n Node<'a>, &'n Node<'a>)>,
}

/// Variables in the order of the file, and their names for finding one that stands twice.
#[derive(Debug, Default)]
struct Variables {
    list: Vec<(String, String)>,
    names: FxHashSet<String>,
}

impl<'n, 'a> Fields<'n, 'a> {
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node<'a>> {
        let found = self.entries.iter().find(|(name, ..)| *name == key)?;
        Some(found.2).filter(|value| !value.is_null())
    }

    /// Where the key itself stands.
    pub(crate) fn key_span(&self, key: &str) -> Option<Span> {
        self.entries.iter().find(|(name, ..)| *name == key).map(|(_, key, _)| key.span)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|(name, ..)| *name)
    }
}

impl Reader {
    /// Whether further problems are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub(crate) fn report(&mut self, problem: Problem) {
        if self.is_full() {
            self.leave_out(problem.severity);
        } else {
            self.problems.push(problem);
        }
    }

    /// Counts a problem that is not going to be told.
    pub(crate) fn leave_out(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors_left_out += 1,
            Severity::Warning => self.warnings_left_out += 1,
        }
    }

    /// Takes a mapping apart. Unknown and repeated keys are reported, each with what was meant.
    pub(crate) fn fields<'n, 'a>(
        &mut self,
        node: &'n Node<'a>,
        what: &str,
        known: &'static [&'static str],
    ) -> Option<Fields<'n, 'a>> {
        self.fields_spelt(node, what, known, Spelling::USUAL)
    }

    /// The same, with keys that may be spelt otherwise.
    pub(crate) fn fields_spelt<'n, 'a>(
        &mut self,
        node: &'n Node<'a>,
        what: &str,
        known: &'static [&'static str],
        spelling: Spelling,
    ) -> Option<Fields<'n, 'a>> {
        let Value::Map(entries) = &node.value else {
            let found = node.what();
            self.report(
                Problem::error(node.span, format!("{what} must be a mapping, not {found}"))
                    .help(format!("write `key: value` lines; keys are {}", known.join(", "))),
            );
            return None;
        };
        let mut fields = Fields { span: node.span, entries: Vec::with_capacity(entries.len()) };
        for (key, value) in entries {
            let Some(text) = key.scalar().map(|scalar| &*scalar.text) else {
                self.report(Problem::error(key.span, format!("a key of {what} must be a word")));
                continue;
            };
            let Some(name) = (spelling.key)(text, known) else {
                let meant = || closest(text, known.iter().copied());
                let help = (spelling.instead)(text, known)
                    .or_else(|| meant().map(|meant| format!("did you mean `{meant}`?")))
                    .unwrap_or_else(|| format!("known keys are {}", known.join(", ")));
                let message = format!("unknown key `{text}` in {what}");
                self.report(Problem::error(key.span, message).help(help));
                continue;
            };
            if fields.entries.iter().any(|(other, ..)| *other == name) {
                self.report(
                    Problem::error(key.span, format!("key `{name}` stands twice in {what}"))
                        .help("remove one of the two"),
                );
                continue;
            }
            fields.entries.push((name, key, value));
        }
        Some(fields)
    }

    /// A single value as its text.
    pub(crate) fn text<'n>(&mut self, node: &'n Node<'_>, what: &str) -> Option<&'n str> {
        match &node.value {
            Value::Scalar(scalar) => Some(&scalar.text),
            Value::List(_) | Value::Map(_) => {
                let message = format!("{what} must be text, not {}", node.what());
                self.report(
                    Problem::error(node.span, message)
                        .help("write one value, quoted if it is long"),
                );
                None
            }
        }
    }

    /// Text that must not be empty.
    pub(crate) fn full_text<'n>(&mut self, node: &'n Node<'_>, what: &str) -> Option<&'n str> {
        let text = self.text(node, what)?;
        if text.trim().is_empty() {
            self.report(
                Problem::error(node.span, format!("{what} is empty"))
                    .help("write it, or remove the key"),
            );
            return None;
        }
        if text.contains('\0') {
            self.report(
                Problem::error(node.span, format!("{what} contains a NUL character"))
                    .help("no program can be given one; remove it"),
            );
            return None;
        }
        Some(text)
    }

    pub(crate) fn truth(&mut self, node: &Node<'_>, what: &str) -> Option<bool> {
        match node.scalar().map(|scalar| &*scalar.text) {
            Some("true" | "True" | "TRUE") => Some(true),
            Some("false" | "False" | "FALSE") => Some(false),
            found => {
                let found = found.map_or(node.what().to_owned(), |text| format!("`{text}`"));
                self.report(
                    Problem::error(node.span, format!("{what} must be true or false, not {found}"))
                        .help("write `true` or `false`"),
                );
                None
            }
        }
    }

    /// A whole number within a range.
    pub(crate) fn whole(
        &mut self,
        node: &Node<'_>,
        what: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Option<i64> {
        let number = node.scalar().and_then(|scalar| scalar.text.trim().parse().ok());
        let Some(number) = number.filter(|number| range.contains(number)) else {
            let (low, high) = range.into_inner();
            let found = node.scalar().map_or(node.what().to_owned(), |s| format!("`{}`", s.text));
            self.report(
                Problem::error(node.span, format!("{what} must be a whole number, not {found}"))
                    .help(format!("write a number from {low} to {high}")),
            );
            return None;
        };
        Some(number)
    }

    /// A number within a range.
    pub(crate) fn number(
        &mut self,
        node: &Node<'_>,
        what: &str,
        low: f64,
        high: f64,
    ) -> Option<f64> {
        let number = node.scalar().and_then(|scalar| scalar.text.trim().parse::<f64>().ok());
        let fits = number.filter(|number| (low..=high).contains(number));
        if fits.is_none() {
            let found = node.scalar().map_or(node.what().to_owned(), |s| format!("`{}`", s.text));
            self.report(
                Problem::error(node.span, format!("{what} must be a number, not {found}"))
                    .help(format!("write a number from {low} to {high}")),
            );
        }
        fits
    }

    pub(crate) fn duration(&mut self, node: &Node<'_>, what: &str) -> Option<Duration> {
        let text = self.text(node, what)?;
        let duration = parse_duration(text);
        if duration.is_none() {
            self.report(
                Problem::error(node.span, format!("{what}: `{text}` is not a duration"))
                    .help("write for example `500ms`, `30s`, `1m30s` or `2h`"),
            );
        }
        duration
    }

    /// A duration that something may take, so not none at all.
    pub(crate) fn limit(&mut self, node: &Node<'_>, what: &str) -> Option<Duration> {
        let limit = self.duration(node, what)?;
        if limit.is_zero() {
            self.report(
                Problem::error(node.span, format!("{what} leaves no time at all"))
                    .help("make it longer, or remove the key for no limit"),
            );
        }
        Some(limit)
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        node: &Node<'_>,
        what: &str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(node, what)?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|&(_, value)| value);
        if found.is_none() {
            let names: Vec<_> = choices.iter().map(|&(name, _)| name).collect();
            self.report(
                Problem::error(node.span, format!("{what} cannot be `{text}`"))
                    .help(format!("write one of {}", names.join(", "))),
            );
        }
        found
    }

    /// A list, or one item that stands for a list of one.
    pub(crate) fn items<'n, 'a>(node: &'n Node<'a>) -> &'n [Node<'a>] {
        match &node.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => std::slice::from_ref(node),
        }
    }

    /// A name that the shell and the environment take.
    pub(crate) fn variable_name(&mut self, node: &Node<'_>, what: &str) -> Option<String> {
        let text = self.text(node, what)?;
        let mut bytes = text.bytes();
        let fits = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !fits {
            self.report(
                Problem::error(node.span, format!("{what}: `{text}` is not a variable name"))
                    .help("use letters, digits and `_`, not beginning with a digit"),
            );
        }
        fits.then(|| text.to_owned())
    }

    /// `KEY: value` entries, as a mapping, a list of such, or a list of `KEY=value` texts.
    pub(crate) fn variables(&mut self, node: &Node<'_>, what: &str) -> Vec<(String, String)> {
        let mut variables = Variables::default();
        for item in Self::items(node) {
            match &item.value {
                Value::Map(entries) => {
                    for (key, value) in entries {
                        let name = self.variable_name(key, what);
                        let value = self.variable_value(value, what);
                        self.add_variable(&mut variables, key.span, name, value);
                    }
                }
                Value::Scalar(scalar) => match scalar.text.split_once('=') {
                    Some((name, value)) if !name.is_empty() => {
                        let key = Node {
                            span: item.span,
                            value: Value::Scalar(crate::yaml::Scalar {
                                text: name.into(),
                                plain: true,
                            }),
                        };
                        let name = self.variable_name(&key, what);
                        self.add_variable(&mut variables, item.span, name, Some(value.to_owned()));
                    }
                    Some(_) | None => self.report(
                        Problem::error(
                            item.span,
                            format!("{what}: `{}` sets no variable", scalar.text),
                        )
                        .help("write `NAME: value`"),
                    ),
                },
                Value::List(_) => self.report(
                    Problem::error(
                        item.span,
                        format!("{what} must hold `NAME: value` lines, not a list"),
                    )
                    .help("write `NAME: value`"),
                ),
            }
        }
        variables.list
    }

    fn variable_value(&mut self, value: &Node<'_>, what: &str) -> Option<String> {
        if value.is_null() {
            return Some(String::new());
        }
        let text = self.text(value, what)?;
        if text.contains('\0') {
            self.report(Problem::error(value.span, format!("{what} contains a NUL character")));
            return None;
        }
        Some(text.to_owned())
    }

    fn add_variable(
        &mut self,
        variables: &mut Variables,
        span: Span,
        name: Option<String>,
        value: Option<String>,
    ) {
        let (Some(name), Some(value)) = (name, value) else { return };
        if !variables.names.insert(name.clone()) {
            self.report(
                Problem::error(span, format!("variable `{name}` is set twice"))
                    .help("remove one of the two"),
            );
            return;
        }
        variables.list.push((name, value));
    }
}
