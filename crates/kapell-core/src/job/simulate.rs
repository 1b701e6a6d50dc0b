//! What a job would have done, or would do, if all went well.

use std::time::Duration;

use super::definition::JobDefinition;
use super::record::PassReason;
use crate::schedule::{ClockChange, Moments};
use crate::seams::Timestamp;

/// One moment of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    pub at: Timestamp,
    /// When the run would begin: with jitter.
    pub due_at: Timestamp,
    /// Why there would be no run.
    pub passed: Option<PassReason>,
    /// The clock of its zone was changed there.
    pub change: Option<ClockChange>,
}

/// What a simulation shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    pub moments: Vec<Simulated>,
    /// There are more: this is where to go on.
    pub more_from: Option<Timestamp>,
}

/// The moments from `from` until before `to`, at most so many.
pub fn simulate(
    definition: &JobDefinition,
    moments: &impl Moments,
    (from, to): (Timestamp, Timestamp),
    most: usize,
) -> Simulation {
    let mut simulation = Simulation { moments: Vec::new(), more_from: None };
    let mut at = Timestamp(from.0.saturating_sub(1));
    while let Some(next) = moments.next_after(at).filter(|next| next.at < to) {
        if simulation.moments.len() == most {
            simulation.more_from = Some(next.at);
            break;
        }
        at = next.at;
        let due_at = moments.put_off(at);
        let late = due_at.since(at);
        let passed = match next.excluded {
            Some(calendar) => Some(PassReason::Excluded { calendar }),
            None if definition.suspend => {
                Some(PassReason::Suspended { note: definition.suspend_note.clone() })
            }
            None => {
                definition.starting_deadline.and_then(|deadline| too_late(late, deadline.get()))
            }
        };
        simulation.moments.push(Simulated { at, due_at, passed, change: next.change });
    }
    simulation
}

/// Jitter alone may be longer than the deadline.
fn too_late(late: Duration, deadline: Duration) -> Option<PassReason> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    (late > deadline).then(|| PassReason::DeadlineMissed {
        late_ms: millis(late),
        deadline_ms: millis(deadline),
    })
}
