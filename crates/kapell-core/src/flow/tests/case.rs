//! Random workflows: small graphs in which everything that can matter is drawn.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;

use super::driver::{Script, Sim, T};
use crate::workflow::{
    Graph, Handlers, On, OnFailure, Options, Params, Requires, Retry, Step, StepIx, Work, Workflow,
};

/// The exit code that a filtered retry policy names.
pub(super) const WORTH_A_RETRY: i32 = 75;

/// One step, parents by their place in the file.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) parents: Vec<(usize, On)>,
    pub(super) requires: Requires,
    pub(super) continue_on_error: bool,
    pub(super) priority: i32,
    pub(super) limit: u32,
    pub(super) delay_ms: u64,
    /// Only [`WORTH_A_RETRY`] is retried.
    pub(super) filtered: bool,
    /// By attempt; the last one stays.
    pub(super) exits: Vec<i32>,
    pub(super) lasts_ms: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) steps: Vec<Spec>,
    pub(super) on_failure: OnFailure,
    pub(super) workers: u32,
}

impl Case {
    pub(super) fn workflow(&self) -> Workflow {
        let steps: Vec<Step> = self.steps.iter().enumerate().map(|(at, it)| it.step(at)).collect();
        let mut edges = Vec::new();
        for (at, spec) in self.steps.iter().enumerate() {
            for &(parent, on) in &spec.parents {
                edges.push((StepIx::new(at), StepIx::new(parent), on));
            }
        }
        Workflow {
            name: "random".to_owned(),
            description: None,
            env: Vec::new(),
            params: Params::default(),
            workers: Some(self.workers),
            timeout: None,
            on_failure: self.on_failure,
            graph: Graph::build(steps.len(), &edges),
            steps,
            handlers: Handlers::default(),
        }
    }

    /// The run of this workflow in which every step does what was drawn.
    pub(super) fn sim(&self) -> Sim {
        let scripts = self.steps.iter().enumerate();
        scripts.fold(Sim::new(self.workflow()), |sim, (at, spec)| {
            sim.play_at(StepIx::new(at), spec.script())
        })
    }
}

impl Spec {
    fn step(&self, at: usize) -> Step {
        let options = Options {
            requires: self.requires,
            continue_on_error: self.continue_on_error,
            priority: self.priority,
            retry: Retry {
                limit: self.limit,
                delay: Duration::from_millis(self.delay_ms),
                exit_codes: if self.filtered { vec![WORTH_A_RETRY] } else { Vec::new() },
                ..Retry::default()
            },
            ..Options::default()
        };
        let name = format!("s{at}").into();
        Step { name, work: Work::Shell("x".into()), options: Arc::new(options) }
    }

    pub(super) fn script(&self) -> Script {
        Script::lasts(self.lasts_ms).then_exits(&self.exits)
    }
}

fn on() -> impl Strategy<Value = On> {
    prop_oneof![5 => Just(On::Success), 2 => Just(On::Failure), 1 => Just(On::Skipped),
                1 => Just(On::Done)]
}

/// A step and its parents among those drawn before it, with a number to shuffle by.
fn spec() -> impl Strategy<Value = (Spec, Vec<(Index, On)>, u16)> {
    let exit = prop_oneof![4 => Just(0), 1 => Just(1), 1 => Just(WORTH_A_RETRY)];
    let retry = (0_u32..3, 0_u64..3, any::<bool>());
    let runs = (proptest::collection::vec(exit, 1..4), 0_u64..4);
    let parents = proptest::collection::vec((any::<Index>(), on()), 0..4);
    let flags = (any::<bool>(), proptest::bool::weighted(0.3), -2..3_i32);
    (retry, runs, flags, parents, any::<u16>()).prop_map(|(retry, runs, flags, parents, key)| {
        let spec = Spec {
            parents: Vec::new(),
            requires: if flags.0 { Requires::All } else { Requires::Any },
            continue_on_error: flags.1,
            priority: flags.2,
            limit: retry.0,
            delay_ms: retry.1 * T,
            filtered: retry.2,
            exits: runs.0,
            lasts_ms: runs.1 * T,
        };
        (spec, parents, key)
    })
}

/// Up to 30 steps in any order of the file, without cycles.
fn steps() -> impl Strategy<Value = Vec<Spec>> {
    proptest::collection::vec(spec(), 1..31).prop_map(|drawn| {
        let mut by_key: Vec<usize> = (0..drawn.len()).collect();
        by_key.sort_by_key(|&at| drawn[at].2);
        let mut place = vec![0; drawn.len()];
        for (to, &from) in by_key.iter().enumerate() {
            place[from] = to;
        }
        let placed = |from: usize| {
            let (spec, parents, _) = &drawn[from];
            let parents = parents.iter().filter(|_| from > 0);
            let parents = parents.map(|(parent, on)| (place[parent.index(from)], *on)).collect();
            Spec { parents, ..spec.clone() }
        };
        by_key.iter().map(|&from| placed(from)).collect()
    })
}

pub(super) fn case(on_failure: &[OnFailure]) -> impl Strategy<Value = Case> + use<> {
    let on_failure = proptest::sample::select(on_failure.to_vec());
    (steps(), on_failure, 1_u32..6).prop_map(|(steps, on_failure, workers)| Case {
        steps,
        on_failure,
        workers,
    })
}
