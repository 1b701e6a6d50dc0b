//! From the text of a file to a checked [`Workflow`], or to everything that is wrong with it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::params::split_words;
use super::reader::{Fields, Reader};
use super::step::{self, RawEdge, STEP_KEYS};
use super::{Graph, Handlers, OnFailure, Options, Params, Step, StepIx, Workflow, after, lint};
use crate::expand;
use crate::source::{Problem, Severity, Span, closest};
use crate::yaml::{self, Node, Value};

/// The largest file that is read: five times a workflow of a million dependencies.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

pub(super) const WORKFLOW_KEYS: &[&str] = &[
    "kind",
    "name",
    "description",
    "env",
    "params",
    "steps",
    "workers",
    "timeout",
    "on_failure",
    "handlers",
    "defaults",
];
pub(super) const HANDLER_KEYS: &[&str] = &["success", "failure", "exit"];
pub(super) const PARAM_KEYS: &[&str] = &["name", "default"];

/// A good file: the workflow, and what else the reader noticed.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub workflow: Workflow,
    /// Steps whose standard output some text refers to as `${step.path}`, so it must be kept.
    pub quoted: Vec<StepIx>,
    pub warnings: Vec<Problem>,
}

/// Reads a workflow file. `stem` names the workflow if the file does not.
pub fn load(bytes: &[u8], stem: &str) -> Result<Loaded, Vec<Problem>> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| vec![not_text(bytes, error.valid_up_to())])?;
    let documents = yaml::parse(text).map_err(|problem| vec![problem])?;
    let mut reader = Reader::default();
    let loaded = match documents.as_slice() {
        [document] => read_workflow(&mut reader, document, stem),
        [] => {
            reader.report(
                Problem::error(Span::START, "the file is empty")
                    .help("a workflow needs at least `steps:`"),
            );
            None
        }
        [_, second, ..] => {
            reader.report(
                Problem::error(
                    second.span,
                    format!("the file holds {} documents", documents.len()),
                )
                .help("a workflow file is one document: remove `---` or split the file"),
            );
            None
        }
    };
    reader.problems.sort_by_key(|problem| problem.span);
    reader.problems.extend(Problem::more(reader.errors_left_out, reader.warnings_left_out));
    match loaded {
        Some(mut loaded) if !reader.problems.iter().any(Problem::is_error) => {
            loaded.warnings = reader.problems;
            Ok(loaded)
        }
        Some(_) | None => Err(reader.problems),
    }
}

pub(crate) fn not_text(bytes: &[u8], at: usize) -> Problem {
    let before = &bytes[..at];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |newline| newline + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    let small = |number| u32::try_from(number).unwrap_or(u32::MAX);
    Problem::error(Span::new(small(line), small(column), 1), "the file is not UTF-8 text")
        .help("save it as UTF-8")
}

fn read_workflow(reader: &mut Reader, document: &Node<'_>, stem: &str) -> Option<Loaded> {
    if document.is_null() {
        let problem = Problem::error(Span::START, "the file is empty");
        reader.report(problem.help("a workflow needs at least `steps:`"));
        return None;
    }
    let fields = reader.fields(document, "the workflow", WORKFLOW_KEYS)?;
    if let Some(kind) = fields.get("kind") {
        reader.choice(kind, "kind", &[("workflow", ())]);
    }
    let defaults = fields
        .get("defaults")
        .map_or_else(Options::default, |node| step::read_defaults(reader, node));
    let on_failure = fields.get("on_failure").and_then(|node| {
        reader.choice(node, "on_failure", &OnFailure::ALL.map(|choice| (choice.name(), choice)))
    });
    let mut steps = Steps {
        reader,
        defaults: defaults.into(),
        list: Vec::new(),
        spans: Vec::new(),
        edges: Vec::new(),
    };
    steps.read(&fields);
    let graph = steps.connect();
    let handlers = steps.handlers(&fields);
    let Steps { list, spans, .. } = steps;
    let mut workflow = Workflow {
        name: stem.to_owned(),
        description: None,
        env: Vec::new(),
        params: Params::default(),
        workers: None,
        timeout: None,
        on_failure: on_failure.unwrap_or_default(),
        steps: list,
        handlers,
        graph,
    };
    read_head(reader, &fields, &mut workflow);
    let quoted = quoted_steps(&workflow);
    for problem in lint::find(&workflow, &spans) {
        reader.report(problem);
    }
    Some(Loaded { workflow, quoted, warnings: Vec::new() })
}

