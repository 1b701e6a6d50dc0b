//! Runs that are cancelled: at the points of a stop, where the host dies, and in every phase.

use std::time::Duration;

use serde_json::json;

use super::duo::{Duo, Machines};
use super::work::Where;
use crate::bench::{LIMIT, try_eventually};
use crate::leadership::cluster::Kind;
use crate::platform::site::WORK;

/// All that a cancel of work that runs waits for.
const OF_A_CANCEL: [&str; 6] = ["stop", "stopped", "ended", "ended-stored", "release", "released"];

/// Work runs and is cancelled, and the host dies while it does that; whoever leads next does it to its end.
fn is_cancelled_over_failovers(place: Where) {
    let mut duo = Duo::new(Kind::File, Machines::One, &OF_A_CANCEL).expect("no server is needed");
    let stays = format!("exec env {WORK}={} sleep 1000", duo.fleet.mark());
    duo.apply(&duo.ledger.job_of(place, &stays));
    for point in OF_A_CANCEL {
        let known = duo.told.clone();
        duo.trigger(place);
        let run = duo.told.difference(&known).next().cloned();
        if let Some(run) = run {
            // Or an earlier run that is to be ended has led this host to its point.
            let seen = try_eventually(LIMIT, || {
                let runs = duo.ledger.launches().keys().any(|line| line.starts_with(&run));
                (runs || duo.falls(Duration::ZERO)).then_some(())
            });
            assert!(seen.is_some(), "{place:?}, {point}: {run} does not run");
            let path = format!("/v1/runs/{run}/cancel");
            let body = json!({"at_once": point.starts_with("stop")});
            // It may be the last thing that this host is told.
            drop(duo.fleet.try_ask("POST", &path, Some(&body)));
        }
        assert!(duo.falls(LIMIT), "{place:?}, {point}: nobody came to this point");
        duo.bury();
        duo.replace();
    }
    // The wish for a run or for its end may have died with a host, unanswered.
    for run in duo.runs() {
        let path = format!("/v1/runs/{}/cancel", run["run_id"].as_str().expect("an id"));
        duo.fleet.ask("POST", &path, Some(&json!({})));
    }
    let runs = duo.all_is_well(&format!("{place:?}"));
    assert!(!runs.is_empty(), "{place:?}");
    assert!(runs.iter().all(|run| run["state"] == "Cancelled"), "{place:?}: {runs:?}");
    let left = || duo.fleet.work();
    let gone = try_eventually(LIMIT, || left().is_empty().then_some(()));
    assert!(gone.is_some(), "{place:?}: still there: {:?}", left());
    duo.both_tell_the_same();
}

#[test]
fn a_cancel_outlives_a_failover_at_every_point_of_a_stop() {
    std::thread::scope(|scope| {
        let lines = Where::ALL.map(|place| scope.spawn(move || is_cancelled_over_failovers(place)));
        for line in lines {
            line.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}
