use kapell_core::board::{InstanceGuid, RecordKey, Request, TaskState};

use super::stage::{Outcome, Stage, broken, task_guid, task_record};
use crate::fleet::checks::callbacks::Callbacks;
use crate::fleet::fact::Fact;
use crate::fleet::plan::Fault;

type World = Stage<Callbacks>;

fn calls(world: &mut World, host: usize, version: u64) -> Outcome {
    let container = InstanceGuid::new("one");
    world.tell(&Fact::Calling { host, task: task_guid(), container, version })
}

fn called(world: &mut World) {
    let container = InstanceGuid::new("one");
    world.tell(&Fact::Called { task: task_guid(), container }).unwrap();
}

#[test]
fn one_caller_may_try_three_times() {
    let mut world = World::new();
    world.put([task_record("one", TaskState::Resolving, 4)]).unwrap();
    for _ in 0..3 {
        calls(&mut world, 0, 4).unwrap();
    }
    broken(calls(&mut world, 0, 4), "4 times");
}

#[test]
fn a_call_for_a_task_that_is_not_resolving_is_broken() {
    let mut world = World::new();
    world.put([task_record("one", TaskState::Completed, 3)]).unwrap();
    broken(calls(&mut world, 0, 3), "no commit allows");
}

#[test]
fn a_call_before_the_commit_is_broken() {
    let mut world = World::new();
    world.put([task_record("one", TaskState::Completed, 3)]).unwrap();
    broken(calls(&mut world, 0, 4), "no commit allows");
}

#[test]
fn two_callers_with_one_permission_are_broken() {
    let mut world = World::new();
    world.put([task_record("one", TaskState::Resolving, 4)]).unwrap();
    calls(&mut world, 0, 4).unwrap();
    broken(calls(&mut world, 1, 4), "both call");
}

#[test]
fn a_call_that_begins_when_another_has_the_task_is_broken_unless_its_host_slept() {
    let late = |mut world: World| {
        world.put([task_record("one", TaskState::Resolving, 4)]).unwrap();
        world.put([task_record("one", TaskState::Completed, 5)]).unwrap();
        calls(&mut world, 0, 4)
    };
    broken(late(World::new()), "stands no more");
    late(World::with(Fault::Pause)).unwrap();
}

#[test]
fn a_task_goes_after_its_callback_or_when_it_is_old_or_by_a_client() {
    let key = RecordKey::Task(task_guid());
    let resolving = || {
        let mut world = World::new();
        world.put([task_record("one", TaskState::Resolving, 4)]).unwrap();
        world
    };
    broken(resolving().delete(&key), "never called");
    let mut world = resolving();
    called(&mut world);
    world.delete(&key).unwrap();
    resolving().after(120).delete(&key).unwrap();
    let mut world = resolving();
    let request = Request::DeleteTask { task_guid: task_guid() };
    world.tell(&Fact::Asked { request }).unwrap();
    world.delete(&key).unwrap();
}
