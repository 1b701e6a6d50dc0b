use super::world::*;
use crate::board::*;

/// Copied by hand from the specification and, where it gives no number, from the ruling.
#[test]
fn every_timer_is_as_specified() {
    let is = Settings::default();
    for (name, timer, wanted) in [
        ("a cell is lost", is.presence_ttl, 15),
        ("convergence", is.converge_every, 30),
        ("a start is asked for again", is.stale_unclaimed, 30),
        ("a task is kicked", is.kick_task, 30),
        ("a pending task is given up", is.pending_task, 30 * 60),
        ("a completed task is deleted", is.completed_task, 2 * 60),
        ("an evacuation", is.evacuation, 10 * 60),
        ("a first wait after crashes", is.crash_wait, 30),
        ("the longest wait after crashes", is.longest_crash_wait, 16 * 60),
        ("crashes are forgotten", is.crash_reset, 5 * 60),
    ] {
        assert_eq!(timer, seconds(wanted), "{name}");
    }
    assert_eq!((is.immediate_restarts, is.most_crashes), (3, 200));
}
