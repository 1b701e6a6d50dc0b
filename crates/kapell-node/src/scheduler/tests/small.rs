use std::sync::Arc;

use kapell_core::board::{Domain, JobId};
use kapell_core::run::{Orchestrator, Plan, Run, RunId, WorkEnd};
use kapell_core::seams::{Moment, Timestamp};

use super::stage::{job, secs};
use crate::scheduler::entry::Entry;
use crate::scheduler::heart::Heart;
use crate::scheduler::lanes::{Deed, Errand, Kind, Lanes, Limits};
use crate::scheduler::slab::{Key, Slab};
use crate::scheduler::timers::{Timers, Watch};

fn waiting(count: u32) -> (Slab, Timers) {
    let definition = Arc::new(job("many", ""));
    let (mut slab, mut timers) = (Slab::default(), Timers::default());
    let job_id = JobId::new("many");
    for number in 0..count {
        let at = Timestamp(1_700_000_000_000 + i64::from(number) * 1_000);
        let run: Run = serde_json::from_value(serde_json::json!({
            "run_id": RunId::scheduled(&job_id, at), "domain": Domain::new("jobs"), "revision": 1,
            "trigger": {"by": "schedule"}, "scheduled_at": at, "due_at": at, "state": "PreRun",
            "created_at": at, "version": 1,
        }))
        .unwrap();
        let plan = Plan {
            definition: Arc::clone(&definition),
            revision: 1,
            checks_before: false,
            checks_after: false,
            start_timeout_s: 300,
        };
        let (it, _) = Orchestrator::begin(&run, plan, at);
        let key = slab.insert(Entry::new(it)).unwrap();
        timers.set(at, key);
    }
    (slab, timers)
}

#[test]
fn a_run_that_waits_for_its_time_costs_at_most_250_bytes() {
    let count = 100_000;
    let (slab, timers) = waiting(count);
    let each = (slab.bytes() + timers.bytes()) / usize::try_from(count).unwrap();
    assert!(each <= 250, "{each} bytes");
}

#[test]
fn a_sweep_over_a_hundred_thousand_waiting_runs_beats_each_once_and_orphans_none() {
    let (mut slab, _) = waiting(100_000);
    let mut heart = Heart::new(secs(10), 3, Moment::ZERO);
    for round in 1..=5 {
        let silent = heart.sweep(&mut slab, Moment::from_origin(secs(10 * round)));
        assert!(silent.is_empty());
    }
    assert!(slab.iter().all(|entry| entry.it.heartbeats() == 5));
}

#[test]
fn a_slot_is_used_again_and_who_had_it_before_is_not_found() {
    let (mut slab, mut timers) = waiting(3);
    let (at, key) = timers.take_due(Timestamp(1_700_000_000_000)).unwrap();
    assert_eq!(timers.take_due(at), None);
    let entry = slab.remove(key).unwrap();
    assert!(slab.get(key).is_none() && slab.remove(key).is_none());
    let run_id = entry.it.run_id().clone();
    assert_eq!(slab.key(&run_id), None);
    let again = slab.insert(entry).unwrap();
    assert_ne!(key, again);
    assert_eq!((slab.key(&run_id), slab.len()), (Some(again), 3));
    let twice = slab.get(again).unwrap().it.clone();
    assert!(slab.insert(Entry::new(twice)).is_none(), "it is there");
}

#[test]
fn a_clock_that_is_slewed_is_not_a_clock_that_is_set() {
    let mut watch = Watch::new(Moment::ZERO, Timestamp(0));
    let mut wall = 0;
    for second in 1..1_000 {
        wall += 1_000 + 5;
        assert_eq!(watch.look(Moment::from_origin(secs(second)), Timestamp(wall)), 0);
    }
    assert_eq!(
        watch.look(Moment::from_origin(secs(1_000)), Timestamp(wall + 1_000 - 7_000)),
        -7_000
    );
}

#[test]
fn checks_after_the_work_do_not_wait_for_actions_before_that_of_others() {
    let mut lanes = Lanes::new(&Limits { actions: 1, posts: 1, ..Limits::default() });
    let work = WorkEnd { began: None, at: Timestamp(0), exit_code: Some(0), failure: None };
    let add = |lanes: &mut Lanes, tag: u64, deed: Deed| {
        lanes.add(Errand { key: Key::of_tag(tag), ticket: 0, attempt: 0, deed });
    };
    for tag in 0..2 {
        add(&mut lanes, tag, Deed::Act);
    }
    assert_eq!(lanes.take().map(|it| it.key), Some(Key::of_tag(0)));
    assert_eq!(lanes.take(), None, "one at a time");
    for tag in 2..4 {
        add(&mut lanes, tag, Deed::CheckPost { work: work.clone() });
    }
    assert_eq!(lanes.take().map(|it| it.key), Some(Key::of_tag(2)));
    assert_eq!(lanes.take(), None);
    // Whoever only waits lets others have its place.
    lanes.slots(Kind::Action).give_back();
    assert_eq!(lanes.take().map(|it| it.key), Some(Key::of_tag(1)));
    lanes.ended(Kind::Post);
    assert_eq!(lanes.take().map(|it| it.key), Some(Key::of_tag(3)));
}
