//! What holds in every run, checked at every effect of every test.

use std::collections::{BTreeMap, BTreeSet};

use crate::flow::{Effect, Fate, Flow, Kind, Note, Phase, State, Verdict};
use crate::seams::Moment;
use crate::workflow::StepIx;

/// More steps than this, and looking at every state after every event would take too long.
const ALL_STATES_UP_TO: usize = 100;

#[derive(Debug)]
pub(super) struct Watch {
    workers: usize,
    states: Vec<State>,
    /// Steps with a command that runs, and whether it was asked to end.
    running: BTreeMap<StepIx, bool>,
    ended: BTreeSet<StepIx>,
    attempts: BTreeMap<StepIx, u32>,
    last_kind: Option<Kind>,
    finished: bool,
}

impl Watch {
    pub(super) fn new(flow: &Flow, fates: &[Fate], workers: u32) -> Self {
        let counted = fates.iter().enumerate().filter(|(_, fate)| matches!(fate, Fate::Counts(_)));
        Self {
            workers: usize::try_from(workers).expect("few workers"),
            states: states(flow),
            running: BTreeMap::new(),
            ended: counted.map(|(at, _)| StepIx::new(at)).collect(),
            attempts: BTreeMap::new(),
            last_kind: None,
            finished: false,
        }
    }

    /// Checks one effect. The states are already those at the end of its event.
    pub(super) fn effect(&mut self, effect: &Effect, flow: &Flow, now: Moment) {
        assert!(!self.finished, "an effect after the end: {effect:?}");
        match *effect {
            Effect::Start { step, phase, attempt } => self.start(step, phase, attempt, flow),
            Effect::Signal { step, hard } => {
                let asked = self.running.get_mut(&step).expect("only what runs is signalled");
                assert!(*asked || !hard, "{step:?} is killed before it was asked to end");
                *asked = true;
            }
            Effect::Note(ref note) => {
                assert_eq!(note.at, now, "an event is told when it happens: {note:?}");
                self.note(note, flow);
            }
            Effect::Finished(verdict) => self.finish(verdict, flow),
        }
    }

    fn start(&mut self, step: StepIx, phase: Phase, attempt: u32, flow: &Flow) {
        let workflow = flow.workflow();
        // The next command of a step starts only after the one before has ended: the driver checks.
        self.running.remove(&step);
        assert!(!self.ended.contains(&step), "{step:?} starts after its end");
        assert_eq!(attempt, flow.attempt(step), "{step:?}");
        match phase {
            Phase::When => assert!(!self.attempts.contains_key(&step), "`when` after a start"),
            Phase::Precondition(_) | Phase::Main => {
                assert_eq!(self.attempts.get(&step), Some(&(attempt + 1)), "told before it runs");
            }
        }
        for edge in workflow.graph.parents(step) {
            assert!(
                self.ended.contains(&edge.step),
                "{step:?} starts before {:?} ended",
                edge.step
            );
        }
        if step.index() >= workflow.len() {
            assert_eq!(self.steps_ended(flow), workflow.len(), "a handler runs after all steps");
            assert!(self.running.is_empty(), "one handler at a time");
        }
        self.running.insert(step, false);
        assert!(self.running.len() <= self.workers, "more running than there are workers");
    }

    fn note(&mut self, note: &Note, flow: &Flow) {
        if self.last_kind.is_none() {
            assert_eq!(note.kind, Kind::WorkflowStarted, "the first event");
        }
        self.last_kind = Some(note.kind);
        let Some(step) = note.step else { return };
        assert!(!self.ended.contains(&step), "{step:?} tells something after its end: {note:?}");
        let limit = flow.workflow().step(step).options.retry.limit;
        let attempts = self.attempts.get(&step).copied().unwrap_or(0);
        let ends_as = match note.kind {
            Kind::NodeStarted => {
                assert!(attempts <= limit, "{step:?} has more attempts than allowed");
                self.attempts.insert(step, note.attempt + 1);
                return;
            }
            Kind::NodeRetrying => {
                assert!(note.attempt < limit, "{step:?} retries more often than allowed");
                self.running.remove(&step);
                return;
            }
            Kind::NodeCompleted => State::Succeeded,
            Kind::NodeFailed => State::Failed,
            Kind::NodeFailedContinue => State::FailedContinue,
            Kind::NodeSkipped => State::Skipped,
            Kind::NodeCancelled => State::Cancelled,
            Kind::WorkflowStarted | Kind::WorkflowCompleted | Kind::WorkflowFailed => {
                panic!("{note:?} names a step")
            }
        };
        assert_eq!(flow.state(step), ends_as, "{step:?} is what was told");
        self.running.remove(&step);
        self.ended.insert(step);
    }

    fn finish(&mut self, verdict: Verdict, flow: &Flow) {
        self.finished = true;
        let want = match verdict {
            Verdict::Succeeded => Kind::WorkflowCompleted,
            Verdict::Failed(_) | Verdict::Interrupted(_) => Kind::WorkflowFailed,
        };
        assert_eq!(self.last_kind, Some(want), "the last event");
        assert!(self.running.is_empty(), "the run ends while {:?} run", self.running);
        assert_eq!(self.steps_ended(flow), flow.workflow().len(), "every step has ended");
        for (step, _) in flow.workflow().proper_steps() {
            assert!(flow.state(step).is_final(), "{step:?} is {}", flow.state(step));
        }
    }

    /// How many steps have ended, handlers not counted.
    fn steps_ended(&self, flow: &Flow) -> usize {
        self.ended.range(..StepIx::new(flow.workflow().len())).count()
    }

    /// Checks that every state changed along the table.
    pub(super) fn after_event(&mut self, flow: &Flow) {
        let now = states(flow);
        for (at, (&before, &after)) in self.states.iter().zip(&now).enumerate() {
            assert!(leads_to(before, after), "step {at} went from {before} to {after}");
        }
        self.states = now;
    }
}

fn states(flow: &Flow) -> Vec<State> {
    let len = flow.workflow().steps.len();
    let len = if len > ALL_STATES_UP_TO { 0 } else { len };
    (0..len).map(|at| flow.state(StepIx::new(at))).collect()
}

/// Whether the table has a way from one state to the other, of any length.
fn leads_to(from: State, to: State) -> bool {
    let mut seen = vec![from];
    let mut next = 0;
    while let Some(&state) = seen.get(next) {
        if state == to {
            return true;
        }
        for state in state.next() {
            if !seen.contains(state) {
                seen.push(*state);
            }
        }
        next += 1;
    }
    false
}
