//! What a scale-down costs the shard.

use std::collections::BTreeMap;

use super::world::*;
use crate::board::*;

/// As many as a keeper decides in one go.
const GROUP: usize = 1024;

/// Decides all of these, some at a time, and says how many records were looked at for it.
fn decide_all(world: &mut World, requests: &[Request]) -> usize {
    let mut looks = 0;
    for together in requests.chunks(GROUP) {
        let mut group = BTreeMap::new();
        for request in together {
            let mut draft = Draft::new(&world.records, &group);
            decide(&mut draft, request, world.now, &world.settings).unwrap();
            looks += draft.looks.get();
            group.extend(draft.into_changes());
        }
        for (key, to) in group {
            drop(world.records.apply(&key, to));
        }
    }
    looks
}

fn with_all(instances: u32, lrp: &ActualLrp) -> World {
    let all = (0..instances).map(|index| ActualLrp { index, ..lrp.clone() });
    all.fold(World::desiring(instances), |mut world, lrp| {
        world.records.put(Record::Actual(Box::new(lrp)));
        world
    })
}

fn retirements(effects: Vec<Effect>) -> Vec<Request> {
    let next = |effect| if let Effect::Next(request) = effect { request } else { panic!() };
    effects.into_iter().map(next).collect()
}

fn decided(world: &mut World, request: &Request) -> Vec<Effect> {
    let group = BTreeMap::new();
    let mut draft = Draft::new(&world.records, &group);
    let verdict = decide(&mut draft, request, world.now, &world.settings).unwrap();
    for (key, to) in draft.into_changes() {
        drop(world.records.apply(&key, to));
    }
    verdict.effects
}

fn scale(instances: u32) -> Request {
    let update = DesiredUpdate { instances: Some(instances), ..DesiredUpdate::default() };
    Request::UpdateDesired { process_guid: "web".into(), update }
}

fn desired(world: &World) -> Option<&DesiredLrp> {
    world.records.desired.get(&ProcessGuid::from("web"))
}

#[test]
fn an_instance_that_goes_costs_no_look_at_those_that_stay() {
    let mut world = with_all(40_000, &unclaimed());
    let going = retirements(decided(&mut world, &scale(20_000)));
    assert_eq!(going.len(), 20_000);
    let looks = decide_all(&mut world, &going);
    assert_eq!(world.records.instances.len(), 20_000);
    assert!(!desired(&world).unwrap().retiring, "the last one settles it");
    // The last group is the only one that may come to the end of what is left.
    assert!(looks < 20_000 * 10 + GROUP * GROUP, "{looks} looks");
}

#[test]
fn instances_that_their_cells_remove_in_any_order_cost_no_more() {
    let mut world = with_all(40_000, &running("a", "x"));
    decided(&mut world, &scale(20_000));
    // 7919 has no divisor in common with 20,000, so each has its turn.
    let gone = (0..20_000).map(|at| Request::Report {
        cell_id: "a".into(),
        report: request::Report::Remove {
            key: key(20_000 + at * 7919 % 20_000),
            instance_guid: "x".into(),
        },
    });
    let looks = decide_all(&mut world, &gone.collect::<Vec<_>>());
    assert_eq!(world.records.instances.len(), 20_000);
    assert!(!desired(&world).unwrap().retiring);
    assert!(looks < 20_000 * 10 + GROUP * GROUP, "{looks} looks");
}

#[test]
fn a_delete_ends_with_its_last_instance() {
    let mut world = with_all(5_000, &unclaimed());
    let remove = Request::RemoveDesired { process_guid: "web".into() };
    let going = retirements(decided(&mut world, &remove));
    let (last, others) = going.split_last().unwrap();
    decide_all(&mut world, others);
    assert!(desired(&world).is_some_and(|desired| desired.removing));
    decide_all(&mut world, std::slice::from_ref(last));
    assert_eq!(world.records, Records::default());
}

#[test]
fn a_delete_ends_with_its_last_twin() {
    let remove = Request::RemoveDesired { process_guid: "web".into() };
    let gone = request::Report::RemoveEvacuating { key: key(0), instance_guid: "x".into() };
    let expire = Request::ExpireEvacuating { key: key(0) };
    let rescue = Request::Rescue { key: key(0), cell_id: "a".into() };
    for last in [Request::Report { cell_id: "a".into(), report: gone }, expire, rescue] {
        let mut world = World::desiring(1).with(twin("a", "x"));
        world.ask(&remove).unwrap();
        assert!(desired(&world).is_some());
        world.pass(seconds(600));
        world.ask(&last).unwrap();
        assert_eq!(world.records, Records::default());
    }
}
