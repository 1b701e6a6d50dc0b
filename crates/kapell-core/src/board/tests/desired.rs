use super::world::*;
use crate::board::request::{MOST_RECORDS, Report, Retirement};
use crate::board::*;

fn desire(lrp: DesiredLrp) -> Request {
    Request::Desire(Box::new(lrp))
}

fn update(update: DesiredUpdate) -> Request {
    Request::UpdateDesired { process_guid: "web".into(), update }
}

fn scale(instances: u32) -> Request {
    update(DesiredUpdate { instances: Some(instances), ..DesiredUpdate::default() })
}

fn unfold(from: u32) -> Request {
    Request::Unfold { process_guid: "web".into(), from }
}

fn retire(index: u32) -> Effect {
    Effect::Next(Request::Retire { key: key(index), why: Retirement::Explicit })
}

#[test]
fn a_new_desired_lrp_is_written_and_unfolded() {
    let mut world = World::new();
    let verdict = world.ask(&desire(web())).unwrap();
    let stands = world.records.desired.get(&ProcessGuid::from("web")).unwrap().clone();
    assert_eq!((stands.version, stands.created_at), (1, Some(NOW)));
    assert_eq!(verdict.reply, Reply::Desired { lrp: Box::new(stands), created: true });
    assert_eq!(verdict.effects, [Effect::Next(unfold(0))]);
}

#[test]
fn a_desired_lrp_of_no_instances_unfolds_nothing() {
    let effects = World::new().effects(&desire(DesiredLrp { instances: 0, ..web() }));
    assert_eq!(effects, []);
}

#[test]
fn desiring_the_same_again_changes_nothing() {
    let mut world = World::new();
    world.ask(&desire(web())).unwrap();
    let again = DesiredLrp { version: 9, updated_at: Some(NOW), ..web() };
    let verdict = world.ask(&desire(again)).unwrap();
    assert!(matches!(verdict.reply, Reply::Desired { created: false, .. }));
    assert_eq!((verdict.effects, world.written), (vec![], 0));
}

#[test]
fn desiring_something_else_under_the_same_name_is_refused_with_the_fields() {
    let mut world = World::desiring(3);
    let other = DesiredLrp { memory_mb: 128, ports: vec![80], ..web() };
    let Err(Refusal::Exists { text, fields }) = world.ask(&desire(other)) else { panic!() };
    assert_eq!(fields, ["memory_mb", "ports"]);
    assert!(text.contains("memory_mb, ports"), "{text}");
    assert!(text.contains("only instances, routes and annotation can be updated"), "{text}");
}

