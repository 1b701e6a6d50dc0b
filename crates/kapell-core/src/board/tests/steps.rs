//! Which states follow each other.

use super::world::*;
use crate::board::request::Report;
use crate::board::*;

/// Copied by hand from the specification: its lifecycle, crash, evacuation and convergence, and
/// what its table of containers and records asks for.
const INSTANCES: &[(ActualState, ActualState)] = &[
    (ActualState::Unclaimed, ActualState::Claimed),
    (ActualState::Unclaimed, ActualState::Running),
    (ActualState::Claimed, ActualState::Unclaimed),
    (ActualState::Claimed, ActualState::Running),
    (ActualState::Claimed, ActualState::Crashed),
    (ActualState::Running, ActualState::Unclaimed),
    (ActualState::Running, ActualState::Claimed),
    (ActualState::Running, ActualState::Crashed),
    (ActualState::Crashed, ActualState::Unclaimed),
    (ActualState::Crashed, ActualState::Running),
];

/// Copied by hand from the specification.
const TASKS: &[(TaskState, TaskState)] = &[
    (TaskState::Pending, TaskState::Running),
    (TaskState::Pending, TaskState::Completed),
    (TaskState::Running, TaskState::Completed),
    (TaskState::Completed, TaskState::Resolving),
    (TaskState::Resolving, TaskState::Completed),
];

#[test]
fn instances_and_tasks_step_as_specified_and_every_step_has_a_cause() {
    for from in ActualState::ALL {
        for to in ActualState::ALL {
            let legal = from.next().contains(&to);
            assert_eq!(legal, INSTANCES.contains(&(from, to)), "{from:?} to {to:?}");
            assert_eq!(legal, from.cause(to).is_some(), "{from:?} to {to:?}");
        }
    }
    for from in TaskState::ALL {
        for to in TaskState::ALL {
            let legal = from.next().contains(&to);
            assert_eq!(legal, TASKS.contains(&(from, to)), "{from:?} to {to:?}");
            assert_eq!(legal, from.cause(to).is_some(), "{from:?} to {to:?}");
        }
    }
}

/// Every request of every test of the board is checked by this.
pub(super) fn all_are_legal(before: &Records, after: &Records) {
    for (key, lrp) in &after.instances {
        match before.instances.get(key) {
            None => assert_ne!(lrp.state, ActualState::Claimed, "{key} is made"),
            Some(was) if was.state == lrp.state => {}
            Some(was) => assert!(was.state.next().contains(&lrp.state), "{was:?} to {lrp:?}"),
        }
    }
    for (key, twin) in &after.evacuating {
        assert_eq!(twin.state, ActualState::Running, "the twin of {key}");
    }
    for (guid, task) in &after.tasks {
        match before.tasks.get(guid) {
            None => assert_eq!(task.state, TaskState::Pending, "{guid} is made"),
            Some(was) if was.state == task.state => {}
            Some(was) => assert!(was.state.next().contains(&task.state), "{was:?} to {task:?}"),
        }
    }
    for (guid, was) in &before.tasks {
        let gone = !after.tasks.contains_key(guid);
        let over = matches!(was.state, TaskState::Completed | TaskState::Resolving);
        assert!(!gone || over, "{guid} is removed while it is {:?}", was.state);
    }
}

#[test]
fn every_step_that_is_allowed_can_be_taken() {
    let mut taken = Vec::new();
    let mut step = |mut world: World, request: &Request| {
        let was = world.instance(0).map(|lrp| lrp.state);
        world.ask(request).unwrap();
        let is = world.instance(0).map(|lrp| lrp.state);
        taken.extend(was.zip(is).filter(|(was, is)| was != is));
    };
    let report = |report| Request::Report { cell_id: "a".into(), report };
    let (instance_guid, domain) = (InstanceGuid::from("x"), Domain::from("d"));
    let us = || (key(0), instance_guid.clone());
    let claim = || {
        let (key, instance_guid) = us();
        report(Report::Claim { key, instance_guid, incarnation: None })
    };
    let runs = || {
        let (key, instance_guid) = us();
        report(Report::Running {
            key,
            instance_guid,
            incarnation: None,
            domain: domain.clone(),
            net: net(),
            ready: true,
        })
    };
    let crashes = || {
        let (key, instance_guid) = us();
        let reason = "r".to_owned();
        report(Report::Crashed {
            key,
            instance_guid,
            incarnation: None,
            domain: domain.clone(),
            reason,
        })
    };
    let lost = Request::Rescue { key: key(0), cell_id: "a".into() };
    for lrp in [claimed("a", "x"), running("a", "x")] {
        step(World::desiring(1).with(lrp.clone()), &lost);
        step(World::desiring(1).with(lrp.clone()), &crashes());
        step(World::desiring(1).with(ActualLrp { crash_count: 3, ..lrp }), &crashes());
    }
    step(World::desiring(1).with(unclaimed()), &claim());
    step(World::desiring(1).with(running("a", "x")), &claim());
    for lrp in [unclaimed(), claimed("a", "x"), crashed(4)] {
        step(World::desiring(1).with(lrp), &runs());
    }
    let mut world = World::desiring(1).with(crashed(4));
    world.pass(seconds(60));
    step(world, &Request::RestartCrashed { key: key(0) });
    for from in ActualState::ALL {
        for to in from.next() {
            assert!(taken.contains(&(from, *to)), "{from:?} to {to:?}");
        }
    }
}
