//! What leaders tell cells to do.

use kapell_core::board::{ActualLrp, CellId, DesiredLrp, Record, RecordKey, TaskState};

use super::stage::{
    Stage, actual, broken, desire, desired, fresh_until, guid, key, process, running, task_guid,
    task_record, unclaimed,
};
use crate::fleet::checks::fresh_only::FreshOnly;
use crate::fleet::checks::rests_on_commits::RestsOnCommits;
use crate::fleet::fact::{Fact, Unit};
use crate::fleet::plan::Fault;

fn given_up() -> [Record; 1] {
    [Record::Desired(Box::new(DesiredLrp { retiring: true, version: 2, ..desired(0) }))]
}

fn work(unit: Unit) -> Fact {
    Fact::WorkSent { host: 0, cell: CellId::new("a"), unit }
}

#[test]
fn work_is_what_commits_have_left_to_be_placed() {
    let mut world = Stage::<RestsOnCommits>::new();
    broken(world.tell(&work(Unit::Lrp(key(0)))), "nothing says so");
    broken(world.tell(&work(Unit::Task(task_guid()))), "nothing says so");
    world.put([actual(unclaimed(0)), task_record("one", TaskState::Pending, 1)]).unwrap();
    world.tell(&work(Unit::Lrp(key(0)))).unwrap();
    world.tell(&work(Unit::Task(task_guid()))).unwrap();
}

#[test]
fn what_is_desired_is_not_stopped() {
    let mut world = Stage::<RestsOnCommits>::new();
    world.put([desire(1), actual(running(0, "x", "a"))]).unwrap();
    broken(world.stop(&process(0, "x", "a")), "for no reason");
    world.put(given_up()).unwrap();
    world.stop(&process(0, "x", "a")).unwrap();
}

#[test]
fn a_twin_is_stopped_after_the_commit_that_another_runs_and_not_before() {
    let twin = ActualLrp { evacuating: true, ..running(0, "x", "a") };
    let mut world = Stage::<RestsOnCommits>::new();
    world.put([desire(1), actual(unclaimed(0)), actual(twin)]).unwrap();
    broken(world.stop(&process(0, "x", "a")), "for no reason");
    world.put([actual(running(0, "y", "b"))]).unwrap();
    world.delete(&RecordKey::Evacuating(key(0))).unwrap();
    world.stop(&process(0, "x", "a")).unwrap();
}

/// Nobody desires what runs.
fn undesired() -> Stage<FreshOnly> {
    let mut world = Stage::<FreshOnly>::new();
    world.put([actual(running(0, "x", "a"))]).unwrap();
    world
}

#[test]
fn what_nobody_desires_is_stopped_in_a_fresh_domain_only() {
    broken(undesired().stop(&process(0, "x", "a")), "stale");
    let mut world = undesired();
    world.put([fresh_until(Some(30))]).unwrap();
    world.after(20).stop(&process(0, "x", "a")).unwrap();
    let mut world = undesired();
    world.put([fresh_until(Some(30))]).unwrap();
    broken(world.after(45).stop(&process(0, "x", "a")), "stale");
}

#[test]
fn a_stop_is_said_again_only_while_the_domain_is_fresh() {
    let mut world = undesired();
    world.put([fresh_until(Some(30))]).unwrap();
    world.stop(&process(0, "x", "a")).unwrap();
    world.after(29).stop(&process(0, "x", "a")).unwrap();
    broken(world.after(1).stop(&process(0, "x", "a")), "stale");
}

#[test]
fn what_somebody_gave_up_is_stopped_in_any_domain() {
    let mut world = Stage::<FreshOnly>::new();
    world.put([desire(1), actual(running(0, "x", "a"))]).unwrap();
    world.put(given_up()).unwrap();
    world.delete(&RecordKey::Desired(guid())).unwrap();
    world.stop(&process(0, "x", "a")).unwrap();
}

#[test]
fn where_clocks_jump_only_what_was_never_fresh_is_stale() {
    let mut world = Stage::<FreshOnly>::with(Fault::ClockJump);
    world.put([actual(running(0, "x", "a")), actual(running(1, "y", "a"))]).unwrap();
    broken(world.stop(&process(0, "x", "a")), "stale");
    world.put([fresh_until(Some(1))]).unwrap();
    world.after(100).stop(&process(1, "y", "a")).unwrap();
}
