//! The states of a step, and the only definition of how one follows another.

use std::fmt;

use crate::workflow::On;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Something it depends on has not ended.
    Waiting,
    /// Could start; waits for a worker.
    Ready,
    Running,
    /// Failed, and waits for its next attempt without holding a worker.
    Retrying,
    Succeeded,
    /// Failed, and nobody tolerates it.
    Failed,
    /// Failed, and the workflow goes on.
    FailedContinue,
    Skipped,
    /// Stopped, or never started, because the run was stopped.
    Cancelled,
    /// Succeeded in the run that this one resumes.
    Kept,
    /// Not part of this run.
    Outside,
}

use State::{
    Cancelled, Failed, FailedContinue, Kept, Outside, Ready, Retrying, Running, Skipped, Succeeded,
    Waiting,
};

impl State {
    pub const ALL: [Self; 11] = [
        Waiting,
        Ready,
        Running,
        Retrying,
        Succeeded,
        Failed,
        FailedContinue,
        Skipped,
        Cancelled,
        Kept,
        Outside,
    ];

    /// Every step a step may take. Nothing else in the workspace says so.
    pub const fn next(self) -> &'static [Self] {
        match self {
            Waiting => &[Ready, Skipped, Cancelled],
            Ready => &[Running, Cancelled],
            Running => &[Retrying, Succeeded, Failed, FailedContinue, Skipped, Cancelled],
            Retrying => &[Ready, Cancelled],
            Succeeded | Failed | FailedContinue | Skipped | Cancelled | Kept | Outside => &[],
        }
    }

    pub const fn is_final(self) -> bool {
        self.next().is_empty()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Waiting => "waiting",
            Ready => "ready",
            Running => "running",
            Retrying => "retrying",
            Succeeded => "succeeded",
            Failed => "failed",
            FailedContinue => "failed_continue",
            Skipped => "skipped",
            Cancelled => "cancelled",
            Kept => "kept",
            Outside => "outside",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A change of state that the table does not have. Reaching one is a bug in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a step cannot go from {from} to {to}")]
pub struct IllegalStep {
    pub from: State,
    pub to: State,
}

/// Whether a dependency that waits for `on` is satisfied by a parent that ended so.
#[rustfmt::skip]
pub const fn satisfied(on: On, parent: State) -> bool {
    match parent {
        Succeeded | Kept        => matches!(on, On::Success | On::Done),
        Failed | FailedContinue => matches!(on, On::Failure | On::Done),
        Skipped                 => matches!(on, On::Skipped | On::Done),
        // Whoever picks steps by hand vouches for all that is left out.
        Outside                 => true,
        Waiting | Ready | Running | Retrying | Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_states_are_final() {
        let final_states: Vec<_> =
            State::ALL.into_iter().filter(|state| state.is_final()).collect();
        assert_eq!(
            final_states,
            [Succeeded, Failed, FailedContinue, Skipped, Cancelled, Kept, Outside]
        );
    }

    /// Copied by hand from RULINGS 20: rows are how a parent ended; success, failure, skipped, done.
    const SPEC: &str = "
        succeeded        yes  no   no   yes
        failed           no   yes  no   yes
        failed_continue  no   yes  no   yes
        skipped          no   no   yes  yes
        cancelled        no   no   no   no
        kept             yes  no   no   yes
    ";

    #[test]
    fn dependencies_are_satisfied_as_specified() {
        for row in SPEC.trim().lines() {
            let cells: Vec<_> = row.split_whitespace().collect();
            let state = State::ALL.into_iter().find(|state| state.name() == cells[0]).unwrap();
            for (want, on) in cells[1..].iter().zip(On::ALL) {
                assert_eq!(satisfied(on, state), *want == "yes", "{state} x {on}");
            }
        }
    }
}
