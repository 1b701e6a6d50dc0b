//! What is allowed in a file, but hardly meant.

use super::{Step, StepIx, Work, Workflow};
use crate::expand;
use crate::source::{Problem, Span};

/// Beyond this many output variables nobody waits for the answer.
const MAX_VARIABLES: usize = 200;

/// Every text of a step in which references are looked for.
pub(super) fn texts(step: &Step) -> impl Iterator<Item = &str> {
    let (main, args): (Option<&str>, &[Box<str>]) = match &step.work {
        Work::Join => (None, &[]),
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
}

/// Steps that use an output without waiting for the step that sets it: what they see is chance.
pub(super) fn unordered_outputs(workflow: &Workflow, spans: &[Span]) -> Vec<Problem> {
    let setters: Vec<(&str, StepIx)> = workflow
        .proper_steps()
        .flat_map(|(at, step)| {
            let output = &step.options.output;
            output.stdout.iter().chain(&output.stderr).map(move |name| (name.as_str(), at))
        })
        .collect();
    if setters.is_empty() || setters.len() > MAX_VARIABLES {
        return Vec::new();
    }
    let followers: Vec<Vec<bool>> =
        setters.iter().map(|&(_, setter)| followers(workflow, setter)).collect();
    let mut problems = Vec::new();
    for (at, step) in workflow.proper_steps() {
        let used: Vec<&str> = texts(step).flat_map(expand::names).collect();
        for (name, _) in setters.iter().filter(|(name, _)| used.contains(name)) {
            let mut of_name =
                setters.iter().zip(&followers).filter(|((other, _), _)| other == name);
            let ordered =
                of_name.clone().any(|((_, setter), follows)| *setter == at || follows[at.index()]);
            if let (false, Some(((_, setter), _))) = (ordered, of_name.next()) {
                let setter = &workflow.step(*setter).name;
                let message = format!(
                    "step `{}` uses `{name}`, but does not wait for `{setter}`, which sets it",
                    step.name
                );
                let problem = Problem::warning(spans[at.index()], message);
                problems.push(problem.help(format!(
                    "add `depends: {setter}`; else it is chance what the step sees"
                )));
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
