//! One attempt of a step: condition, preconditions, command, and what a failure leads to.

use super::machine::{Effect, Ended, Finish, Flow, Mode, Phase, Told};
use super::note::signal_name;
use super::timers::Timer;
use super::{Fate, Kind, Note, State};
use crate::seams::Moment;
use crate::workflow::{Options, StepIx, Work, show_duration};

/// A failed attempt: what to say, and the exit code if there was one.
struct Failure {
    error: String,
    exit_code: Option<i32>,
}

impl Flow {
    pub(super) fn start(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        self.go(step, State::Running);
        self.running.push(step);
        let it = &mut self.steps[step.index()];
        it.told = Told::Nothing;
        let attempt = it.attempt;
        if attempt == 0 {
            it.started = now;
        }
        if let Some(limit) = self.workflow.step(step).options.timeout {
            self.timers.add(now.after(limit), Timer::Timeout(step, attempt));
        }
        // Not asked of the attempt's number: a `when` that broke or timed out was never answered.
        let undecided = !it.announced;
        if it.fate == Fate::GoesOn && attempt == 0 {
            // Its conditions were met when it was begun.
            self.announce(step, now, effects);
            self.enter(step, Phase::Main, now, effects);
        } else if undecided && self.workflow.step(step).options.when.is_some() {
            self.enter(step, Phase::When, now, effects);
        } else {
            self.begin_attempt(step, now, effects);
        }
    }

    /// Tells that an attempt begins, and begins it. A step whose `when` is not met never gets here.
    fn begin_attempt(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        self.announce(step, now, effects);
        self.enter(step, Phase::Precondition(0), now, effects);
    }

    fn announce(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        let it = &mut self.steps[step.index()];
        it.announced = true;
        let note = Note { attempt: it.attempt, ..Note::new(now, Kind::NodeStarted, Some(step)) };
        effects.push(Effect::Note(note));
    }

    fn enter(&mut self, step: StepIx, phase: Phase, now: Moment, effects: &mut Vec<Effect>) {
        let it = self.workflow.step(step);
        let phase = match phase {
            Phase::Precondition(at) if at >= it.options.preconditions.len() => Phase::Main,
            Phase::When | Phase::Precondition(_) | Phase::Main => phase,
        };
        let does_nothing = phase == Phase::Main && it.work == Work::Join;
        let progress = &mut self.steps[step.index()];
        progress.phase = phase;
        if does_nothing {
            self.succeed(step, now, effects);
        } else {
            effects.push(Effect::Start { step, phase, attempt: progress.attempt });
        }
    }

    pub(super) fn command_ended(
        &mut self,
        step: StepIx,
        ended: Ended,
        now: Moment,
        effects: &mut Vec<Effect>,
    ) {
        let it = &self.steps[step.index()];
        if it.state() != State::Running {
            return;
        }
        let options = std::sync::Arc::clone(&self.workflow.step(step).options);
        match (it.told, it.phase) {
            (Told::Cancelled, _) => self.cancel(step, now, effects),
            (Told::TimedOut, _) => {
                let limit = options.timeout.unwrap_or_default();
                let error = format!("timed out after {}", show_duration(limit));
                self.attempt_failed(step, Failure { error, exit_code: None }, now, effects);
            }
            (Told::Nothing, Phase::When) => self.when_ended(step, &options, &ended, now, effects),
            (Told::Nothing, Phase::Precondition(at)) => {
                let condition = &options.preconditions[at];
                match judge(condition, &ended) {
                    Ok(()) => self.enter(step, Phase::Precondition(at + 1), now, effects),
                    Err(reason) => {
                        let error = format!("precondition failed: {reason}");
                        self.attempt_failed(step, Failure { error, exit_code: None }, now, effects);
                    }
                }
            }
            (Told::Nothing, Phase::Main) => match failure_of(ended.finish) {
                None => self.succeed(step, now, effects),
                Some(failure) => self.attempt_failed(step, failure, now, effects),
            },
        }
    }

