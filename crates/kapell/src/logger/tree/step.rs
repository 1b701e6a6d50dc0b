//! One step as a line.

use std::collections::BTreeMap;
use std::time::Duration;

use kapell_core::flow::{Kind, State};
use kapell_core::workflow::{On, StepIx, Workflow, show_duration};
use kapell_node::flow::{NodeEvent, NodeSnapshot};

use super::super::style::Colour;
use super::line::Line;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How many parents are named.
const NAMED: usize = 3;

/// What is to be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) dag: &'a Workflow,
    pub(super) states: &'a [NodeSnapshot],
    pub(super) reasons: &'a Reasons,
    /// Counts frames, to turn the spinner.
    pub(super) turn: usize,
    pub(super) elapsed: Duration,
}

impl Scene<'_> {
    pub(super) fn spinner(&self) -> &'static str {
        SPINNER[self.turn % SPINNER.len()]
    }

    /// A step, after the strokes that lead to it and before what there is to note about it.
    pub(super) fn step(&self, step: StepIx, strokes: &str, note: &str) -> Line {
        let snapshot = &self.states[step.index()];
        let (sign, colour) = sign(snapshot.state);
        let sign = if snapshot.state == State::Running { self.spinner() } else { sign };
        let line = Line::default().paint(Colour::Dim, strokes).paint(colour, sign).plain(" ");
        let name = &*self.dag.step(step).name;
        let line = match snapshot.state {
            State::Running | State::Failed => line.paint(Colour::Bold, name),
            State::Waiting | State::Ready | State::Skipped | State::Cancelled | State::Outside => {
                line.paint(Colour::Dim, name)
            }
            State::Retrying | State::Succeeded | State::FailedContinue | State::Kept => {
                line.plain(name)
            }
        };
        let line = match snapshot.elapsed {
            Some(elapsed) => line.paint(Colour::Dim, &format!("  {}", show_duration(elapsed))),
            None => line,
        };
        self.story(line, step, snapshot).paint(Colour::Dim, note)
    }

    /// How the step came to be where it is.
    fn story(&self, line: Line, step: StepIx, snapshot: &NodeSnapshot) -> Line {
        let error = snapshot.error.as_deref().map(|error| format!("  {error}")).unwrap_or_default();
        let attempt = || {
            let all = self.dag.step(step).options.retry.limit.saturating_add(1);
            format!("attempt {} of {all}", snapshot.attempt.saturating_add(1))
        };
        match snapshot.state {
            State::Running if snapshot.attempt > 0 => {
                line.paint(Colour::Yellow, &format!("  {}", attempt()))
            }
            State::Succeeded if snapshot.attempt > 0 => {
                line.paint(Colour::Dim, &format!("  {}", attempt()))
            }
            State::Retrying => {
                let why = self.reasons.get(step).map(|why| format!("{why}, ")).unwrap_or_default();
                line.paint(Colour::Yellow, &format!("  {why}{} follows", attempt()))
            }
            State::Failed => line.paint(Colour::Red, &error),
            State::FailedContinue => {
                line.paint(Colour::Yellow, &error).paint(Colour::Dim, " (continuing)")
            }
            State::Skipped => {
                let why = self.reasons.get(step).map(|why| format!(": {why}")).unwrap_or_default();
                line.paint(Colour::Dim, &format!("  skipped{why}"))
            }
            State::Cancelled => line.paint(Colour::Dim, "  cancelled"),
            State::Kept => line.paint(Colour::Dim, "  kept from an earlier run"),
            State::Outside => line.paint(Colour::Dim, "  not part of this run"),
            State::Waiting | State::Ready | State::Running | State::Succeeded => line,
        }
    }

    /// What a step still waits for.
    pub(super) fn awaited(&self, step: StepIx) -> String {
        if step.index() >= self.dag.len() {
            return String::new();
        }
        let parents = self.dag.graph.parents(step).iter().map(|edge| edge.step);
        let open = parents.filter(|parent| !self.states[parent.index()].state.is_final());
        // One more than is named: whether there are more is all that matters.
        let open: Vec<StepIx> = open.take(NAMED + 1).collect();
        match names(self.dag, &open, open.len() > NAMED) {
            names if names.is_empty() => names,
            names => format!("  after {names}"),
        }
    }
}

/// The first names of a list of steps.
fn names(dag: &Workflow, steps: &[StepIx], more: bool) -> String {
    let names: Vec<&str> = steps.iter().take(NAMED).map(|&step| &*dag.step(step).name).collect();
    format!("{}{}", names.join(", "), if more { ", …" } else { "" })
}

/// What the strokes of a tree cannot show of a step's dependencies.
pub(super) fn dependencies(dag: &Workflow, step: StepIx, also: &[StepIx]) -> String {
    let mut note = String::new();
    let conditional = dag.graph.parents(step).iter().filter(|edge| edge.on != On::Success);
    for edge in conditional.take(NAMED) {
        note.push_str(&format!("  [on {} of {}]", edge.on, dag.step(edge.step).name));
    }
    if !also.is_empty() {
        note.push_str(&format!("  (also after {})", names(dag, also, also.len() > NAMED)));
    }
    note
}

/// The sign of a state, and its colour.
#[rustfmt::skip]
pub(super) const fn sign(state: State) -> (&'static str, Colour) {
    match state {
        State::Waiting        => ("·", Colour::Dim),
        State::Ready          => ("◦", Colour::Dim),
        State::Running        => ("▸", Colour::Blue),
        State::Retrying       => ("↻", Colour::Yellow),
        State::Succeeded      => ("✓", Colour::Green),
        State::Failed         => ("✗", Colour::Red),
        State::FailedContinue => ("⚠", Colour::Yellow),
        State::Skipped        => ("○", Colour::Dim),
        State::Cancelled      => ("⊘", Colour::Dim),
        State::Kept           => ("✓", Colour::Dim),
        State::Outside        => ("–", Colour::Dim),
    }
}

/// Why steps are skipped or tried again: events tell it, snapshots do not.
#[derive(Debug, Default)]
pub(super) struct Reasons(BTreeMap<StepIx, String>);

impl Reasons {
    /// More are not kept: nobody could read them.
    const MOST: usize = 1_000;

    pub(super) fn learn(&mut self, event: &NodeEvent<'_>) {
        let reason = match event.kind {
            Kind::NodeRetrying => event.error,
            Kind::NodeSkipped => event.reason,
            Kind::NodeStarted
            | Kind::NodeCompleted
            | Kind::NodeFailed
            | Kind::NodeFailedContinue
            | Kind::NodeCancelled
            | Kind::WorkflowStarted
            | Kind::WorkflowCompleted
            | Kind::WorkflowFailed => None,
        };
        match reason {
            Some(reason) if self.0.len() < Self::MOST => {
                self.0.insert(event.step, reason.chars().take(200).collect());
            }
            Some(_) => {}
            None => drop(self.0.remove(&event.step)),
        }
    }

    fn get(&self, step: StepIx) -> Option<&str> {
        self.0.get(&step).map(String::as_str)
    }
}
