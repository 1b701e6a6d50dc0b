//! Two desired LRPs of the same name, one after the other: nothing of the first is taken for the second.

use super::world::*;
use crate::board::converge::converge;
use crate::board::request::{Report, Retirement};
use crate::board::*;

const FIRST: u64 = 5;
const SECOND: u64 = 6;

fn claim(incarnation: Option<u64>) -> Report {
    Report::Claim { key: key(0), instance_guid: "x".into(), incarnation }
}

fn runs(incarnation: Option<u64>) -> Report {
    let (instance_guid, domain) = ("x".into(), "d".into());
    Report::Running { key: key(0), instance_guid, domain, incarnation, net: net(), ready: true }
}

fn crashes(incarnation: Option<u64>) -> Report {
    let (instance_guid, domain, reason) = ("x".into(), "d".into(), "r".to_owned());
    Report::Crashed { key: key(0), instance_guid, domain, incarnation, reason }
}

fn evacuates(incarnation: Option<u64>) -> Report {
    let (instance_guid, domain) = ("x".into(), "d".into());
    Report::Evacuate { key: key(0), instance_guid, domain, incarnation, net: net() }
}

fn of(incarnation: u64, lrp: ActualLrp) -> ActualLrp {
    ActualLrp { incarnation, ..lrp }
}

/// With the second desired, and nothing there yet.
fn second() -> World {
    let mut world = World::desiring(1);
    let desired = world.records.desired[&ProcessGuid::from("web")].clone();
    let second = DesiredLrp { incarnation: SECOND, ..desired };
    world.records.put(Record::Desired(Box::new(second)));
    world
}

fn retire() -> Request {
    Request::Retire { key: key(0), why: Retirement::Explicit }
}

fn remove() -> Report {
    Report::Remove { key: key(0), instance_guid: "x".into() }
}

/// Has the board do all that it asks itself for; gives back all else.
fn settle(world: &mut World, effects: Vec<Effect>) -> Vec<Effect> {
    let mut others = Vec::new();
    for effect in effects {
        if let Effect::Next(request) = effect {
            let next = world.effects(&request);
            others.extend(settle(world, next));
        } else {
            others.push(effect);
        }
    }
    others
}

fn desired(world: &World) -> &DesiredLrp {
    &world.records.desired[&ProcessGuid::from("web")]
}

#[test]
fn a_reservation_for_the_first_does_not_claim_an_instance_of_the_second() {
    let mut world = second().with(of(SECOND, unclaimed()));
    let refused = world.report("a", claim(Some(FIRST)));
    assert!(matches!(refused, Err(Refusal::State { .. })), "{refused:?}");
    world.report("a", claim(Some(SECOND))).unwrap();
    assert_eq!(world.instance(0).unwrap().state, ActualState::Claimed);
    let mut world = second().with(of(SECOND, unclaimed()));
    world.report("a", claim(None)).unwrap();
    assert_eq!(world.instance(0).unwrap().state, ActualState::Claimed, "an older agent");
}

#[test]
fn a_container_of_the_first_does_not_run_for_the_second() {
    for lrp in [unclaimed(), claimed("b", "y"), running("b", "y"), crashed(4)] {
        let mut world = second().with(of(SECOND, lrp));
        for report in [runs(Some(FIRST)), evacuates(Some(FIRST))] {
            let refused = world.report("a", report);
            assert!(matches!(refused, Err(Refusal::State { .. })), "{refused:?}");
        }
    }
}

#[test]
fn a_container_of_the_first_that_comes_back_is_known_and_stopped_and_makes_room() {
    let mut world = second();
    let effects = world.report("a", runs(Some(FIRST))).unwrap().effects;
    assert_eq!(effects, [Effect::Next(retire())]);
    assert_eq!(world.instance(0).unwrap().incarnation, FIRST);
    let present = ["a".into()].into();
    let planned = converge(&[&world.records], &present, world.now, &world.settings);
    assert_eq!(planned, [retire()], "also by the next leader, in a domain that is not fresh");
    assert_eq!(settle(&mut world, effects), [stop(0, "a", "x")]);
    let effects = world.report("a", remove()).unwrap().effects;
    assert_eq!(settle(&mut world, effects), [start(0)]);
    let lrp = world.instance(0).unwrap();
    assert_eq!((lrp.state, lrp.incarnation), (ActualState::Unclaimed, SECOND));
    world.ask(&Request::Settle { process_guid: "web".into() }).unwrap();
    assert!(!desired(&world).retiring);
    assert_eq!(converge(&[&world.records], &present, world.now, &world.settings), []);
}

#[test]
fn a_container_of_the_first_that_has_crashed_makes_room() {
    let mut world = second();
    let effects = world.report("a", crashes(Some(FIRST))).unwrap().effects;
    assert_eq!(settle(&mut world, effects), [start(0)]);
    let lrp = world.instance(0).unwrap();
    assert_eq!((lrp.incarnation, lrp.crash_count), (SECOND, 0));
}

#[test]
fn what_is_deleted_and_gone_and_desired_anew_is_another() {
    let mut world = World::new();
    let desire = Request::Desire(Box::new(web()));
    let gone = Request::RemoveDesired { process_guid: "web".into() };
    world.ask(&desire).unwrap();
    let first = desired(&world).incarnation;
    world.ask(&gone).unwrap();
    assert!(world.records.desired.is_empty());
    world.pass(seconds(1));
    world.ask(&desire).unwrap();
    assert_ne!(desired(&world).incarnation, first);
    world.ask(&Request::Unfold { process_guid: "web".into(), from: 0 }).unwrap();
    let second = desired(&world).incarnation;
    world.ask(&gone).unwrap();
    world.ask(&desire).unwrap();
    assert!(desired(&world).incarnation > second, "in the same moment too");
}

#[test]
fn instances_whose_desired_lrp_was_lost_belong_to_the_one_that_is_desired_again() {
    let mut world = World::new().with(of(FIRST, running("a", "x")));
    world.ask(&Request::Desire(Box::new(web()))).unwrap();
    assert_eq!(desired(&world).incarnation, FIRST);
    let mut world = World::new();
    world.report("a", runs(Some(FIRST))).unwrap();
    assert_eq!(world.instance(0).unwrap().incarnation, FIRST, "the board was purged");
    world.ask(&Request::Desire(Box::new(web()))).unwrap();
    assert!(desired(&world).wants_this(world.instance(0).unwrap()));
}

#[test]
fn a_twin_is_of_the_same_one_as_its_instance() {
    let mut world = second().with(of(SECOND, running("a", "x")));
    world.report("a", evacuates(Some(SECOND))).unwrap();
    assert_eq!(world.twin(0).unwrap().incarnation, SECOND);
}

#[test]
fn reports_of_older_agents_are_understood() {
    let text = r#"{"report":"claim","key":{"process_guid":"web","index":0},"instance_guid":"x"}"#;
    assert_eq!(serde_json::from_str::<Report>(text).unwrap(), claim(None));
    assert_eq!(serde_json::to_string(&claim(None)).unwrap(), text);
    let newer = serde_json::to_string(&runs(Some(FIRST))).unwrap();
    assert!(newer.contains(r#""incarnation":5"#), "{newer}");
}
