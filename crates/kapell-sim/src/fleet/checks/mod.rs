//! What must hold in every world: one rule a file.

mod attempt_once;
mod book;
mod callbacks;
mod capacity;
mod deposed;
mod desired_reached;
mod evacuation_gap;
mod fresh_only;
mod grounds;
mod inconceivable;
mod jobs_kept;
mod leaders_launch;
mod moments_once;
mod nothing_left;
mod nothing_lost;
mod one_instance;
mod places_kept;
mod presence;
mod rests_on_commits;
mod room;
mod runs_end;
mod task_once;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use super::fact::Fact;
use super::plan::{Fault, Plan};
use super::view::View;

/// A rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub at: Duration,
    pub how: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken at {:?}: {}", self.rule, self.at, self.how)
    }
}

/// A rule that watches a world.
pub(super) trait Check: fmt::Debug {
    fn name(&self) -> &'static str;

    /// Something has happened; `view` shows the world after it.
    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String>;

    /// Nothing is under way any more: the bound after the last fault is over.
    fn at_end(&mut self, view: &View<'_>) -> Result<(), String>;
}

/// All rules, anew for each world.
pub(super) fn all() -> Vec<Box<dyn Check>> {
    vec![
        Box::<one_instance::OneInstance>::default(),
        Box::<task_once::TaskOnce>::default(),
        Box::<nothing_lost::NothingLost>::default(),
        Box::<rests_on_commits::RestsOnCommits>::default(),
        Box::<desired_reached::DesiredReached>::default(),
        Box::<fresh_only::FreshOnly>::default(),
        Box::<capacity::Capacity>::default(),
        Box::<deposed::Deposed>::default(),
        Box::<presence::Presence>::default(),
        Box::<evacuation_gap::EvacuationGap>::default(),
        Box::<callbacks::Callbacks>::default(),
        Box::<inconceivable::Inconceivable>::default(),
        Box::<attempt_once::AttemptOnce>::default(),
        Box::<moments_once::MomentsOnce>::default(),
        Box::<places_kept::PlacesKept>::default(),
        Box::<jobs_kept::JobsKept>::default(),
        Box::<leaders_launch::LeadersLaunch>::default(),
        Box::<runs_end::RunsEnd>::default(),
        Box::<nothing_left::NothingLeft>::default(),
    ]
}

/// Whether the wall clock of hosts can be trusted to tell how much time has passed.
fn clocks_are_true(plan: &Plan) -> bool {
    !plan.faults.contains(&Fault::ClockJump)
}

/// Whether nothing at all goes wrong by itself: all that happens, somebody wants.
fn is_undisturbed(plan: &Plan) -> bool {
    let messages = plan.lost + plan.duplicated + plan.late;
    plan.faults.is_empty() && messages == 0 && plan.crash_at.is_none()
}
