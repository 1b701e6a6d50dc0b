//! How a world ends.

use kapell_core::board::{
    ActualLrp, ActualState, CellId, DesiredLrp, Record, RecordKey, TaskState,
};

use super::stage::{
    Stage, actual, broken, desire, desired, fresh_until, guid, process, running, task_record,
    unclaimed,
};
use crate::fleet::checks::desired_reached::DesiredReached;

type World = Stage<DesiredReached>;

/// One instance is desired and runs.
fn reached() -> World {
    let mut world = World::new();
    world.put([desire(1), actual(running(0, "x", "a"))]).unwrap();
    world.begin(&process(0, "x", "a")).unwrap();
    world
}

fn crashed(crash_count: u32) -> Record {
    actual(ActualLrp { state: ActualState::Crashed, crash_count, ..unclaimed(0) })
}

#[test]
fn what_is_desired_runs() {
    reached().end().unwrap();
}

#[test]
fn an_index_without_a_record_is_broken() {
    let mut world = reached();
    world.put([Record::Desired(Box::new(DesiredLrp { version: 2, ..desired(2) }))]).unwrap();
    broken(world.end(), "has no record");
}

#[test]
fn a_record_of_what_does_not_run_is_broken() {
    let mut world = reached();
    world.over(&process(0, "x", "a")).unwrap();
    broken(world.end(), "does not run");
}

#[test]
fn a_record_of_what_runs_elsewhere_is_broken() {
    let mut world = World::new();
    world.put([desire(1), actual(running(0, "x", "a"))]).unwrap();
    world.begin(&process(0, "x", "b")).unwrap();
    broken(world.end(), "does not run");
}

#[test]
fn an_instance_waits_only_for_room() {
    let mut world = World::new();
    world.put([desire(1), actual(unclaimed(0))]).unwrap();
    broken(world.end(), "does not run");
    for id in ["a", "b"] {
        world.machine(id).capacity.memory_mb = 50;
    }
    world.end().unwrap();
}

#[test]
fn what_crashes_waits_for_its_time_and_not_much_longer() {
    let mut world = World::new();
    world.put([desire(1), crashed(4)]).unwrap();
    broken(world.end(), "does not run");
    world.plan.crashing_apps = true;
    world.after(60 + 90).end().unwrap();
    broken(world.after(1).end(), "was to wait");
}

#[test]
fn what_crashes_is_not_in_starting_for_ever() {
    let mut world = World::new();
    world.plan.crashing_apps = true;
    world.put([desire(1), actual(ActualLrp { crash_count: 2, ..unclaimed(0) })]).unwrap();
    world.after(80).end().unwrap();
    broken(world.after(20).end(), "does not run");
}

#[test]
fn a_record_that_names_a_cell_that_is_gone_is_broken() {
    let mut world = World::new();
    world.put([actual(running(0, "x", "gone"))]).unwrap();
    broken(world.end(), "which is gone");
    let mut world = World::new();
    world.put([actual(running(0, "x", "a"))]).unwrap();
    world.machine("a").is_up = false;
    broken(world.end(), "which is gone");
}

#[test]
fn what_runs_without_a_record_is_broken() {
    let mut world = reached();
    world.begin(&process(0, "y", "b")).unwrap();
    broken(world.end(), "no record tells");
}

#[test]
fn what_was_given_up_and_runs_is_broken_in_any_domain() {
    let mut world = reached();
    let given_up = DesiredLrp { retiring: true, version: 2, ..desired(0) };
    world.put([Record::Desired(Box::new(given_up))]).unwrap();
    broken(world.end(), "was given up");
}

#[test]
fn what_nobody_desires_runs_on_in_a_stale_domain_only() {
    let mut world = reached();
    world.delete(&RecordKey::Desired(guid())).unwrap();
    world.after(100).end().unwrap();
    world.put([fresh_until(None)]).unwrap();
    world.after(80).end().unwrap();
    broken(world.after(20).end(), "undesired in fresh");
}

#[test]
fn a_task_is_complete_in_the_end_and_not_there_for_ever() {
    for state in [TaskState::Pending, TaskState::Running] {
        let mut world = World::new();
        world.put([task_record("one", state, 1)]).unwrap();
        broken(world.end(), "not complete");
    }
    let mut world = World::new();
    world.put([task_record("one", TaskState::Completed, 3)]).unwrap();
    world.after(200).end().unwrap();
    broken(world.after(60).end(), "after its end");
}

#[test]
fn a_twin_is_not_there_past_its_time() {
    let mut world = World::new();
    let cell_id = Some(CellId::new("a"));
    let twin = ActualLrp { evacuating: true, cell_id, ..running(0, "x", "a") };
    world.put([actual(twin)]).unwrap();
    world.after(680).end().unwrap();
    broken(world.after(20).end(), "a twin is there");
}