/// The keys besides `steps` and what belongs to them.
fn read_head(reader: &mut Reader, fields: &Fields<'_, '_>, workflow: &mut Workflow) {
    if let Some(name) = fields.get("name").and_then(|node| short_name(reader, node)) {
        name.clone_into(&mut workflow.name);
    }
    if let Some(node) = fields.get("description") {
        workflow.description = reader.text(node, "description").map(str::to_owned);
    }
    if let Some(node) = fields.get("env") {
        workflow.env = reader.variables(node, "env");
    }
    if let Some(node) = fields.get("params") {
        workflow.params = read_params(reader, node);
    }
    if let Some(node) = fields.get("workers") {
        let number = reader.whole(node, "workers", 1..=10_000);
        workflow.workers = number.and_then(|number| u32::try_from(number).ok());
    }
    if let Some(node) = fields.get("timeout") {
        workflow.timeout = reader.limit(node, "timeout");
    }
}

/// A name: one line that people can read.
fn short_name<'n>(reader: &mut Reader, node: &'n Node<'_>) -> Option<&'n str> {
    let name = reader.full_text(node, "name")?;
    if name.chars().any(char::is_control) || name.chars().count() > 200 {
        let problem =
            Problem::error(node.span, "a name must be one line of at most 200 characters");
        reader.report(problem.help("keep the name short and put the rest into `description`"));
        return None;
    }
    Some(name)
}

fn read_params(reader: &mut Reader, node: &Node<'_>) -> Params {
    let mut params = Params::default();
    let mut seen = FxHashSet::default();
    if let Some(text) = node.scalar() {
        match split_words(&text.text) {
            Some(words) => params.positional = words,
            None => reader.report(
                Problem::error(node.span, "params: a quote is left open")
                    .help("close it, or write a list"),
            ),
        }
        return params;
    }
    for item in Reader::items(node) {
        match &item.value {
            Value::Scalar(text) => params.positional.push(text.text.clone().into_owned()),
            Value::Map(_) => {
                let Some(fields) = reader.fields(item, "a parameter", PARAM_KEYS) else { continue };
                let Some(name) = fields.get("name") else {
                    let problem = Problem::error(item.span, "a parameter has no name");
                    reader.report(problem.help("write `- {name: NAME, default: VALUE}`"));
                    continue;
                };
                let default = fields
                    .get("default")
                    .and_then(|node| reader.text(node, "default"))
                    .map(str::to_owned);
                let Some(name_text) = reader.variable_name(name, "params") else { continue };
                if !seen.insert(name_text.clone()) {
                    let problem =
                        Problem::error(name.span, format!("parameter `{name_text}` stands twice"));
                    reader.report(problem.help("remove one of the two"));
                    continue;
                }
                params.named.push((name_text, default));
                params.spans.push(name.span);
            }
            Value::List(_) => reader.report(
                Problem::error(item.span, "a parameter must be a value or a mapping, not a list")
                    .help("write `- VALUE` or `- {name: NAME, default: VALUE}`"),
            ),
        }
    }
    params
}

/// Steps as they are read: nothing refers to anything yet.
struct Steps<'r, 'n, 'a> {
    reader: &'r mut Reader,
    defaults: std::sync::Arc<Options>,
    list: Vec<Step>,
    spans: Vec<Span>,
    edges: Vec<RawEdge<'n, 'a>>,
}

