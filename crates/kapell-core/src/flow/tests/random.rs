//! Random workflows against the reference model, and against what holds whatever happens.
//!
//! The driver watches every run: parents first, never more running than there are workers, one
//! final state a step, at most `limit + 1` attempts, only changes of state that the table has.

use proptest::prelude::*;

use super::case::{Case, case};
use super::driver::{SIGINT, SIGTERM, Script, Sim, moment};
use super::model::{End, Model, is_tolerated};
use crate::flow::{Cause, Event, Kind, State, Verdict};
use crate::workflow::{OnFailure, StepIx};

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

fn check_against_model(case: &Case, model: &Model) -> Result<Sim, TestCaseError> {
    let run = case.sim().run();
    let want: Vec<&str> = model.ends.iter().map(|end| end.state()).collect();
    prop_assert_eq!(run.states(), want);
    for (at, &want) in model.attempts.iter().enumerate() {
        let step = StepIx::new(at);
        let started =
            |note: &&crate::flow::Note| note.step == Some(step) && note.kind == Kind::NodeStarted;
        prop_assert_eq!(run.notes().filter(started).count(), want as usize, "attempts of {}", at);
    }
    Ok(run)
}

/// The step whose fatal failure was told first, and how many notes came before that.
fn first_failure(run: &Sim) -> Option<(usize, StepIx)> {
    let at = run.notes().position(|note| note.kind == Kind::NodeFailed)?;
    Some((at, run.notes().nth(at)?.step?))
}

fn was_running(run: &Sim, step: StepIx, notes: usize) -> bool {
    let about = run.notes().take(notes).filter(|note| note.step == Some(step));
    about.last().is_some_and(|note| note.kind == Kind::NodeStarted)
}

fn check_stopped(case: &Case, model: &Model) -> Result<(), TestCaseError> {
    let run = case.sim().run();
    let Some((before, failed)) = first_failure(&run) else {
        return Err(TestCaseError::fail("the model fails and the run does not"));
    };
    prop_assert_eq!(run.verdict, Some(Verdict::Failed(Some(failed))));
    prop_assert_eq!(run.flow.first_failure(), Some(failed));
    let later = run.notes().skip(before).any(|note| note.kind == Kind::NodeStarted);
    prop_assert!(!later, "something starts after the failure");
    for (at, &end) in model.ends.iter().enumerate() {
        let step = StepIx::new(at);
        let state = run.flow.state(step);
        let told_before = run.notes().take(before + 1).filter(|note| note.step == Some(step));
        let ended_before = told_before
            .last()
            .is_some_and(|note| !matches!(note.kind, Kind::NodeStarted | Kind::NodeRetrying));
        if ended_before {
            prop_assert_eq!(state.name(), end.state(), "step {} ended before the failure", at);
        } else if !was_running(&run, step, before) {
            prop_assert_eq!(state, State::Cancelled, "step {} was not running", at);
        } else if case.on_failure == OnFailure::Stop {
            prop_assert_eq!(state, State::Cancelled, "step {} was told to end", at);
        } else {
            let spec = &case.steps[at];
            let attempt = run.flow.attempt(step) as usize;
            let code = spec.exits[attempt.min(spec.exits.len() - 1)];
            let want = match (code, is_tolerated(case, at)) {
                (0, _) => State::Succeeded,
                (_, true) => State::FailedContinue,
                (_, false) => State::Failed,
            };
            prop_assert_eq!(state, want, "step {} ends by itself and is not retried", at);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn runs_that_continue_end_as_the_model_says(case in case(&[OnFailure::Continue])) {
        let model = Model::of(&case);
        let run = check_against_model(&case, &model)?;
        let failed = first_failure(&run).map(|(_, step)| step);
        let want = failed.map_or(Verdict::Succeeded, |step| Verdict::Failed(Some(step)));
        prop_assert_eq!(run.verdict, Some(want));
        prop_assert_eq!(failed.is_none(), model.all_tolerated());
    }

    #[test]
    fn runs_with_tolerated_failures_only_end_as_the_model_says(
        case in case(&OnFailure::ALL),
    ) {
        let mut case = case;
        while let Some(at) = Model::of(&case).ends.iter().position(|end| *end == End::Fatal) {
            case.steps[at].continue_on_error = true;
        }
        let run = check_against_model(&case, &Model::of(&case))?;
        prop_assert_eq!(run.verdict, Some(Verdict::Succeeded));
    }

    #[test]
    fn the_outcome_does_not_depend_on_workers_priorities_or_durations(
        case in case(&[OnFailure::Continue]),
        workers in 1_u32..40,
        durations in proptest::collection::vec((0_u64..100, -5..5_i32), 30),
    ) {
        let mut other = case.clone();
        other.workers = workers;
        for (spec, (lasts_ms, priority)) in other.steps.iter_mut().zip(durations) {
            (spec.lasts_ms, spec.priority) = (lasts_ms, priority);
        }
        prop_assert_eq!(case.sim().run().states(), other.sim().run().states());
    }

    #[test]
    fn a_fatal_failure_stops_the_run(case in case(&[OnFailure::Stop, OnFailure::Finish])) {
        let model = Model::of(&case);
        if model.all_tolerated() {
            check_against_model(&case, &model)?;
        } else {
            check_stopped(&case, &model)?;
        }
    }

    #[test]
    fn the_same_run_is_the_same_run(case in case(&OnFailure::ALL)) {
        prop_assert_eq!(case.sim().run().effects, case.sim().run().effects);
    }

    #[test]
    fn an_interrupted_run_ends_and_leaves_nothing_running(
        case in case(&OnFailure::ALL),
        signal in prop_oneof![Just(SIGINT), Just(SIGTERM)],
        at in 0_u64..200,
        kill_after in proptest::option::of(0_u64..50),
        stubborn in proptest::collection::vec(any::<bool>(), 30),
    ) {
        let mut sim = case.sim().at(at, Event::Stop(Cause::Signal(signal)));
        if let Some(wait) = kill_after {
            sim = sim.at(at + wait, Event::Kill);
        }
        for (at, spec) in case.steps.iter().enumerate().filter(|(at, _)| stubborn[*at]) {
            sim = sim.play_at(StepIx::new(at), Script::stubborn(spec.script()));
        }
        let run = sim.run();
        let stopped_before = case.on_failure == OnFailure::Stop
            && run.notes().any(|it| it.kind == Kind::NodeFailed && it.at <= moment(at));
        if run.took() > at && !stopped_before {
            prop_assert_eq!(run.verdict, Some(Verdict::Interrupted(signal)));
        }
        let after = run.notes().filter(|note| note.kind == Kind::NodeStarted);
        let latest = after.map(|note| note.at).max();
        prop_assert!(latest.is_none_or(|latest| latest <= moment(at)));
    }
}
