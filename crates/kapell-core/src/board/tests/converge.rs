use std::collections::BTreeSet;

use super::world::*;
use crate::board::converge::{converge, next_due};
use crate::board::request::Retirement;
use crate::board::*;
use crate::seams::Timestamp;

fn plan(world: &World) -> Vec<Request> {
    let present = BTreeSet::from(["a".into(), "b".into()]);
    converge(&[&world.records], &present, world.now, &world.settings)
}

fn fresh(mut world: World, until: Option<Timestamp>) -> World {
    let fresh = Freshness { domain: "d".into(), expires_at: until, since: None };
    world.records.put(Record::Domain(fresh));
    world
}

fn retire() -> Request {
    retire_until(None)
}

fn retire_until(fresh_until: Option<Timestamp>) -> Request {
    Request::Retire { key: key(0), why: Retirement::Converged { fresh_until } }
}

fn rescue(cell: &str) -> Request {
    Request::Rescue { key: key(0), cell_id: cell.into() }
}

#[test]
fn what_is_as_desired_is_left_alone() {
    for lrp in [unclaimed(), claimed("a", "x"), running("b", "x"), crashed(4)] {
        assert_eq!(plan(&fresh(World::desiring(1).with(lrp), None)), []);
    }
}

#[test]
fn instances_of_lost_cells_are_rescued() {
    for lrp in [claimed("gone", "x"), running("gone", "x")] {
        assert_eq!(plan(&World::desiring(1).with(lrp)), [rescue("gone")]);
    }
}

#[test]
fn what_was_on_a_lost_cell_and_is_extra_is_rescued_and_then_retired_if_its_domain_is_fresh() {
    let world = World::new().with(running("gone", "x"));
    assert_eq!(plan(&world), [rescue("gone")]);
    let mut world = fresh(world, None);
    assert_eq!(plan(&world), [rescue("gone"), retire()]);
    for request in plan(&world) {
        assert_eq!(world.effects(&request), []);
    }
    assert_eq!(world.instance(0), None);
}

#[test]
fn missing_instances_are_created_from_the_first_that_is_missing() {
    let unfold = |from| Request::Unfold { process_guid: "web".into(), from };
    assert_eq!(plan(&World::desiring(2)), [unfold(0)]);
    let with_first = World::desiring(3).with(running("a", "x"));
    assert_eq!(plan(&with_first), [unfold(1)]);
    let hole = with_first.with(ActualLrp { index: 2, ..running("a", "y") });
    assert_eq!(plan(&hole), [unfold(1)]);
}

#[test]
fn extra_instances_are_retired_only_in_a_fresh_domain() {
    for lrp in [unclaimed(), claimed("a", "x"), running("a", "x"), crashed(4)] {
        assert_eq!(plan(&World::desiring(0).with(lrp.clone())), [], "never set");
        let expired = fresh(World::desiring(0).with(lrp.clone()), Some(NOW));
        assert_eq!(plan(&expired), [], "not fresh any more");
        let until = Some(Timestamp(NOW.0 + 1));
        let vouched = fresh(World::desiring(0).with(lrp.clone()), until);
        assert_eq!(plan(&vouched), [retire_until(until)]);
        assert_eq!(plan(&fresh(World::new().with(lrp), None)), [retire()]);
    }
}

#[test]
fn a_domain_counts_whichever_shard_holds_it() {
    let extra = World::new().with(running("a", "x"));
    let vouching = fresh(World::new(), None);
    let present = BTreeSet::from(["a".into()]);
    let shards = [&extra.records, &vouching.records];
    assert_eq!(converge(&shards, &present, NOW, &Settings::default()), [retire()]);
}

#[test]
fn crashed_instances_are_restarted_when_they_are_due() {
    let mut world = World::desiring(1).with(crashed(4));
    world.pass(seconds(59));
    assert_eq!(plan(&world), []);
    world.pass(seconds(1));
    assert_eq!(plan(&world), [Request::RestartCrashed { key: key(0) }]);
    let mut world = World::desiring(1).with(crashed(201));
    world.pass(seconds(100_000));
    assert_eq!(plan(&world), []);
}

