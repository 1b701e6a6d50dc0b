//! What is allowed in a file, but hardly meant, and what no shell would understand.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Step, StepIx, Work, Workflow};
use crate::expand::{self, Look};
use crate::source::{Problem, Severity, Span, closest};

/// Beyond this many outputs nobody waits for the answer.
const MAX_OUTPUTS: usize = 200;
/// Looking for what was meant costs; after this many problems nobody reads it.
const MAX_SUGGESTIONS: usize = 200;

/// Shells that take `${name.path}` for what it is to us: nothing.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "busybox"];
/// A shell that we rewrite for, but to which `${name.path}` means something.
const SHELL_WITH_PATHS: &str = "ksh";

/// Everything that is odd about outputs and their use.
pub(super) fn find(workflow: &Workflow, spans: &[Span]) -> Vec<Problem> {
    let looks: Vec<Vec<(Look<'_>, Place)>> = workflow.steps.iter().map(looks).collect();
    let mut problems = unknown_names(workflow, spans, &looks);
    problems.extend(unordered_outputs(workflow, spans, &looks));
    problems
}

/// Every text of a step in which references are looked for.
pub(super) fn texts(step: &Step) -> impl Iterator<Item = &str> {
    let (main, args): (Option<&str>, &[Box<str>]) = match &step.work {
        Work::Join | Work::Pod => (None, &[]),
        Work::Shell(text) | Work::Script(text) => (Some(text), &[]),
        Work::Exec { program, args } => (Some(program), args),
    };
    let options = &step.options;
    let conditions = options.when.iter().chain(&options.preconditions);
    main.into_iter()
        .chain(args.iter().map(|arg| &**arg))
        .chain(conditions.map(|condition| condition.predicate.as_str()))
        .chain(options.dir.as_deref())
        .chain(options.env.iter().map(|(_, value)| value.as_str()))
        .chain(images(step))
}

/// The images of a step that runs on a cluster.
fn images(step: &Step) -> impl Iterator<Item = &str> {
    step.options.on_kubernetes().into_iter().flat_map(|it| it.payload.images())
}

/// Where a look into an output stands, which decides what becomes of it if there is no such output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The shell fails.
    Shell,
    /// The program gets it as it stands.
    Argument,
    /// Who knows.
    Elsewhere,
}

/// Every `${name.path}` of a step that will be looked up.
fn looks(step: &Step) -> Vec<(Look<'_>, Place)> {
    let mut found = Vec::new();
    if !texts(step).any(|text| text.contains("${")) {
        return found;
    }
    let options = &step.options;
    let shell = options.shell.as_ref().and_then(|words| words.first()).map_or("sh", String::as_str);
    let mut in_shell = |program: Option<Place>, text| {
        let looks = program.map(|place| (expand::looks_in_shell(text), place));
        found.extend(
            looks
                .into_iter()
                .flat_map(|(looks, place)| looks.into_iter().map(move |look| (look, place))),
        );
    };
    for condition in options.when.iter().chain(&options.preconditions) {
        in_shell(place_in([shell]), &condition.predicate);
    }
    let mut arguments: Vec<&str> = Vec::new();
    match &step.work {
        Work::Join | Work::Pod => {}
        Work::Shell(text) => in_shell(place_in([shell]), text),
        Work::Script(text) => {
            let line = text.lines().next().and_then(|line| line.strip_prefix("#!"));
            let place = match line {
                Some(line) => place_in(line.split_whitespace()),
                None => place_in([shell]),
            };
            in_shell(place, text);
        }
        Work::Exec { program, args } => {
            arguments.push(program);
            arguments.extend(args.iter().map(|arg| &**arg));
        }
    }
    let values = options.env.iter().map(|(_, value)| value.as_str());
    let others = values
        .chain(options.dir.as_deref())
        .chain(images(step))
        .map(|text| (text, Place::Elsewhere));
    for (text, place) in arguments.into_iter().map(|arg| (arg, Place::Argument)).chain(others) {
        found.extend(expand::looks_in_text(text).into_iter().map(|look| (look, place)));
    }
    found
}

/// What text is to the first of these programs that is a shell we know. None: not looked at.
fn place_in<'a>(programs: impl IntoIterator<Item = &'a str>) -> Option<Place> {
    programs.into_iter().find_map(|program| {
        let name = program.rsplit('/').next().unwrap_or(program);
        if SHELLS.contains(&name) {
            Some(Place::Shell)
        } else {
            (name == SHELL_WITH_PATHS).then_some(Place::Elsewhere)
        }
    })
}

