//! One step of the file: its work, its options and what it waits for.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::executor;
use super::params::split_words;
use super::reader::{Fields, Reader};
use super::{Condition, Console, On, Options, Output, Requires, Retry, Step, StepIx, Work};
use crate::source::{Problem, Span};
use crate::yaml::{Node, Value};

pub(super) const STEP_KEYS: &[&str] = &[
    "name",
    "description",
    "command",
    "args",
    "script",
    "shell",
    "dir",
    "env",
    "depends",
    "after",
    "requires",
    "when",
    "preconditions",
    "retry_policy",
    "timeout",
    "continue_on_error",
    "output",
    "console",
    "priority",
    "executor",
];
/// A handler is a step that nobody waits for and that waits for nobody.
pub(super) const HANDLER_STEP_KEYS: &[&str] = &[
    "description",
    "command",
    "args",
    "script",
    "shell",
    "dir",
    "env",
    "when",
    "preconditions",
    "retry_policy",
    "timeout",
    "continue_on_error",
    "output",
    "console",
    "executor",
];
pub(super) const DEFAULT_KEYS: &[&str] = &[
    "shell",
    "dir",
    "env",
    "requires",
    "retry_policy",
    "timeout",
    "continue_on_error",
    "console",
    "priority",
    "executor",
];
pub(super) const RETRY_KEYS: &[&str] =
    &["limit", "delay", "backoff", "max_delay", "jitter", "exit_codes"];
pub(super) const CONDITION_KEYS: &[&str] = &["predicate", "expected"];
pub(super) const STREAM_KEYS: &[&str] = &["stdout", "stderr"];
pub(super) const DEPENDENCY_KEYS: &[&str] = &["step", "on"];

/// A dependency whose name has not been looked up yet. There may be a million of them.
#[derive(Debug)]
pub(super) struct RawEdge<'n, 'a> {
    pub(super) step: StepIx,
    /// The name, where it stands.
    node: &'n Node<'a>,
    pub(super) on: On,
    pub(super) after: bool,
}

impl<'n> RawEdge<'n, '_> {
    pub(super) fn name(&self) -> &'n str {
        self.node.scalar().map_or("", |name| &name.text)
    }

    pub(super) fn span(&self) -> Span {
        self.node.span
    }
}

pub(super) fn read_step(
    reader: &mut Reader,
    fields: &Fields<'_, '_>,
    name: &str,
    defaults: &Arc<Options>,
) -> Step {
    let mut work = read_work(reader, fields);
    let bare = |key| matches!(key, "name" | "command" | "args" | "script" | "depends" | "after");
    let options = if fields.keys().all(bare) {
        executor::check(reader, fields, defaults);
        Arc::clone(defaults)
    } else {
        let mut options = Options::clone(defaults);
        read_options(reader, fields, &mut options);
        executor::check(reader, fields, &options);
        // Where it runs may be everybody's; that it runs there though it does nothing is its own.
        let is_pod = options.on_kubernetes().is_some() && fields.get("executor").is_some();
        if work == Work::Join && is_pod {
            work = Work::Pod;
        }
        Arc::new(options)
    };
    Step { name: name.into(), work, options }
}

pub(super) fn read_handler(
    reader: &mut Reader,
    node: &Node<'_>,
    name: &str,
    defaults: &Arc<Options>,
) -> Option<Step> {
    if node.scalar().is_some() {
        let command = reader.full_text(node, name)?;
        let work = Work::Shell(command.into());
        return Some(Step { name: name.into(), work, options: Arc::clone(defaults) });
    }
    let fields = reader.fields(node, "a handler", HANDLER_STEP_KEYS)?;
    Some(read_step(reader, &fields, name, defaults))
}

pub(super) fn read_defaults(reader: &mut Reader, node: &Node<'_>) -> Options {
    let mut options = Options::default();
    if let Some(fields) = reader.fields(node, "defaults", DEFAULT_KEYS) {
        read_options(reader, &fields, &mut options);
    }
    options
}

