//! What must come of a workflow, computed without time: RULINGS 20 to 22, recursively.
//!
//! Written from the rulings and the seed, never from the machine.

use super::case::{Case, Spec, WORTH_A_RETRY};
use crate::workflow::{On, Requires};

/// How a step ends when nothing stops the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    /// Failed, and the workflow fails with it.
    Fatal,
    Tolerated,
    Skipped,
    /// Skipped because it depends on a fatal failure, which `on_failure: continue` forbids to run.
    Barred,
}

impl End {
    /// The name of the state in which such a step ends.
    pub(super) const fn state(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Fatal => "failed",
            Self::Tolerated => "failed_continue",
            Self::Skipped | Self::Barred => "skipped",
        }
    }
}

/// How every step ends, and after how many attempts.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) ends: Vec<End>,
    pub(super) attempts: Vec<u32>,
}

impl Model {
    pub(super) fn of(case: &Case) -> Self {
        let mut known = vec![None; case.steps.len()];
        let ends: Vec<End> = (0..case.steps.len()).map(|at| end(case, at, &mut known)).collect();
        let attempts = |(spec, end): (&Spec, &End)| match end {
            End::Skipped | End::Barred => 0,
            End::Succeeded | End::Fatal | End::Tolerated => executed(spec).1,
        };
        let attempts = case.steps.iter().zip(&ends).map(attempts).collect();
        Self { ends, attempts }
    }

    /// Whether nothing fails that would stop a workflow.
    pub(super) fn all_tolerated(&self) -> bool {
        !self.ends.contains(&End::Fatal)
    }
}

fn end(case: &Case, at: usize, known: &mut Vec<Option<End>>) -> End {
    if let Some(end) = known[at] {
        return end;
    }
    let spec = &case.steps[at];
    let parents: Vec<(On, End)> =
        spec.parents.iter().map(|&(parent, on)| (on, end(case, parent, known))).collect();
    let end = decide(case, at, &parents);
    known[at] = Some(end);
    end
}

fn decide(case: &Case, at: usize, parents: &[(On, End)]) -> End {
    let spec = &case.steps[at];
    let depends_on_a_failure =
        |&(on, end): &(On, End)| on == On::Success && (end == End::Fatal || end == End::Barred);
    if parents.iter().any(depends_on_a_failure) {
        return End::Barred;
    }
    let mut satisfied = parents.iter().map(|&(on, end)| is_satisfied(on, end));
    let runs = match spec.requires {
        _ if parents.is_empty() => true,
        Requires::Any => satisfied.any(|it| it),
        Requires::All => satisfied.all(|it| it),
    };
    let (succeeds, _) = executed(spec);
    match (runs, succeeds) {
        (false, _) => End::Skipped,
        (true, true) => End::Succeeded,
        (true, false) if is_tolerated(case, at) => End::Tolerated,
        (true, false) => End::Fatal,
    }
}

fn is_satisfied(on: On, parent: End) -> bool {
    match on {
        On::Success => parent == End::Succeeded,
        On::Failure => parent == End::Fatal || parent == End::Tolerated,
        On::Skipped => parent == End::Skipped || parent == End::Barred,
        On::Done => true,
    }
}

/// Whether the workflow goes on when this step fails: it says so, or somebody waits for that.
pub(super) fn is_tolerated(case: &Case, at: usize) -> bool {
    let mut edges = case.steps.iter().flat_map(|spec| &spec.parents);
    case.steps[at].continue_on_error
        || edges.any(|&(parent, on)| parent == at && (on == On::Failure || on == On::Done))
}

/// Whether a step that runs succeeds in the end, and how many attempts it takes.
fn executed(spec: &Spec) -> (bool, u32) {
    let mut codes = spec.exits.iter().chain(std::iter::repeat(spec.exits.last().expect("one")));
    for attempts in 1..=spec.limit + 1 {
        match codes.next() {
            Some(0) => return (true, attempts),
            Some(&code) if spec.filtered && code != WORTH_A_RETRY => return (false, attempts),
            Some(_) | None => {}
        }
    }
    (false, spec.limit + 1)
}
