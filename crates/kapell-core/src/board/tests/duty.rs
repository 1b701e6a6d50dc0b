//! What convergence really asks for, duty by duty.

use std::collections::BTreeSet;

use super::world::*;
use crate::board::converge::converge;
use crate::board::duty::About;
use crate::board::*;

/// A world in which exactly this is to be done, by hand from the specification.
fn world(duty: Duty) -> World {
    let mut world = match duty {
        Duty::RescueInstance => World::desiring(1).with(running("gone", "x")),
        Duty::StartMissing => World::desiring(1),
        Duty::StopExtra => World::new().with(running("a", "x")),
        Duty::RestartCrashed => World::desiring(1).with(crashed(4)),
        Duty::StartAgain => World::desiring(1).with(unclaimed()),
        Duty::FailLostTask => World::new().with_task(task(TaskState::Running, Some("gone"))),
        Duty::StartTaskAgain => World::new().with_task(task(TaskState::Pending, None)),
        Duty::DeleteOldTask => World::new().with_task(task(TaskState::Completed, Some("a"))),
        Duty::ResolveTask => {
            World::new().with_task(calling_back(task(TaskState::Completed, Some("a"))))
        }
        Duty::DemoteTask => World::new().with_task(task(TaskState::Resolving, Some("a"))),
        Duty::ExpireTwin => World::desiring(1).with(running("a", "x")).with(twin("a", "y")),
        Duty::Settle => {
            let mut world = World::desiring(1).with(running("a", "x"));
            let desired = world.records.desired[&ProcessGuid::from("web")].clone();
            let retiring = DesiredLrp { retiring: true, ..desired };
            world.records.put(Record::Desired(Box::new(retiring)));
            world
        }
    };
    let fresh = Freshness { domain: "d".into(), expires_at: None, since: None };
    world.records.put(Record::Domain(fresh));
    let pause = match duty {
        Duty::RescueInstance
        | Duty::StartMissing
        | Duty::StopExtra
        | Duty::FailLostTask
        | Duty::Settle => 0,
        Duty::StartAgain | Duty::StartTaskAgain | Duty::ResolveTask | Duty::DemoteTask => 30,
        Duty::RestartCrashed => 60,
        Duty::DeleteOldTask => 120,
        Duty::ExpireTwin => 600,
    };
    world.pass(seconds(pause));
    world
}

#[test]
fn each_duty_asks_for_what_it_says_and_only_in_its_condition() {
    let present = BTreeSet::from(["a".into()]);
    for duty in Duty::ALL {
        let mut world = world(duty);
        let asked = converge(&[&world.records], &present, world.now, &world.settings);
        assert_eq!(asked.len(), 1, "{duty}: {asked:?}");
        let name = format!("{:?}", asked[0]);
        let name = name.split([' ', '(']).next().unwrap();
        assert_eq!(name, duty.request(), "{duty}");
        let effects = world.effects(&asked[0]);
        let state = world.instance(0).map(|lrp| lrp.state);
        let task = world.task().map(|task| (task.state, task.failed));
        match duty {
            Duty::RescueInstance | Duty::StartMissing | Duty::RestartCrashed | Duty::StartAgain => {
                assert_eq!(state, Some(ActualState::Unclaimed), "{duty}");
            }
            Duty::StopExtra | Duty::ExpireTwin | Duty::Settle => {
                assert_eq!(state, Some(ActualState::Running), "{duty}");
                assert!(world.twin(0).is_none(), "{duty}");
            }
            Duty::FailLostTask => assert_eq!(task, Some((TaskState::Completed, true))),
            Duty::StartTaskAgain => assert_eq!(task, Some((TaskState::Pending, false))),
            Duty::DeleteOldTask => assert_eq!(task, None),
            Duty::ResolveTask => {
                assert_eq!(task, Some((TaskState::Completed, false)));
                assert!(matches!(effects[..], [Effect::CallBack { .. }]), "{effects:?}");
            }
            Duty::DemoteTask => assert_eq!(task, Some((TaskState::Completed, false))),
        }
    }
}

#[test]
fn there_are_five_duties_for_instances_and_five_for_tasks() {
    for about in About::ALL {
        let numbers: Vec<u8> =
            Duty::ALL.iter().filter(|it| it.about() == about).map(|it| it.number()).collect();
        let want: Vec<u8> = match about {
            About::Lrps | About::Tasks => (1..=5).collect(),
            About::House => vec![1, 2],
        };
        assert_eq!(numbers, want, "{about:?}");
    }
}