fn read_work(reader: &mut Reader, fields: &Fields<'_, '_>) -> Work {
    let (command, script, args) = (fields.get("command"), fields.get("script"), fields.get("args"));
    if let (Some(_), Some(script)) = (command, script) {
        let span = fields.key_span("script").unwrap_or(script.span);
        let problem = Problem::error(span, "a step has both `command` and `script`");
        reader.report(problem.help("keep one; two commands are two steps, or one script"));
        return Work::Join;
    }
    if let (None, Some(args)) = (command, args) {
        let span = fields.key_span("args").unwrap_or(args.span);
        let problem = Problem::error(span, "`args` without a `command`");
        reader.report(problem.help("add `command:` with the program to run"));
    }
    for (key, node) in [("command", command), ("script", script)] {
        if node.is_none()
            && let Some(span) = fields.key_span(key)
        {
            let problem = Problem::error(span, format!("`{key}` is empty"));
            reader.report(
                problem.help("write it, or remove the key: a step with no work is a join point"),
            );
        }
    }
    if let Some(node) = script {
        return reader
            .full_text(node, "script")
            .map_or(Work::Join, |text| Work::Script(text.into()));
    }
    let Some(node) = command else { return Work::Join };
    let Some(command) = reader.full_text(node, "command") else { return Work::Join };
    let Some(args) = args else { return Work::Shell(command.into()) };
    let mut words = Vec::new();
    for item in Reader::items(args) {
        if let Some(text) = reader.text(item, "args") {
            if text.contains('\0') {
                reader.report(Problem::error(item.span, "an argument contains a NUL character"));
            }
            words.push(text.into());
        }
    }
    Work::Exec { program: command.trim().into(), args: words.into() }
}

fn read_options(reader: &mut Reader, fields: &Fields<'_, '_>, options: &mut Options) {
    if let Some(node) = fields.get("description") {
        options.description = reader.text(node, "description").map(str::to_owned);
    }
    if let Some(node) = fields.get("shell") {
        options.shell = read_shell(reader, node);
    }
    if let Some(node) = fields.get("dir") {
        options.dir = reader.full_text(node, "dir").map(str::to_owned);
    }
    if let Some(node) = fields.get("env") {
        let own = reader.variables(node, "env");
        let names: FxHashSet<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
        options.env.retain(|(other, _)| !names.contains(other.as_str()));
        options.env.extend(own);
    }
    if let Some(node) = fields.get("requires") {
        let choices = [("any", Requires::Any), ("all", Requires::All)];
        options.requires = reader.choice(node, "requires", &choices).unwrap_or_default();
    }
    if let Some(node) = fields.get("when") {
        options.when = read_condition(reader, node, "when");
    }
    if let Some(node) = fields.get("preconditions") {
        options.preconditions = Reader::items(node)
            .iter()
            .filter_map(|item| read_condition(reader, item, "a precondition"))
            .collect();
    }
    if let Some(node) = fields.get("retry_policy") {
        options.retry = read_retry(reader, node);
    }
    if let Some(node) = fields.get("timeout") {
        options.timeout = reader.limit(node, "timeout");
    }
    if let Some(node) = fields.get("continue_on_error") {
        options.continue_on_error = reader.truth(node, "continue_on_error").unwrap_or_default();
    }
    if let Some(node) = fields.get("output") {
        options.output = read_output(reader, node);
    }
    if let Some(node) = fields.get("console") {
        options.console = read_console(reader, node);
    }
    if let Some(node) = fields.get("priority") {
        let number = reader.whole(node, "priority", -1_000_000..=1_000_000);
        options.priority = number.and_then(|number| i32::try_from(number).ok()).unwrap_or_default();
    }
    if let Some(node) = fields.get("executor") {
        options.executor = executor::read(reader, node);
    }
}

fn read_shell(reader: &mut Reader, node: &Node<'_>) -> Option<Vec<String>> {
    let words = match &node.value {
        Value::Scalar(scalar) => split_words(&scalar.text),
        Value::List(items) => Some(
            items.iter().filter_map(|item| reader.text(item, "shell")).map(str::to_owned).collect(),
        ),
        Value::Map(_) => None,
    };
    let words = words.filter(|words| !words.is_empty());
    if words.is_none() {
        let problem = Problem::error(node.span, "shell must be a program with its options");
        reader.report(problem.help("write for example `shell: bash -euo pipefail`"));
    }
    words
}

fn read_condition(reader: &mut Reader, node: &Node<'_>, what: &str) -> Option<Condition> {
    if node.scalar().is_some() {
        let predicate = reader.full_text(node, what)?.to_owned();
        return Some(Condition { predicate, expected: None });
    }
    let fields = reader.fields(node, what, CONDITION_KEYS)?;
    let Some(predicate) = fields.get("predicate") else {
        let problem = Problem::error(node.span, format!("{what} has no `predicate`"));
        reader.report(problem.help("add `predicate:` with the command to check"));
        return None;
    };
    let predicate = reader.full_text(predicate, "predicate")?.to_owned();
    let expected = fields.get("expected").and_then(|node| reader.text(node, "expected"));
    Some(Condition { predicate, expected: expected.map(str::to_owned) })
}

