//! After convergence, with every effect carried out, nothing is left to do.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::world::*;
use crate::board::converge::converge;
use crate::board::request::Report;
use crate::board::*;

fn arb_instance() -> impl Strategy<Value = ActualLrp> {
    (0..6_u32, 0..4, 0..10_u32, 0..2000_u64, any::<bool>()).prop_map(
        |(index, state, crash_count, age, lost)| {
            let cell = if lost { "gone" } else { "a" };
            let guid = format!("g{index}");
            let lrp = match state {
                0 => unclaimed(),
                1 => claimed(cell, &guid),
                2 => running(cell, &guid),
                _ => ActualLrp { state: ActualState::Crashed, ..unclaimed() },
            };
            let since = crate::seams::Timestamp(NOW.0 - i64::try_from(age * 1000).unwrap());
            ActualLrp { index, since, crash_count, ..lrp }
        },
    )
}

fn arb_task() -> impl Strategy<Value = Task> {
    (0..4_u8, 0..4, any::<bool>(), any::<bool>(), 0..3000_u64).prop_map(
        |(name, state, lost, calls, age)| {
            let cell = if lost { "gone" } else { "a" };
            let task = match state {
                0 => task(TaskState::Pending, None),
                1 => task(TaskState::Running, Some(cell)),
                2 => task(TaskState::Completed, Some(cell)),
                _ => task(TaskState::Resolving, Some(cell)),
            };
            let mut task = if calls { calling_back(task) } else { task };
            task.definition.task_guid = format!("t{name}").as_str().into();
            let at = crate::seams::Timestamp(NOW.0 - i64::try_from(age * 1000).unwrap());
            task.first_completed_at = task.first_completed_at.map(|_| at);
            (task.since, task.created_at) = (at, at);
            task
        },
    )
}

fn arb_world() -> impl Strategy<Value = World> {
    let instances = prop::collection::vec(arb_instance(), 0..6);
    let twins = prop::collection::vec(arb_instance(), 0..3);
    let tasks = prop::collection::vec(arb_task(), 0..4);
    (0..20_u32, any::<bool>(), instances, twins, tasks).prop_map(
        |(desired, is_fresh, instances, twins, tasks)| {
            let mut world = World::desiring(desired);
            world = instances.into_iter().fold(world, World::with);
            world = twins
                .into_iter()
                .filter(|twin| twin.state == ActualState::Running)
                .map(|lrp| ActualLrp { evacuating: true, expires_at: Some(NOW), ..lrp })
                .fold(world, World::with);
            world = tasks.into_iter().fold(world, World::with_task);
            if is_fresh {
                let fresh = Freshness::new("d".into(), None, NOW);
                world.records.put(Record::Domain(fresh));
            }
            world
        },
    )
}

fn plan(world: &World) -> Vec<Request> {
    let present = BTreeSet::from(["a".into()]);
    converge(&[&world.records], &present, world.now, &world.settings)
}

/// What a working cell `a` and a working callback answer.
fn answer(effect: Effect) -> Request {
    let report = |report| Request::Report { cell_id: "a".into(), report };
    match effect {
        Effect::Start { key } => {
            report(Report::Claim { key, instance_guid: "new".into(), incarnation: None })
        }
        Effect::StartTask { task_guid } => {
            report(Report::StartTask { task_guid, instance_guid: "i".into(), reservation: None })
        }
        Effect::Stop { key, instance } => Request::Report {
            cell_id: instance.cell_id,
            report: Report::Remove { key, instance_guid: instance.instance_guid },
        },
        Effect::CancelTask { task_guid, .. } => Request::DeleteTask { task_guid },
        Effect::Next(request) => request,
        Effect::CallBack { task } => Request::ResolveTask { task_guid: task.guid().clone() },
        Effect::Untold { task } => Request::DeleteTask { task_guid: task.guid().clone() },
        Effect::Scheduler(news) => panic!("{news:?} without a job"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_pass_that_is_carried_out_leaves_nothing_to_do(mut world in arb_world()) {
        let mut waiting: VecDeque<Request> = plan(&world).into();
        let mut steps = 0;
        while let Some(request) = waiting.pop_front() {
            steps += 1;
            prop_assert!(steps < 1000, "it goes on for ever: {request:?}");
            if let Ok(verdict) = world.ask(&request) {
                waiting.extend(verdict.effects.into_iter().map(answer));
            }
        }
        prop_assert_eq!(plan(&world), vec![]);
    }

    #[test]
    fn the_same_records_give_the_same_plan(world in arb_world()) {
        prop_assert_eq!(plan(&world), plan(&world));
    }

    #[test]
    fn what_is_not_desired_is_never_touched_in_a_domain_that_is_not_fresh(mut world in arb_world()) {
        drop(world.records.apply(&RecordKey::Domain("d".into()), None));
        let retires = plan(&world).iter().any(|request| matches!(request, Request::Retire { .. }));
        prop_assert!(!retires);
    }
}
