//! Everything at once: conditions, timeouts, handlers, selections, signals at any moment.
//!
//! What must come of it is not computed here; the driver watches that it stays legal and ends.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;

use super::case::{Case, case};
use super::driver::{GRACE, SIGINT, Script, Sim, moment};
use crate::flow::{Cause, Ended, Event, Fate, Finish, Kind, Selection, State, Verdict, fates};
use crate::workflow::{Condition, OnFailure, Options, StepIx, Workflow};

/// What is drawn for a step besides what every [`Case`] has.
#[derive(Debug, Clone)]
struct Extra {
    when: bool,
    preconditions: usize,
    timeout_ms: Option<u64>,
    check_codes: Vec<Option<i32>>,
    check_lasts_ms: u64,
    hangs: bool,
    stubborn: bool,
}

fn extra() -> impl Strategy<Value = Extra> {
    let codes = prop_oneof![6 => Just(Some(0)), 1 => Just(Some(1)), 1 => Just(None)];
    let checks = (any::<bool>(), 0_usize..3, proptest::collection::vec(codes, 0..6), 0_u64..15);
    let timeout = proptest::option::weighted(0.8, 1_u64..40);
    (checks, timeout, proptest::bool::weighted(0.1), any::<bool>()).prop_map(
        |((when, preconditions, check_codes, check_lasts_ms), timeout_ms, hangs, stubborn)| Extra {
            when,
            preconditions,
            // What hangs needs something that ends it.
            timeout_ms: timeout_ms.or(hangs.then_some(30)),
            check_codes,
            check_lasts_ms,
            hangs,
            stubborn,
        },
    )
}

impl Extra {
    fn apply(&self, options: &mut Options) {
        let condition = || Condition { predicate: "p".to_owned(), expected: None };
        options.when = self.when.then(condition);
        options.preconditions = (0..self.preconditions).map(|_| condition()).collect();
        options.timeout = self.timeout_ms.map(Duration::from_millis);
    }

    fn script(&self, script: Script) -> Script {
        let ended = |code: &Option<i32>| match code {
            Some(code) => Ended::exited(*code),
            None => Ended { finish: Finish::Broken("broken".to_owned()), stdout: String::new() },
        };
        let checks = self.check_codes.iter().map(ended).collect();
        let script = if self.hangs { Script::hangs() } else { script };
        let script = script.check_ends(checks).check_lasts(Some(self.check_lasts_ms));
        if self.stubborn { script.stubborn() } else { script }
    }
}

/// The workflow of a case with extras; the last three extras make the handlers.
fn workflow(case: &Case, extras: &[Extra], timeout_ms: Option<u64>) -> Workflow {
    let mut workflow = case.workflow();
    workflow.timeout = timeout_ms.map(Duration::from_millis);
    for name in ["handlers.success", "handlers.failure", "handlers.exit"] {
        let mut handler = workflow.steps[0].clone();
        handler.name = name.into();
        workflow.steps.push(handler);
    }
    let len = workflow.graph.len();
    workflow.handlers.success = Some(StepIx::new(len));
    workflow.handlers.failure = Some(StepIx::new(len + 1));
    workflow.handlers.exit = Some(StepIx::new(len + 2));
    for (step, extra) in workflow.steps.iter_mut().zip(extras) {
        let mut options = (*step.options).clone();
        extra.apply(&mut options);
        step.options = Arc::new(options);
    }
    workflow
}

fn scripted(mut sim: Sim, case: &Case, extras: &[Extra]) -> Sim {
    for (at, extra) in extras.iter().enumerate().take(case.steps.len() + 3) {
        let script = case.steps.get(at).map_or_else(Script::default, super::case::Spec::script);
        sim = sim.play_at(StepIx::new(at), extra.script(script));
    }
    sim
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_the_run_stays_legal_and_ends(
        case in case(&OnFailure::ALL),
        extras in proptest::collection::vec(extra(), 33),
        timeout_ms in proptest::option::weighted(0.3, 1_u64..300),
        stops in proptest::collection::vec((0_u64..400, any::<bool>()), 0..3),
    ) {
        let workflow = workflow(&case, &extras, timeout_ms);
        let mut sim = scripted(Sim::new(workflow), &case, &extras);
        for &(at, kill) in &stops {
            let stop = Event::Stop(Cause::Signal(SIGINT));
            sim = sim.at(at, if kill { Event::Kill } else { stop });
        }
        let run = sim.run();
        let exit = run.flow.state(StepIx::new(case.steps.len() + 2));
        if stops.is_empty() {
            prop_assert!(exit.is_final(), "the exit handler runs, whatever happened: {}", exit);
        }
        if let Some(&(first, _)) = stops.iter().min() {
            let of_steps = || {
                run.notes().filter(|note| note.step.is_some_and(|it| it.index() < case.steps.len()))
            };
            let mut starts = of_steps().filter(|note| note.kind == Kind::NodeStarted);
            prop_assert!(starts.all(|note| note.at <= moment(first)), "no step after a stop");
            let last = of_steps().map(|note| note.at).max();
            prop_assert!(last <= Some(moment(first + GRACE)), "no step outlives the grace");
        }
    }

    #[test]
    fn a_selection_runs_what_was_picked_in_order_and_touches_nothing_else(
        case in case(&[OnFailure::Continue]),
        from in proptest::collection::vec(any::<Index>(), 0..3),
        only in proptest::collection::vec(any::<Index>(), 0..3),
        resume in any::<bool>(),
    ) {
        let workflow = case.workflow();
        let find = |picks: &[Index]| -> Vec<StepIx> {
            picks.iter().map(|pick| StepIx::new(pick.index(case.steps.len()))).collect()
        };
        let selection = Selection { resume, from: find(&from), only: find(&only), on_cells: false };
        let mut wanted: Vec<StepIx> = selection.only.clone();
        for &step in &selection.from {
            wanted.push(step);
            wanted.extend(workflow.graph.descendants(step));
        }
        let everything = wanted.is_empty();
        let fates = fates(&workflow, &selection, None);
        let mut sim = Sim::with(workflow, &fates, 0);
        for (at, spec) in case.steps.iter().enumerate() {
            sim = sim.play_at(StepIx::new(at), spec.script());
        }
        let run = sim.run();
        for (at, fate) in fates.iter().enumerate() {
            let step = StepIx::new(at);
            let inside = everything || wanted.contains(&step);
            prop_assert_eq!(matches!(fate, Fate::Counts(_)), !inside, "step {}", at);
            let told = run.notes().any(|note| note.step == Some(step));
            prop_assert_eq!(told, inside, "step {} tells something if it takes part", at);
            prop_assert_eq!(run.flow.state(step) == State::Outside, !inside);
            let mut parents = run.flow.workflow().graph.parents(step).iter();
            let alone = parents.all(|edge| !everything && !wanted.contains(&edge.step));
            if *fate == Fate::Picked && alone {
                prop_assert_ne!(run.flow.state(step), State::Skipped, "picked by hand: {}", at);
            }
        }
        prop_assert!(run.verdict != Some(Verdict::Failed(None)));
    }
}
