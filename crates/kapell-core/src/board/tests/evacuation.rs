use super::world::*;
use crate::board::request::Report;
use crate::board::*;

fn ours(lrp: &ActualLrp) -> bool {
    lrp.is_of(&InstanceKey { instance_guid: "x".into(), cell_id: "a".into() })
}

#[test]
fn an_instance_that_leaves_gets_a_twin_and_is_started_elsewhere() {
    for lrp in [claimed("a", "x"), running("a", "x")] {
        let mut world = World::desiring(1).with(lrp);
        assert_eq!(world.report("a", evacuate()).unwrap().effects, [start(0)]);
        assert_eq!(world.instance(0).unwrap().state, ActualState::Unclaimed);
        let twin = world.twin(0).unwrap();
        assert!(ours(twin) && twin.evacuating && twin.state == ActualState::Running);
        assert_eq!(twin.expires_at, Some(NOW.after(seconds(600))));
        assert_eq!(world.report("a", evacuate()).unwrap().effects, [], "once is enough");
        assert_eq!(world.written, 0);
    }
}

/// Whoever follows the changes sees at any moment that it runs.
#[test]
fn the_twin_is_there_before_the_instance_is_unclaimed() {
    let world = World::desiring(1).with(running("a", "x"));
    let group = std::collections::BTreeMap::new();
    let mut draft = Draft::new(&world.records, &group);
    let request = Request::Report { cell_id: "a".into(), report: evacuate() };
    decide(&mut draft, &request, NOW, &world.settings).unwrap();
    let keys: Vec<_> = draft.into_changes().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [RecordKey::Evacuating(key(0)), RecordKey::Instance(key(0))]);
}

#[test]
fn an_instance_that_came_from_an_evacuating_cell_takes_its_twin_over() {
    let mut world = World::desiring(1).with(running("a", "x")).with(twin("b", "y"));
    assert_eq!(world.report("a", evacuate()).unwrap().effects, [start(0)]);
    assert!(ours(world.twin(0).unwrap()));
}

#[test]
fn a_container_whose_instance_waits_elsewhere_still_gets_a_twin() {
    for lrp in [unclaimed(), claimed("b", "y")] {
        let mut world = World::desiring(1).with(lrp.clone());
        assert_eq!(world.report("a", evacuate()).unwrap().effects, []);
        assert!(ours(world.twin(0).unwrap()));
        assert_eq!(world.instance(0), Some(&lrp));
    }
}

#[test]
fn a_container_that_is_to_go_gets_no_twin() {
    for lrp in [Some(running("b", "y")), Some(crashed(4)), None] {
        let mut world = lrp.into_iter().fold(World::desiring(1), World::with);
        let refused = world.report("a", evacuate());
        assert!(matches!(refused, Err(Refusal::State { .. })), "{refused:?}");
    }
    let mut world = World::desiring(1).with(unclaimed()).with(twin("b", "y"));
    assert!(matches!(world.report("a", evacuate()), Err(Refusal::State { .. })));
}

#[test]
fn what_leaves_and_is_not_desired_is_not_started() {
    let mut world = World::new().with(running("a", "x"));
    assert_eq!(world.report("a", evacuate()).unwrap().effects, []);
    assert!(world.twin(0).is_some());
}

#[test]
fn a_cell_removes_its_own_twin_only() {
    let remove = || Report::RemoveEvacuating { key: key(0), instance_guid: "x".into() };
    let mut world = World::desiring(1).with(unclaimed()).with(twin("a", "x"));
    world.report("a", remove()).unwrap();
    assert_eq!(world.twin(0), None);
    world.report("a", remove()).unwrap();
    let mut world = World::desiring(1).with(unclaimed()).with(twin("b", "x"));
    world.report("a", remove()).unwrap();
    assert!(world.twin(0).is_some());
}