    fn when_ended(
        &mut self,
        step: StepIx,
        options: &Options,
        ended: &Ended,
        now: Moment,
        effects: &mut Vec<Effect>,
    ) {
        let Some(condition) = &options.when else { return };
        if let Finish::Broken(error) = &ended.finish {
            let error = format!("`when` could not be checked: {error}");
            self.attempt_failed(step, Failure { error, exit_code: None }, now, effects);
            return;
        }
        match judge(condition, ended) {
            // It was not told as started, and `finish` starts no more.
            Ok(()) if self.mode == Mode::Finishing => self.cancel(step, now, effects),
            Ok(()) => self.begin_attempt(step, now, effects),
            Err(reason) => {
                self.leave_worker(step);
                self.skip(step, format!("condition not met: {reason}"), now, effects);
            }
        }
    }

    fn succeed(&mut self, step: StepIx, now: Moment, effects: &mut Vec<Effect>) {
        self.leave_worker(step);
        self.go(step, State::Succeeded);
        let exit_code = (self.workflow.step(step).work != Work::Join).then_some(0);
        let note = Note { exit_code, ..self.end_note(step, Kind::NodeCompleted, now) };
        effects.push(Effect::Note(note));
        self.settled(step, now, effects);
    }

    fn attempt_failed(
        &mut self,
        step: StepIx,
        failure: Failure,
        now: Moment,
        effects: &mut Vec<Effect>,
    ) {
        self.leave_worker(step);
        let retry = &self.workflow.step(step).options.retry;
        let attempt = self.steps[step.index()].attempt;
        let may_start_more = matches!(self.mode, Mode::Running | Mode::Handling);
        if may_start_more && attempt < retry.limit && retry.covers(failure.exit_code) {
            let delay = retry.delay_after(attempt, next_chance(&mut self.chance));
            let note = Note {
                exit_code: failure.exit_code,
                reason: Some(format!(
                    "attempt {} of {} in {}",
                    attempt + 2,
                    retry.limit + 1,
                    show_duration(delay)
                )),
                error: Some(failure.error),
                ..self.end_note(step, Kind::NodeRetrying, now)
            };
            effects.push(Effect::Note(note));
            self.go(step, State::Retrying);
            self.steps[step.index()].attempt += 1;
            if delay.is_zero() {
                self.make_ready(step);
            } else {
                self.timers.add(now.after(delay), Timer::Retry(step));
            }
            return;
        }
        let mut error = failure.error;
        if attempt > 0 {
            error.push_str(&format!(", failed after {} attempts", attempt + 1));
        }
        self.fail(step, error, failure.exit_code, now, effects);
    }

    pub(super) fn end_note(&mut self, step: StepIx, kind: Kind, now: Moment) -> Note {
        let it = &mut self.steps[step.index()];
        it.ended = now;
        let duration = it.announced.then(|| now.since(it.started));
        Note { attempt: it.attempt, duration, ..Note::new(now, kind, Some(step)) }
    }

    pub(super) fn leave_worker(&mut self, step: StepIx) {
        if let Some(at) = self.running.iter().position(|&other| other == step) {
            self.running.swap_remove(at);
        }
    }
}

fn judge(condition: &crate::workflow::Condition, ended: &Ended) -> Result<(), String> {
    match &ended.finish {
        Finish::Exited(code) => condition.judge(*code == 0, &ended.stdout),
        Finish::Killed(_) => condition.judge(false, &ended.stdout),
        Finish::Broken(error) => Err(error.clone()),
    }
}

fn failure_of(finish: Finish) -> Option<Failure> {
    match finish {
        Finish::Exited(0) => None,
        Finish::Exited(code) => {
            Some(Failure { error: format!("exit status {code}"), exit_code: Some(code) })
        }
        Finish::Killed(signal) => {
            Some(Failure { error: format!("killed by {}", signal_name(signal)), exit_code: None })
        }
        Finish::Broken(error) => Some(Failure { error, exit_code: None }),
    }
}

/// The next number in 0..1 of a sequence that is the same for the same seed (splitmix64).
fn next_chance(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let top = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(u32::MAX);
    f64::from(top) / (f64::from(u32::MAX) + 1.0)
}
