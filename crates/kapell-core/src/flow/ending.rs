//! How a run comes to its end: stopped, finished, handled.

use super::machine::{Effect, Flow, Mode, Told};
use super::timers::Timer;
use super::{Cause, Kind, Note, State, Verdict};
use crate::seams::Moment;
use crate::workflow::StepIx;

const SIGKILL: i32 = 9;

impl Flow {
    /// Tells everything that runs to end and cancels everything that does not run yet.
    pub(super) fn stop(&mut self, cause: Cause, now: Moment, effects: &mut Vec<Effect>) {
        match self.mode {
            Mode::Running | Mode::Finishing => {
                self.cause = Some(cause);
                self.mode = Mode::Stopping;
                self.cancel_unstarted(cause, now, effects);
            }
            Mode::Handling => {
                if self.verdict() == Verdict::Succeeded {
                    self.cause = Some(cause);
                }
                self.interrupt = Some(cause);
                if let Some(handler) = self.waiting_handler() {
                    self.ready.clear();
                    self.cancel(handler, now, effects);
                }
            }
            Mode::Stopping | Mode::Done => return,
        }
        for &step in &self.running {
            let told = &mut self.steps[step.index()].told;
            if std::mem::replace(told, Told::Cancelled) != Told::Cancelled {
                effects.push(Effect::Signal { step, hard: false });
            }
        }
        self.timers.add(now.after(self.settings.grace), Timer::KillAll);
    }

    /// Lets what runs come to its end and starts nothing more.
    pub(super) fn finish_up(&mut self, failed: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        if self.mode == Mode::Running {
            self.mode = Mode::Finishing;
            self.cause = Some(Cause::Failure(failed));
            self.cancel_unstarted(Cause::Failure(failed), now, effects);
        }
    }

    fn cancel_unstarted(&mut self, cause: Cause, now: Moment, effects: &mut Vec<Effect>) {
        self.ready.clear();
        let reason = match cause {
            Cause::Failure(step) => format!("`{}` failed", self.workflow.step(step).name),
            Cause::Signal(_) | Cause::Timeout(_) => cause.to_string(),
        };
        for at in 0..self.workflow.len() {
            let step = StepIx::new(at);
            if matches!(self.state(step), State::Waiting | State::Ready | State::Retrying) {
                self.go(step, State::Cancelled);
                let note = Note {
                    reason: Some(reason.clone()),
                    ..self.end_note(step, Kind::NodeCancelled, now)
                };
                effects.push(Effect::Note(note));
                self.unfinished -= 1;
            }
        }
    }

    /// Ends a step that was told to.
    pub(super) fn cancel(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        self.leave_worker(step);
        self.go(step, State::Cancelled);
        let reason = match self.interrupt.or(self.cause) {
            Some(Cause::Failure(failed)) => {
                format!("stopped: `{}` failed", self.workflow.step(failed).name)
            }
            Some(cause) => format!("stopped: {cause}"),
            None => "stopped".to_owned(),
        };
        let note = Note { reason: Some(reason), ..self.end_note(step, Kind::NodeCancelled, now) };
        effects.push(Effect::Note(note));
        if step.index() < self.workflow.len() {
            self.unfinished -= 1;
        }
    }

    /// The patience with those who were told to end is over.
    pub(super) fn kill_told(&mut self, effects: &mut Vec<Effect>) {
        for &step in &self.running {
            if self.steps[step.index()].told != Told::Nothing {
                effects.push(Effect::Signal { step, hard: true });
            }
        }
    }

    /// Ends everything at once, handlers included.
    pub(super) fn kill_all(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.killed = true;
        self.stop(Cause::Signal(SIGKILL), now, effects);
        self.handlers.clear();
        for &step in &self.running {
            self.steps[step.index()].told = Told::Cancelled;
            effects.push(Effect::Signal { step, hard: true });
        }
    }

    /// Goes from steps to handlers, from one handler to the next, and to the end.
    pub(super) fn conclude(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        while self.mode != Mode::Done {
            let handling = self.mode == Mode::Handling;
            let at_work = !self.running.is_empty() || (handling && !self.ready.is_empty());
            if at_work || self.unfinished > 0 || self.waiting_handler().is_some() {
                return;
            }
            if !handling {
                self.mode = Mode::Handling;
                self.choose_handlers();
            }
            match self.handlers.pop_front() {
                Some(handler) => {
                    self.go(handler, State::Ready);
                    self.start(handler, now, effects);
                }
                None => self.end(now, effects),
            }
        }
    }

    /// The handler that waits for its next attempt.
    fn waiting_handler(&self) -> Option<StepIx> {
        let handlers = &self.workflow.handlers;
        [handlers.success, handlers.failure, handlers.exit]
            .into_iter()
            .flatten()
            .find(|&handler| matches!(self.state(handler), State::Retrying | State::Ready))
    }

    fn choose_handlers(&mut self) {
        let handlers = self.workflow.handlers;
        let by_outcome = match self.verdict() {
            Verdict::Succeeded => handlers.success,
            Verdict::Failed(_) => handlers.failure,
            Verdict::Interrupted(_) => None,
        };
        if !self.killed {
            self.handlers = by_outcome.into_iter().chain(handlers.exit).collect();
        }
    }

    /// How the run stands, as far as it has come.
    pub fn verdict(&self) -> Verdict {
        match (self.cause, self.first_failure) {
            (Some(Cause::Signal(signal)), _) => Verdict::Interrupted(signal),
            (_, Some(step)) => Verdict::Failed(Some(step)),
            (Some(Cause::Timeout(_) | Cause::Failure(_)), None) => Verdict::Failed(None),
            (None, None) => Verdict::Succeeded,
        }
    }

    fn end(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.mode = Mode::Done;
        let verdict = self.verdict();
        let kind = match verdict {
            Verdict::Succeeded => Kind::WorkflowCompleted,
            Verdict::Failed(_) | Verdict::Interrupted(_) => Kind::WorkflowFailed,
        };
        let error = match (verdict, self.cause) {
            (Verdict::Succeeded, _) => None,
            (Verdict::Failed(Some(step)), _) => {
                let error = self.error(step).unwrap_or_default();
                Some(format!("step `{}` failed: {error}", self.workflow.step(step).name))
            }
            (Verdict::Failed(None) | Verdict::Interrupted(_), cause) => {
                cause.map(|cause| cause.to_string())
            }
        };
        let duration = Some(now.since(self.begun));
        effects.push(Effect::Note(Note { duration, error, ..Note::new(now, kind, None) }));
        effects.push(Effect::Finished(verdict));
    }
}