#[test]
fn stale_unclaimed_instances_are_asked_for_again() {
    let mut world = World::desiring(1).with(unclaimed());
    world.pass(seconds(30));
    assert_eq!(plan(&world), [Request::Reemit { key: key(0) }]);
}

#[test]
fn evacuating_twins_are_ignored_until_they_expire_or_their_cell_is_gone() {
    let world = fresh(World::new().with(twin("a", "x")), None);
    assert_eq!(plan(&world), []);
    let gone = World::desiring(1).with(running("a", "y")).with(twin("gone", "x"));
    assert_eq!(plan(&gone), [rescue("gone")]);
    let both = World::desiring(1).with(running("gone", "y")).with(twin("gone", "x"));
    assert_eq!(plan(&both), [rescue("gone")], "one request does both");
    let mut over = World::desiring(1).with(running("a", "y")).with(twin("gone", "x"));
    over.pass(seconds(600));
    assert_eq!(plan(&over), [Request::ExpireEvacuating { key: key(0) }]);
}

#[test]
fn an_evacuating_twin_is_no_instance() {
    let unfold = Request::Unfold { process_guid: "web".into(), from: 0 };
    assert_eq!(plan(&World::desiring(1).with(twin("a", "x"))), [unfold]);
    let mut stale = World::desiring(1).with(unclaimed()).with(twin("a", "x"));
    stale.pass(seconds(30));
    assert_eq!(plan(&stale), [Request::Reemit { key: key(0) }]);
}

#[test]
fn tasks_of_lost_cells_fail() {
    let world = World::new().with_task(task(TaskState::Running, Some("gone")));
    let lost = Request::FailLostTask { task_guid: "t".into(), cell_id: "gone".into() };
    assert_eq!(plan(&world), [lost]);
    assert_eq!(plan(&World::new().with_task(task(TaskState::Running, Some("a")))), []);
}

#[test]
fn tasks_are_kicked_when_they_wait_too_long() {
    let pending = Request::KickPendingTask { task_guid: "t".into() };
    let completed = Request::KickCompletedTask { task_guid: "t".into() };
    let cases = [
        (task(TaskState::Pending, None), 30, &pending),
        (task(TaskState::Completed, Some("a")), 120, &completed),
        (calling_back(task(TaskState::Completed, Some("a"))), 30, &completed),
        (task(TaskState::Resolving, Some("gone")), 30, &completed),
    ];
    for (task, wait, want) in cases {
        let mut world = World::new().with_task(task);
        world.pass(seconds(wait - 1));
        assert_eq!(plan(&world), []);
        world.pass(seconds(1));
        assert_eq!(plan(&world), std::slice::from_ref(want));
    }
}

#[test]
fn the_next_due_moment_is_the_earliest_to_come() {
    let due = |world: &World| next_due(&[&world.records], world.now, &world.settings);
    assert_eq!(due(&World::desiring(1).with(running("a", "x"))), None);
    let mut world = World::desiring(1).with(crashed(4)).with(twin("a", "x"));
    assert_eq!(due(&world), Some(NOW.after(seconds(60))));
    world.pass(seconds(60));
    assert_eq!(due(&world), Some(NOW.after(seconds(600))));
    let world = fresh(world, Some(NOW.after(seconds(90))));
    assert_eq!(due(&world), Some(NOW.after(seconds(90))));
    assert_eq!(due(&World::new().with(crashed(4))), None, "it is not desired");
}

/// What cannot be read may well be desired.
#[test]
fn what_is_desired_of_a_process_may_be_forgotten_and_then_nothing_of_it_is_retired() {
    let mut world = fresh(World::new().with(running("a", "x")), None);
    world.records.put(Record::Desired(Box::new(DesiredLrp::forgotten("web".into()))));
    assert_eq!(plan(&world), []);
    let unreadable = world.records.clone();
    world.records.put(Record::Desired(Box::new(DesiredLrp { instances: 0, ..web() })));
    assert_eq!(plan(&world), [retire()], "somebody desires it again, and less of it");
    let key = RecordKey::Desired("web".into());
    drop(world.records.apply(&key, None));
    assert_eq!(plan(&world), [retire()], "and then not at all");
    assert!(unreadable.is_forgotten(&"web".into()));
}
