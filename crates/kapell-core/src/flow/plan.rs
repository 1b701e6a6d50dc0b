//! Which steps a run executes, given what an earlier run did and what was asked for.

use std::collections::BTreeMap;

use super::{Placed, State};
use crate::workflow::{Requires, StepIx, Work, Workflow};

/// What an earlier run left behind, by step name: the file may have changed since.
#[derive(Debug, Clone, Default)]
pub struct Past {
    pub run: String,
    pub steps: BTreeMap<String, PastStep>,
}

/// How a step ended in an earlier run, and what it gave to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastStep {
    pub state: State,
    pub outputs: Vec<(String, String)>,
    pub stdout: Option<String>,
    /// What ran its command elsewhere when the run broke off.
    pub task: Option<Placed>,
}

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Keep what succeeded in the past run.
    pub resume: bool,
    /// Run these steps and everything downstream of them.
    pub from: Vec<StepIx>,
    /// Run these steps and nothing else.
    pub only: Vec<StepIx>,
    /// Steps that do not say where they run do so on cells.
    pub on_cells: bool,
}

impl Selection {
    fn picks(&self) -> bool {
        !self.from.is_empty() || !self.only.is_empty()
    }
}

/// What becomes of a step in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Run,
    /// Runs, and its command was begun by the run before: the first attempt is that one.
    GoesOn,
    /// Picked by hand: who picks vouches for all it depends on that is not part of this run.
    Picked,
    /// Counts as ended in this state, without being run.
    Counts(State),
}

/// Decides for every step whether it runs.
pub fn fates(workflow: &Workflow, selection: &Selection, past: Option<&Past>) -> Vec<Fate> {
    let before = |step: StepIx| {
        past.and_then(|past| past.steps.get(&*workflow.step(step).name)).map(|step| step.state)
    };
    let goes_on = |step: StepIx| {
        let options = &workflow.step(step).options;
        let is_there = match placed(workflow, past, step) {
            Some(Placed::Task(_)) => options.on_cell(selection.on_cells).is_some(),
            Some(Placed::Job(_)) => options.on_kubernetes().is_some(),
            None => false,
        };
        selection.resume && !selection.picks() && is_there
    };
    let mut picked = vec![!selection.picks(); workflow.len()];
    for &step in selection.from.iter().chain(&selection.only) {
        picked[step.index()] = true;
    }
    for &step in &selection.from {
        for follower in workflow.graph.descendants(step) {
            picked[follower.index()] = true;
        }
    }
    workflow
        .proper_steps()
        .map(|(step, _)| {
            let by_hand = selection.from.contains(&step) || selection.only.contains(&step);
            match before(step) {
                _ if by_hand => Fate::Picked,
                Some(State::Succeeded | State::Kept) if selection.resume && !selection.picks() => {
                    Fate::Counts(State::Kept)
                }
                _ if picked[step.index()] => {
                    if goes_on(step) {
                        Fate::GoesOn
                    } else {
                        Fate::Run
                    }
                }
                Some(State::Succeeded | State::Kept) => Fate::Counts(State::Kept),
                Some(state @ (State::FailedContinue | State::Skipped)) => Fate::Counts(state),
                Some(_) | None => Fate::Counts(State::Outside),
            }
        })
        .collect()
}

fn placed<'p>(workflow: &Workflow, past: Option<&'p Past>, step: StepIx) -> Option<&'p Placed> {
    past?.steps.get(&*workflow.step(step).name)?.task.as_ref()
}

/// One line of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub step: StepIx,
    pub runs: bool,
    pub why: String,
}

/// Says in execution order what would run, and why.
pub fn decisions(workflow: &Workflow, fates: &[Fate], past: Option<&Past>) -> Vec<Decision> {
    let run = past.map_or("", |past| past.run.as_str());
    workflow
        .graph
        .order()
        .into_iter()
        .map(|step| {
            let (runs, why) = match fates[step.index()] {
                Fate::Counts(State::Kept) => (false, format!("kept: succeeded in run {run}")),
                Fate::Counts(State::Outside) => (false, "not selected".to_owned()),
                Fate::Counts(state) => (false, format!("not selected: {state} in run {run}")),
                Fate::Picked => (true, "selected".to_owned()),
                Fate::GoesOn => {
                    let place = placed(workflow, past, step).map_or("elsewhere", Placed::place);
                    (true, format!("goes on: begun {place} in run {run}"))
                }
                Fate::Run => (true, why_it_runs(workflow, step, past)),
            };
            Decision { step, runs, why }
        })
        .collect()
}

fn why_it_runs(workflow: &Workflow, step: StepIx, past: Option<&Past>) -> String {
    let it = workflow.step(step);
    let parents = workflow.graph.parents(step);
    let names: Vec<_> = parents
        .iter()
        .take(4)
        .map(|edge| {
            let name = &workflow.step(edge.step).name;
            if edge.on == crate::workflow::On::Success {
                name.to_string()
            } else {
                format!("{name} ({})", edge.on)
            }
        })
        .collect();
    let more = if parents.len() > names.len() {
        format!(" and {} more", parents.len() - names.len())
    } else {
        String::new()
    };
    let mut why = match (parents.len(), it.options.requires) {
        (0, _) => "depends on nothing".to_owned(),
        (1, _) => format!("after {}", names[0]),
        (_, Requires::Any) => format!("after {}{more}, if any is satisfied", names.join(", ")),
        (_, Requires::All) => format!("after {}{more}, if all are satisfied", names.join(", ")),
    };
    if let Some(condition) = &it.options.when {
        why.push_str(&format!("; when `{}`", condition.predicate.trim()));
        if let Some(expected) = &condition.expected {
            why.push_str(&format!(" gives '{expected}'"));
        }
    }
    if it.work == Work::Join {
        why.push_str("; joins, does nothing itself");
    }
    match past.map(|past| past.steps.get(&*it.name).map(|step| step.state)) {
        Some(Some(state)) => why.push_str(&format!("; {state} last time")),
        Some(None) => why.push_str("; never ran last time"),
        None => {}
    }
    why
}