fn read_retry(reader: &mut Reader, node: &Node<'_>) -> Retry {
    let mut retry = Retry::default();
    let Some(fields) = reader.fields(node, "retry_policy", RETRY_KEYS) else { return retry };
    match fields.get("limit") {
        Some(node) => {
            let number = reader.whole(node, "limit", 0..=1_000_000);
            retry.limit = number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default();
        }
        None => {
            let problem = Problem::error(node.span, "retry_policy has no `limit`");
            reader.report(problem.help("add `limit: N`, the number of further attempts"));
        }
    }
    if let Some(delay) = fields.get("delay").and_then(|node| reader.duration(node, "delay")) {
        retry.delay = delay;
    }
    if let Some(limit) = fields.get("max_delay").and_then(|node| reader.duration(node, "max_delay"))
    {
        retry.max_delay = limit;
        if limit < retry.delay {
            let span = fields.key_span("max_delay").unwrap_or(fields.span);
            let problem = Problem::error(span, "max_delay is shorter than delay");
            reader.report(problem.help("make it longer, or shorten `delay`"));
        }
    }
    if let Some(node) = fields.get("backoff") {
        retry.backoff = match node.scalar().map(|scalar| &*scalar.text) {
            Some("true") => 2.0,
            Some("false") => 1.0,
            _ => reader.number(node, "backoff", 1.0, 1_000.0).unwrap_or(1.0),
        };
    }
    if let Some(node) = fields.get("jitter") {
        retry.jitter = match node.scalar().map(|scalar| &*scalar.text) {
            Some("true") => 0.5,
            Some("false") => 0.0,
            _ => reader.number(node, "jitter", 0.0, 1.0).unwrap_or(0.0),
        };
    }
    if let Some(node) = fields.get("exit_codes") {
        retry.exit_codes = Reader::items(node)
            .iter()
            .filter_map(|item| reader.whole(item, "exit_codes", 0..=255))
            .filter_map(|code| i32::try_from(code).ok())
            .collect();
    }
    retry
}

fn read_output(reader: &mut Reader, node: &Node<'_>) -> Output {
    if node.scalar().is_some() {
        return Output { stdout: reader.variable_name(node, "output"), stderr: None };
    }
    let Some(fields) = reader.fields(node, "output", STREAM_KEYS) else { return Output::default() };
    let mut name = |key| fields.get(key).and_then(|node| reader.variable_name(node, "output"));
    Output { stdout: name("stdout"), stderr: name("stderr") }
}

fn read_console(reader: &mut Reader, node: &Node<'_>) -> Console {
    if node.scalar().is_some() {
        let both = reader.truth(node, "console").unwrap_or_default();
        return Console { stdout: both, stderr: both };
    }
    let Some(fields) = reader.fields(node, "console", STREAM_KEYS) else {
        return Console::default();
    };
    let mut shown = |key| fields.get(key).and_then(|node| reader.truth(node, "console"));
    Console {
        stdout: shown("stdout").unwrap_or_default(),
        stderr: shown("stderr").unwrap_or_default(),
    }
}

pub(super) fn read_edges<'n, 'a>(
    reader: &mut Reader,
    fields: &Fields<'n, 'a>,
    step: StepIx,
    edges: &mut Vec<RawEdge<'n, 'a>>,
) {
    for (key, after) in [("depends", false), ("after", true)] {
        let Some(node) = fields.get(key) else { continue };
        for item in Reader::items(node) {
            match &item.value {
                Value::Scalar(_) => {
                    edges.push(RawEdge { step, node: item, on: On::Success, after });
                }
                Value::Map(_) if !after => read_conditional(reader, item, step, edges),
                Value::Map(_) | Value::List(_) => reader.report(
                    Problem::error(
                        item.span,
                        format!("{key} must name steps, not hold {}", item.what()),
                    )
                    .help(format!("write `{key}: [one, other]`")),
                ),
            }
        }
    }
}

fn read_conditional<'n, 'a>(
    reader: &mut Reader,
    item: &'n Node<'a>,
    step: StepIx,
    edges: &mut Vec<RawEdge<'n, 'a>>,
) {
    let Some(fields) = reader.fields(item, "a dependency", DEPENDENCY_KEYS) else { return };
    let on = fields
        .get("on")
        .and_then(|node| reader.choice(node, "on", &On::ALL.map(|on| (on.name(), on))))
        .unwrap_or_default();
    match fields.get("step") {
        Some(node) => {
            if reader.text(node, "step").is_some() {
                edges.push(RawEdge { step, node, on, after: false });
            }
        }
        None => reader.report(
            Problem::error(item.span, "a dependency has no `step`")
                .help("write `{step: NAME, on: failure}`"),
        ),
    }
}
