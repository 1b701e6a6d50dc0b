//! Whatever is asked in whatever order, the records stay sound. `World::ask` checks each step:
//! a refusal changes nothing, few records are written, fields fit states.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::world::*;
use crate::board::request::{Report, Retirement};
use crate::board::*;

/// The incarnation of what is desired first.
fn now_long() -> u64 {
    u64::try_from(NOW.0).unwrap()
}

fn arb_report() -> impl Strategy<Value = Request> {
    let incarnation = prop_oneof![Just(None), Just(Some(0)), Just(Some(now_long()))];
    let which = (0..10, 0..2_u32, 0..2_usize, 0..2_usize, incarnation, any::<bool>());
    which.prop_map(|(kind, index, cell, guid, incarnation, ready)| {
        let (key, domain) = (key(index), Domain::from("d"));
        let instance_guid = InstanceGuid::from(["x", "y"][guid]);
        let task_guid = TaskGuid::from("t");
        let report = match kind {
            0 => Report::Claim { key, instance_guid, incarnation },
            1 => {
                let net = net();
                Report::Running { key, instance_guid, domain, incarnation, net, ready }
            }
            2 => {
                let reason = "r".to_owned();
                Report::Crashed { key, instance_guid, domain, incarnation, reason }
            }
            3 => Report::Remove { key, instance_guid },
            4 => Report::RemoveEvacuating { key, instance_guid },
            5 => Report::Evacuate { key, instance_guid, domain, incarnation, net: net() },
            6 => Report::Unclaim { key, instance_guid },
            7 => {
                // As cells do it, no two have the same.
                let reservation = Some(format!("{cell}{index}").as_str().into());
                Report::StartTask { task_guid, instance_guid, reservation }
            }
            8 => Report::Ready { key, instance_guid, ready },
            _ => Report::CompleteTask {
                task_guid,
                instance_guid,
                failed: false,
                failure_reason: String::new(),
                result: String::new(),
                exit_code: Some(0),
            },
        };
        Request::Report { cell_id: ["a", "b"][cell].into(), report }
    })
}

fn arb_request() -> impl Strategy<Value = Request> {
    let own = (0..20, 0..2_u32, 0..2_usize, 0..4_u32).prop_map(|(kind, index, at, number)| {
        let (key, cell_id) = (key(index), CellId::from(["a", "b"][at]));
        let (process_guid, task_guid) = (ProcessGuid::from("web"), TaskGuid::from("t"));
        let reason = "full".to_owned();
        match kind {
            0 => Request::Desire(Box::new(DesiredLrp { instances: number, ..web() })),
            1 => {
                let instances = Some(number);
                let update = DesiredUpdate { instances, ..DesiredUpdate::default() };
                Request::UpdateDesired { process_guid, update }
            }
            2 => Request::RemoveDesired { process_guid },
            3 => Request::Unfold { process_guid, from: index },
            4 => Request::Retire { key, why: Retirement::Explicit },
            5 => Request::RestartCrashed { key },
            6 => Request::Rescue { key, cell_id },
            7 => Request::FailPlacement { key, reason },
            8 => Request::ExpireEvacuating { key },
            9 => Request::CreateTask {
                definition: Box::new(definition()),
                instance_guid: ["x", "y"][at].into(),
            },
            10 => Request::CancelTask { task_guid },
            11 => Request::ResolveTask { task_guid },
            12 => Request::DeleteTask { task_guid },
            13 => Request::FailTaskPlacement { task_guid, reason, last: number == 0 },
            14 => Request::KickPendingTask { task_guid },
            15 => Request::KickCompletedTask { task_guid },
            16 => Request::Reemit { key },
            17 => Request::Settle { process_guid },
            18 => Request::Retire { key, why: Retirement::Converged { fresh_until: None } },
            _ => Request::FailLostTask { task_guid, cell_id },
        }
    });
    prop_oneof![own, arb_report()]
}

