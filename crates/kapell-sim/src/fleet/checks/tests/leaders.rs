//! Who leads, and whom a leader takes for lost.

use kapell_core::board::{ActualLrp, CellId, Record, Task, TaskState};
use kapell_core::seat::{Epoch, Seat};
use kapell_store::model::{Fence, Shard};

use super::stage::{
    Outcome, Stage, actual, broken, process, running, task, task_record, unclaimed,
};
use crate::fleet::checks::deposed::Deposed;
use crate::fleet::checks::presence::Presence;
use crate::fleet::fact::Fact;

fn commit(world: &mut Stage<Deposed>, host: usize, shard: u16, epoch: u64, seq: u64) -> Outcome {
    let at = Fence { epoch: Epoch(epoch), seq };
    let shard = Shard { seat: Seat::FIRST, number: shard };
    world.tell(&Fact::Committed { host, shard, at, changes: Vec::new() })
}

#[test]
fn commits_land_in_the_order_of_their_fences() {
    let mut world = Stage::<Deposed>::new();
    commit(&mut world, 0, 0, 1, 0).unwrap();
    commit(&mut world, 0, 0, 1, 1).unwrap();
    commit(&mut world, 0, 1, 1, 0).unwrap();
    commit(&mut world, 1, 0, 2, 0).unwrap();
    broken(commit(&mut world, 0, 0, 1, 2), "after one at");
}

#[test]
fn a_commit_that_lands_twice_is_broken() {
    let mut world = Stage::<Deposed>::new();
    commit(&mut world, 0, 0, 1, 0).unwrap();
    broken(commit(&mut world, 0, 0, 1, 0), "after one at");
}

#[test]
fn a_commit_with_the_fence_of_another_leader_is_broken() {
    let mut world = Stage::<Deposed>::new();
    commit(&mut world, 0, 0, 1, 0).unwrap();
    world.tell(&Fact::TookOver { host: 1, epoch: Epoch(2) }).unwrap();
    broken(commit(&mut world, 0, 0, 2, 0), "host 1 leads");
}

#[test]
fn a_cell_that_heeds_an_older_epoch_is_broken() {
    let mut world = Stage::<Deposed>::new();
    let mut heeds = |cell: &str, epoch| {
        world.tell(&Fact::Heeded { cell: CellId::new(cell), epoch: Epoch(epoch), what: "work" })
    };
    heeds("a", 1).unwrap();
    heeds("a", 2).unwrap();
    heeds("b", 1).unwrap();
    broken(heeds("a", 1), "after epoch 2");
}

#[test]
fn a_cell_that_was_told_of_an_epoch_heeds_no_older_one() {
    let mut world = Stage::<Deposed>::new();
    let cell = CellId::new("a");
    world.tell(&Fact::HeardOf { cell: cell.clone(), epoch: Epoch(2) }).unwrap();
    world.tell(&Fact::HeardOf { cell: cell.clone(), epoch: Epoch(1) }).unwrap();
    broken(world.tell(&Fact::Heeded { cell, epoch: Epoch(1), what: "stop" }), "after epoch 2");
}

type World = Stage<Presence>;

fn leads(world: &mut World) {
    world.tell(&Fact::TookOver { host: 0, epoch: Epoch(1) }).unwrap();
}

fn hears(world: &mut World) {
    world.tell(&Fact::Welcomed { host: 0, cell: CellId::new("a") }).unwrap();
}

fn fails_task(world: &mut World) -> Outcome {
    let failure_reason = "cell `a` disappeared before completion".to_owned();
    let failed = Task { failure_reason, ..task("one", TaskState::Completed, 3) };
    world.put([Record::Task(Box::new(failed))])
}

fn begun() -> World {
    let mut world = World::new();
    world.put([task_record("one", TaskState::Running, 2)]).unwrap();
    world.put([actual(running(0, "x", "a"))]).unwrap();
    world.begin(&process(0, "x", "a")).unwrap();
    world
}

#[test]
fn a_cell_is_lost_when_it_was_not_heard_of_for_its_time() {
    let mut world = begun();
    leads(&mut world);
    hears(world.after(30));
    fails_task(world.after(15)).unwrap();
}

#[test]
fn a_new_leader_that_does_not_wait_for_cells_is_broken() {
    let mut world = begun();
    leads(world.after(100));
    broken(fails_task(world.after(5)), "for lost after 5s");
}

#[test]
fn a_cell_that_was_heard_of_is_not_lost() {
    let mut world = begun();
    leads(&mut world);
    for _ in 0..4 {
        hears(world.after(10));
    }
    broken(fails_task(world.after(5)), "for lost after 5s");
}

#[test]
fn a_cell_that_said_that_it_goes_is_lost_at_once() {
    let mut world = begun();
    leads(&mut world);
    hears(&mut world);
    world.tell(&Fact::Left { host: 0, cell: CellId::new("a") }).unwrap();
    fails_task(&mut world).unwrap();
}

#[test]
fn a_commit_may_land_after_the_cell_is_back() {
    let mut world = begun();
    leads(&mut world);
    hears(world.after(20));
    fails_task(world.after(3)).unwrap();
}

#[test]
fn an_instance_is_not_taken_from_a_cell_that_runs_it_and_was_heard_of() {
    let mut world = begun();
    leads(&mut world);
    hears(world.after(10));
    broken(world.after(5).put([actual(unclaimed(0))]), "for lost");
}

#[test]
fn a_cell_itself_gives_up_what_ended_and_what_it_evacuates() {
    let crashed = || [actual(ActualLrp { crash_count: 1, ..unclaimed(0) })];
    let mut world = begun();
    leads(&mut world);
    world.put(crashed()).unwrap();
    let mut world = begun();
    leads(&mut world);
    world.machine("a").evacuating = true;
    world.put([actual(unclaimed(0))]).unwrap();
    let mut world = begun();
    leads(&mut world);
    world.over(&process(0, "x", "a")).unwrap();
    world.put([actual(unclaimed(0))]).unwrap();
}
