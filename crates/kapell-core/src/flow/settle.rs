//! What the end of one step means for those that depend on it.

use super::machine::{Effect, Flow};
use super::{Cause, Fate, Kind, Note, State, satisfied};
use crate::seams::Moment;
use crate::workflow::{On, OnFailure, Requires, StepIx};

impl Flow {
    /// Ends a step as failed: fatally, or tolerated by itself or by one who waits for the failure.
    pub(super) fn fail(
        &mut self,
        step: StepIx,
        error: String,
        exit_code: Option<i32>,
        now: Moment,
        effects: &mut Vec<Effect>,
    ) {
        let tolerated = self.workflow.step(step).options.continue_on_error || self.is_awaited(step);
        let (state, kind) = if tolerated {
            (State::FailedContinue, Kind::NodeFailedContinue)
        } else {
            (State::Failed, Kind::NodeFailed)
        };
        self.go(step, state);
        let note = Note { exit_code, error: Some(error.clone()), ..self.end_note(step, kind, now) };
        effects.push(Effect::Note(note));
        self.errors.insert(step, error);
        if !tolerated {
            if !matches!(self.cause, Some(Cause::Timeout(_))) {
                self.first_failure.get_or_insert(step);
            }
            if step.index() < self.workflow.len() {
                self.react_to_failure(step, now, effects);
            }
        }
        self.settled(step, now, effects);
    }

    fn react_to_failure(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        match self.workflow.on_failure {
            OnFailure::Stop => self.stop(Cause::Failure(step), now, effects),
            OnFailure::Finish => self.finish_up(step, now, effects),
            OnFailure::Continue => {}
        }
    }

    /// Whether some step of this run waits for this one to fail.
    fn is_awaited(&self, step: StepIx) -> bool {
        self.workflow.graph.children(step).iter().any(|edge| {
            matches!(edge.on, On::Failure | On::Done)
                && !matches!(self.steps[edge.step.index()].fate, Fate::Counts(_))
        })
    }

    pub(super) fn skip(
        &mut self,
        step: StepIx,
        reason: String,
        now: Moment,
        effects: &mut Vec<Effect>,
    ) {
        self.go(step, State::Skipped);
        let note = Note { reason: Some(reason), ..self.end_note(step, Kind::NodeSkipped, now) };
        effects.push(Effect::Note(note));
        self.settled(step, now, effects);
    }

    /// Counts the end of a step and tells those who waited for it.
    pub(super) fn settled(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        if step.index() < self.workflow.len() {
            self.unfinished -= 1;
            self.tell_children(step, now, effects);
        }
    }

    /// Tells all who wait for `step` how it ended; skips follow skips without recursion.
    pub(super) fn tell_children(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        let workflow = std::sync::Arc::clone(&self.workflow);
        let mut ended = vec![step];
        while let Some(parent) = ended.pop() {
            let state = self.state(parent);
            let bar = self.bar_of(parent, state);
            let left_out = matches!(self.steps[parent.index()].fate, Fate::Counts(_));
            for edge in workflow.graph.children(parent) {
                let child = &mut self.steps[edge.step.index()];
                child.waiting -= 1;
                if satisfied(edge.on, state) || (left_out && child.fate == Fate::Picked) {
                    child.met += 1;
                } else {
                    child.unmet += 1;
                }
                if edge.on == On::Success {
                    // The first in the file, so that the reason does not depend on timing either.
                    child.barred_by = child.barred_by.into_iter().chain(bar).min();
                }
                if child.waiting == 0
                    && child.state() == State::Waiting
                    && self.decide(edge.step, now, effects)
                {
                    ended.push(edge.step);
                }
            }
        }
    }

    /// The fatal failure that stands behind a parent's end, which nothing after it may ignore.
    fn bar_of(&self, parent: StepIx, state: State) -> Option<StepIx> {
        match state {
            State::Failed => Some(parent),
            State::Skipped => self.steps[parent.index()].barred_by,
            State::Waiting
            | State::Ready
            | State::Running
            | State::Retrying
            | State::Succeeded
            | State::FailedContinue
            | State::Cancelled
            | State::Kept
            | State::Outside => None,
        }
    }

    /// All parents of a step have ended: runs or skips it. True if it was skipped.
    fn decide(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) -> bool {
        let it = &self.steps[step.index()];
        let runs = match self.workflow.step(step).options.requires {
            Requires::Any => it.met > 0,
            Requires::All => it.unmet == 0,
        };
        let reason = match it.barred_by {
            Some(failed) => format!("`{}` failed", self.workflow.step(failed).name),
            None if runs => {
                self.make_ready(step);
                return false;
            }
            None => self.why_not(step),
        };
        self.go(step, State::Skipped);
        let note = Note { reason: Some(reason), ..self.end_note(step, Kind::NodeSkipped, now) };
        effects.push(Effect::Note(note));
        self.unfinished -= 1;
        true
    }

    /// Which dependencies were not satisfied, the first few by name.
    fn why_not(&self, step: StepIx) -> String {
        const NAMED: usize = 3;
        let parents = self.workflow.graph.parents(step);
        let unmet = parents.iter().filter(|edge| !satisfied(edge.on, self.state(edge.step)));
        let mut parts: Vec<String> = unmet
            .clone()
            .take(NAMED)
            .map(|edge| {
                let name = &self.workflow.step(edge.step).name;
                let how = match self.state(edge.step) {
                    State::Succeeded | State::Kept => "succeeded",
                    State::Failed | State::FailedContinue => "failed",
                    State::Skipped => "was skipped",
                    State::Cancelled => "was cancelled",
                    State::Waiting
                    | State::Ready
                    | State::Running
                    | State::Retrying
                    | State::Outside => "did not run",
                };
                format!("`{name}` {how}")
            })
            .collect();
        let more = unmet.count().saturating_sub(NAMED);
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        parts.join(", ")
    }
}