impl<'n, 'a> Steps<'_, 'n, 'a> {
    fn read(&mut self, fields: &Fields<'n, 'a>) {
        let how = "write `steps:` and below it a list of `- name: …` with a `command:` each";
        let Some(node) = fields.get("steps") else {
            let span = fields.key_span("steps").unwrap_or(fields.span);
            let what = if fields.key_span("steps").is_some() {
                "`steps` is empty"
            } else {
                "there are no `steps`"
            };
            self.reader.report(Problem::error(span, what).help(how));
            return;
        };
        let Value::List(items) = &node.value else {
            let message = format!("`steps` must be a list, not {}", node.what());
            self.reader.report(Problem::error(node.span, message).help(how));
            return;
        };
        if items.is_empty() {
            self.reader.report(Problem::error(node.span, "`steps` is empty").help(how));
        }
        self.list.reserve_exact(items.len() + HANDLER_KEYS.len());
        for item in items {
            let Some(fields) = self.reader.fields(item, "a step", STEP_KEYS) else { continue };
            let Some((name, span)) = self.name(&fields) else { continue };
            let at = StepIx::new(self.list.len());
            let step = step::read_step(self.reader, &fields, name, &self.defaults);
            step::read_edges(self.reader, &fields, at, &mut self.edges);
            self.list.push(step);
            self.spans.push(span);
        }
    }

    fn name<'f>(&mut self, fields: &Fields<'f, '_>) -> Option<(&'f str, Span)> {
        let Some(node) = fields.get("name") else {
            let problem = Problem::error(fields.span, "a step has no name");
            self.reader.report(problem.help("add `name: …`: others refer to it by that"));
            return None;
        };
        let name = short_name(self.reader, node)?;
        Some((name, node.span))
    }

    /// Resolves names, unfolds `after`, and refuses what can never start.
    fn connect(&mut self) -> Graph {
        let mut by_name: FxHashMap<&str, StepIx> =
            FxHashMap::with_capacity_and_hasher(self.list.len(), rustc_hash::FxBuildHasher);
        for (at, step) in self.list.iter().enumerate() {
            let first = *by_name.entry(&step.name).or_insert(StepIx::new(at));
            if first.index() != at {
                let line = self.spans[first.index()].line;
                self.reader.report(
                    Problem::error(self.spans[at], format!("step `{}` stands twice", step.name))
                        .help(format!("rename one: the other is on line {line}")),
                );
            }
        }
        let mut edges = Vec::with_capacity(self.edges.len());
        let mut afters = Vec::new();
        for raw in &self.edges {
            let Some(&parent) = by_name.get(raw.name()) else {
                // Looking for a name costs; what is not going to be told needs none.
                let names = self.list.iter().map(|step| &*step.name).take(2_000);
                let near = closest(raw.name(), names.filter(|_| !self.reader.is_full()));
                let help = match near {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "add that step, or remove the dependency".to_owned(),
                };
                let step = &self.list[raw.step.index()].name;
                let message =
                    format!("step `{step}` waits for `{}`, which does not exist", raw.name());
                self.reader.report(Problem::error(raw.span(), message).help(help));
                continue;
            };
            if raw.after {
                afters.push((raw.step, parent));
            } else {
                edges.push((raw.step, parent, raw.on));
            }
        }
        if let Err(step) = after::unfold(self.list.len(), &mut edges, &afters) {
            let message = format!(
                "`after` stands for more than {} dependencies in this file",
                after::MAX_AFTER_EDGES
            );
            self.reader.report(
                Problem::error(self.spans[step.index()], message)
                    .help("let these steps depend on one step that joins what they come after"),
            );
        }
        let graph = Graph::build(self.list.len(), &edges);
        for cycle in graph.cycles() {
            if self.reader.is_full() {
                self.reader.leave_out(Severity::Error);
            } else {
                self.report_cycle(&cycle);
            }
        }
        graph
    }

    fn report_cycle(&mut self, cycle: &[StepIx]) {
        let mut names: Vec<&str> =
            cycle.iter().map(|step| &*self.list[step.index()].name).collect();
        names.push(names[0]);
        if names.len() > 12 {
            names.splice(6..names.len() - 5, ["…"]);
        }
        let path = names.join(" → ");
        let closing = &self.list[cycle.get(1).unwrap_or(&cycle[0]).index()].name;
        let span = self.edges.iter().find(|raw| raw.step == cycle[0] && raw.name() == &**closing);
        let span = span.map_or(self.spans[cycle[0].index()], RawEdge::span);
        self.reader.report(
            Problem::error(span, format!("steps wait for each other: {path}"))
                .help("`→` reads \"waits for\"; remove one of these dependencies"),
        );
    }

    fn handlers(&mut self, fields: &Fields<'n, '_>) -> Handlers {
        let mut handlers = Handlers::default();
        let Some(node) = fields.get("handlers") else { return handlers };
        let Some(fields) = self.reader.fields(node, "handlers", HANDLER_KEYS) else {
            return handlers;
        };
        for &key in HANDLER_KEYS {
            let Some(node) = fields.get(key) else { continue };
            let name = format!("handlers.{key}");
            if let Some(at) = self.list.iter().position(|step| *step.name == *name) {
                let problem =
                    Problem::error(self.spans[at], format!("`{name}` is the name of a handler"));
                self.reader.report(problem.help("rename the step"));
                continue;
            }
            let Some(step) = step::read_handler(self.reader, node, &name, &self.defaults) else {
                continue;
            };
            let at = StepIx::new(self.list.len());
            self.list.push(step);
            self.spans.push(node.span);
            match key {
                "success" => handlers.success = Some(at),
                "failure" => handlers.failure = Some(at),
                _ => handlers.exit = Some(at),
            }
        }
        handlers
    }
}

/// Steps that some text quotes as `${step.path}`.
fn quoted_steps(workflow: &Workflow) -> Vec<StepIx> {
    let mut names: Vec<&str> =
        workflow.steps.iter().flat_map(lint::texts).flat_map(expand::quoted_names).collect();
    names.sort_unstable();
    names.dedup();
    let quoted = |step: &Step| names.binary_search(&&*step.name).is_ok();
    workflow.proper_steps().filter(|(_, step)| quoted(step)).map(|(at, _)| at).collect()
}
