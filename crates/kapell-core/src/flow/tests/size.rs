//! Large graphs: no recursion, no square of anything.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::driver::{Script, Sim, T, workflow};
use crate::flow::{State, Verdict};
use crate::workflow::{Graph, On, StepIx, Workflow};

const MANY: usize = 10_000;
/// Far more than a debug build needs, far less than anything quadratic would.
const LIMIT: Duration = Duration::from_secs(10);

/// Many steps, each depending on those that `parents` names.
fn many(parents: impl Fn(usize) -> std::ops::Range<usize>) -> Workflow {
    let mut made = workflow("workers: 10\nsteps: [{name: s, command: x}]");
    made.steps = (0..MANY)
        .map(|at| {
            let mut step = made.steps[0].clone();
            step.name = format!("s{at}").into();
            step
        })
        .collect();
    let mut edges = Vec::new();
    for at in 0..MANY {
        let pairs = parents(at).map(|parent| (StepIx::new(at), StepIx::new(parent), On::Success));
        edges.extend(pairs);
    }
    made.graph = Graph::build(MANY, &edges);
    made
}

fn within_limit(work: impl FnOnce()) {
    let begin = Instant::now(); // tidy: allow(clock) measures the machine, decides nothing
    work();
    assert!(begin.elapsed() < LIMIT, "took {:?}", begin.elapsed());
}

#[test]
fn a_chain_of_10_000_skips_needs_no_stack() {
    within_limit(|| {
        let mut chain = many(|at| at.saturating_sub(1)..at);
        let mut options = (*chain.steps[0].options).clone();
        options.continue_on_error = true;
        chain.steps[0].options = options.into();
        let run = Sim::new(chain).play("s0", Script::exits(&[1])).run();
        assert_eq!(run.state("s9999"), State::Skipped);
        assert_eq!((run.took(), run.verdict), (T, Some(Verdict::Succeeded)));
    });
}

#[test]
fn a_chain_of_10_000_joins_needs_no_stack() {
    within_limit(|| {
        let mut text = "steps:\n  - {name: s0, command: x}\n".to_owned();
        for at in 1..MANY {
            writeln!(text, "  - {{name: s{at}, depends: s{}}}", at - 1).unwrap();
        }
        let run = Sim::of(&text).run();
        assert_eq!((run.state("s9999"), run.took()), (State::Succeeded, T));
    });
}

#[test]
fn ten_thousand_independent_steps_are_quick() {
    within_limit(|| {
        let run = Sim::new(many(|_| 0..0)).run();
        assert_eq!((run.started().len(), run.took()), (MANY, 1_000 * T));
    });
}

#[test]
fn ten_thousand_steps_in_connected_layers_are_quick() {
    within_limit(|| {
        let layers = many(|at| if at < 50 { 0..0 } else { at / 50 * 50 - 50..at / 50 * 50 });
        assert_eq!(layers.graph.edge_count(), 50 * (MANY - 50));
        let run = Sim::new(layers).run();
        assert_eq!((run.started().len(), run.took()), (MANY, 1_000 * T));
    });
}

#[test]
fn ten_thousand_steps_are_stopped_at_once() {
    within_limit(|| {
        let run = Sim::new(many(|_| 0..0)).play("s0", Script::exits(&[1])).run();
        let cancelled = run.states().iter().filter(|state| **state == "cancelled").count();
        assert_eq!(cancelled, MANY - 1);
        assert_eq!(run.verdict, Some(Verdict::Failed(Some(run.step("s0")))));
    });
}

#[test]
fn ten_thousand_retrying_steps_are_quick() {
    within_limit(|| {
        let text = "steps: [{name: s, command: x, retry_policy: {limit: 1, delay: 1h}}]";
        let options = workflow(text).steps[0].options.clone();
        let mut wide = many(|_| 0..0);
        for step in &mut wide.steps {
            step.options = options.clone();
        }
        let mut sim = Sim::new(wide);
        for at in 0..MANY {
            sim = sim.play_at(StepIx::new(at), Script::exits(&[1, 0]));
        }
        let run = sim.run();
        assert_eq!(run.verdict, Some(Verdict::Succeeded));
        assert_eq!(run.took(), 3_600_000 + 1_001 * T, "the last one fails last and waits an hour");
    });
}