/// Looks into what does not exist.
fn unknown_names(
    workflow: &Workflow,
    spans: &[Span],
    looks: &[Vec<(Look<'_>, Place)>],
) -> Vec<Problem> {
    let mut problems = Vec::new();
    if looks.iter().all(Vec::is_empty) {
        return problems;
    }
    let outputs: Vec<&str> = workflow
        .steps
        .iter()
        .flat_map(|step| step.options.output.stdout.iter().chain(&step.options.output.stderr))
        .map(String::as_str)
        .chain(workflow.proper_steps().map(|(_, step)| &*step.name))
        .collect();
    let declared = workflow.params.named.iter().map(|(name, _)| name);
    let declared = declared.chain(workflow.env.iter().map(|(name, _)| name)).map(String::as_str);
    let known: FxHashSet<&str> = outputs.iter().copied().chain(declared).collect();
    for ((step, looks), &span) in workflow.steps.iter().zip(looks).zip(spans) {
        let own: FxHashSet<&str> = if looks.is_empty() {
            FxHashSet::default()
        } else {
            step.options.env.iter().map(|(name, _)| name.as_str()).collect()
        };
        for (look, place) in looks {
            if !look.dotted || known.contains(look.name) || own.contains(look.name) {
                continue;
            }
            let candidates = outputs.iter().copied().take(2_000);
            let wanted = problems.len() < MAX_SUGGESTIONS;
            let near = closest(look.name, candidates.filter(|_| wanted));
            problems.extend(unknown_name(step, *look, *place, near, span));
        }
    }
    problems.dedup();
    problems
}

fn unknown_name(
    step: &Step,
    look: Look<'_>,
    place: Place,
    near: Option<&str>,
    span: Span,
) -> Option<Problem> {
    let Look { name, text, .. } = look;
    // To a shell `${x-a.b}` is `$x`, or else `a.b`.
    let may_be_default = place == Place::Shell && name.contains('-');
    if may_be_default && !near.is_some_and(|near| near.contains('-')) {
        return None;
    }
    let severity = match place {
        Place::Shell if may_be_default => Severity::Warning,
        Place::Shell => Severity::Error,
        Place::Argument if near.is_some() => Severity::Error,
        Place::Argument | Place::Elsewhere => Severity::Warning,
    };
    let help = match (near, place) {
        (Some(near), _) => {
            format!("did you mean `{}`?", text.replacen(name, near, 1))
        }
        (None, Place::Shell) => "name a step or an output variable before the dot".to_owned(),
        (None, Place::Argument | Place::Elsewhere) => {
            format!("write `\\{text}` if it is meant literally")
        }
    };
    let message = format!(
        "step `{}` uses `{text}`, but no step and no output variable is called `{name}`",
        step.name
    );
    Some(Problem { severity, ..Problem::error(span, message).help(help) })
}

/// A name under which an output is seen, and the step that it comes from.
#[derive(Debug, Clone, Copy)]
struct Setter<'w> {
    name: &'w str,
    step: StepIx,
    is_variable: bool,
}

/// All output variables, and all steps that some other looks into.
fn setters<'w>(workflow: &'w Workflow, looks: &[Vec<(Look<'w>, Place)>]) -> Vec<Setter<'w>> {
    let mut setters: Vec<Setter<'_>> = workflow
        .proper_steps()
        .flat_map(|(step, it)| {
            let output = &it.options.output;
            let names = output.stdout.iter().chain(&output.stderr);
            names.map(move |name| Setter { name, step, is_variable: true })
        })
        .collect();
    let variables: FxHashSet<&str> = setters.iter().map(|setter| setter.name).collect();
    if setters.len() > MAX_OUTPUTS {
        setters.clear();
    }
    if looks.iter().all(Vec::is_empty) {
        return setters;
    }
    let by_name: FxHashMap<&str, StepIx> =
        workflow.proper_steps().map(|(at, step)| (&*step.name, at)).collect();
    let mut names: Vec<&str> = looks.iter().flatten().map(|(look, _)| look.name).collect();
    names.sort_unstable();
    names.dedup();
    let looked_into = names.into_iter().filter(|name| !variables.contains(name));
    let steps = looked_into.filter_map(|name| by_name.get(name).map(|&step| (name, step)));
    let steps = steps.map(|(name, step)| Setter { name, step, is_variable: false });
    setters.extend(steps.take(MAX_OUTPUTS));
    setters
}

/// Steps that use an output without waiting for the step that sets it: what they see is chance.
fn unordered_outputs<'w>(
    workflow: &'w Workflow,
    spans: &[Span],
    looks: &[Vec<(Look<'w>, Place)>],
) -> Vec<Problem> {
    let setters = setters(workflow, looks);
    let followers: Vec<Vec<bool>> =
        setters.iter().map(|setter| followers(workflow, setter.step)).collect();
    let mut problems = Vec::new();
    if setters.is_empty() {
        return problems;
    }
    for (at, step) in workflow.proper_steps() {
        let used: Vec<&str> = texts(step).flat_map(expand::names).collect();
        let looked_into = |name: &str| looks[at.index()].iter().any(|(look, _)| look.name == name);
        for setter in setters.iter().filter(|setter| {
            if setter.is_variable { used.contains(&setter.name) } else { looked_into(setter.name) }
        }) {
            let name = setter.name;
            let mut of_name = setters.iter().zip(&followers).filter(|(it, _)| it.name == name);
            let ordered = of_name.clone().any(|(it, follows)| it.step == at || follows[at.index()]);
            if let (false, Some((first, _))) = (ordered, of_name.next()) {
                let sets = &workflow.step(first.step).name;
                let message = if setter.is_variable {
                    format!(
                        "step `{}` uses `{name}`, but does not wait for `{sets}`, which sets it",
                        step.name
                    )
                } else {
                    let step = &step.name;
                    format!("step `{step}` uses the output of `{sets}`, but does not wait for it")
                };
                problems.push(
                    Problem::warning(spans[at.index()], message).help(format!(
                        "add `depends: {sets}`; else it is chance what the step sees"
                    )),
                );
            }
        }
    }
    problems.dedup();
    problems
}

fn followers(workflow: &Workflow, step: StepIx) -> Vec<bool> {
    let mut follows = vec![false; workflow.len()];
    for follower in workflow.graph.descendants(step) {
        follows[follower.index()] = true;
    }
    follows
}