#[test]
fn what_cannot_be_desired_is_refused_with_all_problems() {
    let bad = DesiredLrp { process_guid: "a b".into(), rootfs: Some("x".to_owned()), ..web() };
    let Err(Refusal::Invalid { problems }) = World::new().ask(&desire(bad)) else { panic!() };
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn an_update_changes_what_may_change_and_counts_versions() {
    let mut world = World::desiring(3);
    world.pass(seconds(5));
    let changed = DesiredUpdate { annotation: Some("new".to_owned()), ..DesiredUpdate::default() };
    assert_eq!(world.effects(&update(changed)), []);
    let stands = world.records.desired.values().next().unwrap();
    assert_eq!((stands.annotation.as_str(), stands.version), ("new", 1));
    assert_eq!(stands.updated_at, Some(world.now));
}

#[test]
fn an_update_that_changes_nothing_leaves_the_version() {
    let mut world = World::desiring(3);
    assert_eq!(world.effects(&scale(3)), []);
    assert_eq!(world.written, 0);
}

#[test]
fn an_update_of_another_version_is_refused() {
    let mut world = World::desiring(3);
    let stale = DesiredUpdate { version: Some(7), ..DesiredUpdate::default() };
    assert_eq!(world.ask(&update(stale)), Err(Refusal::Version { stands: 0, asked: 7 }));
}

#[test]
fn an_update_beyond_the_bounds_is_refused() {
    assert!(matches!(World::desiring(3).ask(&scale(100_001)), Err(Refusal::Invalid { .. })));
}

#[test]
fn what_is_not_desired_can_be_neither_updated_nor_removed() {
    let remove = Request::RemoveDesired { process_guid: "web".into() };
    for request in [scale(1), remove] {
        assert!(matches!(World::new().ask(&request), Err(Refusal::NotFound { .. })));
    }
}

#[test]
fn scaling_up_unfolds_from_the_old_number() {
    assert_eq!(World::desiring(3).effects(&scale(5)), [Effect::Next(unfold(3))]);
}

#[test]
fn scaling_down_retires_what_is_beyond() {
    let mut world = World::desiring(3);
    world.ask(&unfold(0)).unwrap();
    assert_eq!(world.effects(&scale(1)), [retire(1), retire(2)]);
}

#[test]
fn removing_retires_every_instance() {
    let mut world = World::desiring(2);
    world.ask(&unfold(0)).unwrap();
    let effects = world.effects(&Request::RemoveDesired { process_guid: "web".into() });
    assert_eq!(effects, [retire(0), retire(1)]);
    assert_eq!(world.records.desired_lrps().count(), 0);
}

#[test]
fn what_was_removed_is_remembered_until_nothing_of_it_is_left() {
    let mut world = World::desiring(1).with(running("a", "x"));
    let remove = Request::RemoveDesired { process_guid: "web".into() };
    world.ask(&remove).unwrap();
    assert!(world.records.desired[&ProcessGuid::from("web")].removing);
    assert!(matches!(world.ask(&remove), Err(Refusal::NotFound { .. })), "nobody sees it");
    assert!(matches!(world.ask(&scale(3)), Err(Refusal::NotFound { .. })));
    assert_eq!(world.effects(&unfold(0)), []);
    // Whoever leads next, and whatever got lost: it is stopped, in a domain that is not fresh too.
    let present = ["a".into()].into();
    let found = converge::converge(&[&world.records], &present, world.now, &world.settings);
    assert_eq!(found.into_iter().map(Effect::Next).collect::<Vec<_>>(), [retire(0)]);
    let gone = Report::Remove { key: key(0), instance_guid: "x".into() };
    world.report("a", gone).unwrap();
    assert_eq!(world.records, Records::default());
}

#[test]
fn what_is_desired_anew_under_the_same_name_has_none_of_the_old_instances() {
    let mut world = World::desiring(1).with(running("a", "x"));
    world.ask(&Request::RemoveDesired { process_guid: "web".into() }).unwrap();
    let other = DesiredLrp { memory_mb: 77, instances: 1, ..web() };
    let effects = world.effects(&Request::Desire(Box::new(other)));
    assert_eq!(effects, [retire(0), Effect::Next(unfold(0))]);
    assert_eq!(world.effects(&unfold(0)), [], "the index is not free yet");
    let Effect::Next(retire) = retire(0) else { panic!() };
    let instance = InstanceKey { instance_guid: "x".into(), cell_id: "a".into() };
    assert_eq!(world.effects(&retire), [Effect::Stop { key: key(0), instance }]);
    let gone = Report::Remove { key: key(0), instance_guid: "x".into() };
    assert_eq!(world.report("a", gone).unwrap().effects, [Effect::Next(unfold(0))]);
    assert_eq!(world.effects(&unfold(0)), [start(0)]);
    let settle = Request::Settle { process_guid: "web".into() };
    world.ask(&settle).unwrap();
    let desired = &world.records.desired[&ProcessGuid::from("web")];
    assert!(!desired.retiring && desired.incarnation == world.instance(0).unwrap().incarnation);
}

#[test]
fn a_scale_down_is_remembered_until_all_beyond_it_are_gone() {
    let mut world = World::desiring(1).with(running("a", "x"));
    world.ask(&scale(0)).unwrap();
    let present = ["a".into()].into();
    let found = converge::converge(&[&world.records], &present, world.now, &world.settings);
    assert_eq!(found.into_iter().map(Effect::Next).collect::<Vec<_>>(), [retire(0)]);
    let gone = Report::Remove { key: key(0), instance_guid: "x".into() };
    world.report("a", gone).unwrap();
    assert!(!world.records.desired[&ProcessGuid::from("web")].retiring);
    let left = converge::converge(&[&world.records], &present, world.now, &world.settings);
    assert_eq!(left, []);
}

#[test]
fn unfolding_creates_what_is_missing_and_asks_for_starts() {
    let mut world = World::desiring(3).with(running("a", "x"));
    assert_eq!(world.effects(&unfold(0)), [start(1), start(2)]);
    assert_eq!(world.instance(2).unwrap().state, ActualState::Unclaimed);
    assert_eq!(world.instance(0).unwrap().state, ActualState::Running);
    assert_eq!(world.effects(&unfold(0)), []);
}

#[test]
fn a_large_process_is_unfolded_in_steps() {
    let mut world = World::desiring(5000);
    let mut from = Some(0);
    let mut starts = 0;
    while let Some(at) = from.take() {
        for effect in world.effects(&unfold(at)) {
            if let Effect::Next(Request::Unfold { from: next, .. }) = effect {
                from = Some(next);
            } else {
                assert!(matches!(effect, Effect::Start { .. }), "{effect:?}");
                starts += 1;
            }
        }
        assert!(world.written <= MOST_RECORDS);
    }
    assert_eq!((starts, world.records.instances.len()), (5000, 5000));
}

#[test]
fn one_request_looks_at_a_bounded_number_of_indices() {
    let there = |index| ActualLrp { index, ..unclaimed() };
    let mut world = (0..3000).map(there).fold(World::desiring(3001), World::with);
    assert_eq!(world.effects(&unfold(0)), [Effect::Next(unfold(1024))]);
    assert_eq!(world.effects(&unfold(2048)), [start(3000)]);
}

#[test]
fn nothing_is_unfolded_that_is_not_desired() {
    let mut world = World::new();
    assert_eq!(world.effects(&unfold(0)), []);
    assert_eq!(world.written, 0);
}

#[test]
fn a_domain_is_fresh_for_as_long_as_it_is_said_to_be() {
    let mut world = World::new();
    let domain = Domain::from("d");
    let set = |ttl| Request::SetDomain { domain: "d".into(), ttl };
    world.ask(&set(Some(seconds(10)))).unwrap();
    let fresh = world.records.domains[&domain].clone();
    assert!(fresh.is_fresh(NOW.after(seconds(9))) && !fresh.is_fresh(NOW.after(seconds(10))));
    let verdict = world.ask(&set(None)).unwrap();
    assert_eq!(verdict.reply, Reply::Domain(Freshness::new(domain.clone(), None, NOW)));
    let bad = Request::SetDomain { domain: "a/b".into(), ttl: None };
    assert!(matches!(world.ask(&bad), Err(Refusal::Invalid { .. })));
}
