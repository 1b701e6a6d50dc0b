use super::world::*;
use crate::board::*;

fn ground(world: &World) -> Option<Ground> {
    let instance = InstanceKey { instance_guid: "x".into(), cell_id: "a".into() };
    world.records.ground(&key(0), &instance)
}

#[test]
fn what_is_wanted_or_not_known_to_be_extra_has_no_ground() {
    assert_eq!(ground(&World::desiring(1).with(running("a", "x"))), Some(Ground::None));
    assert_eq!(ground(&World::desiring(1).with(twin("a", "x"))), Some(Ground::None));
    let mut unreadable = World::new().with(running("a", "x"));
    unreadable.records.put(Record::Desired(Box::new(DesiredLrp::forgotten("web".into()))));
    assert_eq!(ground(&unreadable), Some(Ground::None));
}

#[test]
fn what_was_given_up_is_told_from_what_nobody_wants() {
    for lrp in [claimed("a", "x"), running("a", "x"), twin("a", "x")] {
        let extra = Some(Ground::Extra("d".into()));
        assert_eq!(ground(&World::new().with(lrp.clone())), extra);
        assert_eq!(ground(&World::desiring(0).with(lrp.clone())), extra);
        let given_up = World::giving_up_all_but(0).with(lrp.clone());
        assert_eq!(ground(&given_up), Some(Ground::GivenUp));
        let earlier = World::desiring(1).with(ActualLrp { incarnation: 7, ..lrp });
        assert_eq!(ground(&earlier), Some(Ground::GivenUp));
    }
}

#[test]
fn a_twin_has_its_instance_elsewhere_once_that_runs() {
    let world = World::desiring(1).with(twin("a", "x"));
    let world = world.with(claimed("b", "y"));
    assert_eq!(ground(&world), Some(Ground::None));
    assert_eq!(ground(&world.with(running("b", "y"))), Some(Ground::Elsewhere));
}

#[test]
fn what_no_record_names_has_none_to_ask_for() {
    assert_eq!(ground(&World::desiring(1)), None);
    assert_eq!(ground(&World::desiring(1).with(running("a", "y"))), None);
    assert_eq!(ground(&World::desiring(1).with(running("b", "x"))), None);
}