/// The version of each record that is there.
fn versions(records: &Records) -> Vec<(RecordKey, u64, Record)> {
    let actual = records.instances.values().chain(records.evacuating.values());
    let actual = actual.map(|lrp| (lrp.version, Record::Actual(Box::new(lrp.clone()))));
    let tasks =
        records.tasks.values().map(|task| (task.version, Record::Task(Box::new(task.clone()))));
    let desired = records.desired.values().map(|lrp| {
        // What the board notes for itself does not count.
        let lrp = DesiredLrp { retiring: false, ..lrp.clone() };
        (lrp.version, Record::Desired(Box::new(lrp)))
    });
    let all = actual.chain(tasks).chain(desired);
    all.map(|(version, record)| (record.key(), version, record)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_change_of_a_record_counts_its_version_by_one(
        steps in prop::collection::vec((arb_request(), 0..400_u64), 1..40),
    ) {
        let mut world = World::new();
        for (request, pause) in steps {
            world.pass(seconds(pause));
            let before = versions(&world.records);
            let _ = world.ask(&request);
            for (key, version, record) in versions(&world.records) {
                let Some((_, old, was)) = before.iter().find(|(old, ..)| *old == key) else {
                    prop_assert_eq!(version, 1, "a new record of {:?}", request);
                    continue;
                };
                let want = if record == *was { *old } else { old + 1 };
                prop_assert_eq!(version, want, "after {:?}", request);
            }
        }
    }

    #[test]
    fn what_is_read_from_a_store_is_what_changes_have_left(
        steps in prop::collection::vec(arb_request(), 1..40),
    ) {
        let mut world = World::new();
        for request in steps {
            let _ = world.ask(&request);
            let mut read = Gathering::default();
            let keys = versions(&world.records).into_iter().map(|(key, ..)| key);
            let domains = world.records.domains.keys().cloned().map(RecordKey::Domain);
            keys.chain(domains).filter_map(|key| world.records.get(&key)).for_each(|it| read.add(it));
            prop_assert_eq!(&read.end(), &world.records, "after {:?}", request);
        }
    }

    #[test]
    fn one_reservation_at_most_is_given_leave_to_start_a_task(
        steps in prop::collection::vec(arb_request(), 1..60),
    ) {
        let mut world = World::new();
        let mut given = BTreeSet::new();
        for request in steps {
            if matches!(request, Request::CreateTask { .. }) && world.task().is_none() {
                given.clear();
            }
            let answer = world.ask(&request);
            if let Request::Report { cell_id, report: Report::StartTask { reservation, .. } } = request
                && answer.is_ok()
            {
                given.insert((cell_id, reservation));
            }
            prop_assert!(given.len() <= 1, "{:?}", given);
        }
    }

    #[test]
    fn a_start_is_asked_for_only_where_an_unclaimed_instance_is_desired(
        steps in prop::collection::vec((arb_request(), 0..400_u64), 1..40),
    ) {
        let mut world = World::new();
        for (request, pause) in steps {
            world.pass(seconds(pause));
            let Ok(verdict) = world.ask(&request) else { continue };
            for effect in verdict.effects {
                let Effect::Start { key } = effect else { continue };
                let desired = &world.records.desired[&key.process_guid];
                prop_assert!(key.index < desired.instances);
                prop_assert_eq!(world.records.instances[&key].state, ActualState::Unclaimed);
            }
        }
    }

    #[test]
    fn records_hold_only_what_fits_their_state(
        steps in prop::collection::vec((arb_request(), 0..400_u64), 1..40),
    ) {
        let mut world = World::new();
        let mut completed: Option<Task> = None;
        for (request, pause) in steps {
            world.pass(seconds(pause));
            let _ = world.ask(&request);
            for lrp in world.records.instances.values() {
                let waits = lrp.state == ActualState::Unclaimed;
                prop_assert!(waits || lrp.placement_error.is_none(), "after {:?}", request);
                prop_assert!(!lrp.evacuating && lrp.expires_at.is_none());
            }
            for twin in world.records.evacuating.values() {
                let until = twin.since.after(world.settings.evacuation);
                prop_assert_eq!((twin.state, twin.expires_at), (ActualState::Running, Some(until)));
                prop_assert!(twin.evacuating && twin.placement_error.is_none());
            }
            let Some(task) = world.task() else { continue };
            let over = matches!(task.state, TaskState::Completed | TaskState::Resolving);
            prop_assert_eq!(task.first_completed_at.is_some(), over);
            let waits = task.state == TaskState::Pending;
            prop_assert!(waits || task.placement_error.is_none());
            let before = completed.take().filter(|it| it.created_at == task.created_at);
            if let Some(before) = before.filter(|it| it.instance_guid == task.instance_guid) {
                prop_assert_eq!(before.first_completed_at, task.first_completed_at, "the first");
            }
            completed = over.then(|| task.clone());
        }
    }
}
