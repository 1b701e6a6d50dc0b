use super::world::*;
use crate::board::request::{Report, Retirement};
use crate::board::*;

fn claim() -> Report {
    Report::Claim { key: key(0), instance_guid: "x".into(), incarnation: None }
}

fn runs_of(incarnation: Option<u64>) -> Report {
    Report::Running {
        key: key(0),
        instance_guid: "x".into(),
        domain: "d".into(),
        incarnation,
        net: net(),
        ready: true,
    }
}

fn runs() -> Report {
    runs_of(None)
}

fn crashes_of(incarnation: Option<u64>) -> Report {
    Report::Crashed {
        key: key(0),
        instance_guid: "x".into(),
        domain: "d".into(),
        incarnation,
        reason: "Exited with status 1".to_owned(),
    }
}

fn crashes() -> Report {
    crashes_of(None)
}

fn remove() -> Report {
    Report::Remove { key: key(0), instance_guid: "x".into() }
}

fn unclaim() -> Report {
    Report::Unclaim { key: key(0), instance_guid: "x".into() }
}

fn refusal(world: &mut World, report: Report) -> String {
    match world.report("a", report) {
        Err(Refusal::State { text }) => text,
        other => panic!("{other:?}"),
    }
}

fn unplaced() -> ActualLrp {
    ActualLrp { placement_error: Some("full".to_owned()), ..unclaimed() }
}

#[test]
fn an_unclaimed_instance_is_claimed() {
    let mut world = World::desiring(1).with(unplaced());
    world.pass(seconds(1));
    let verdict = world.report("a", claim()).unwrap();
    let lrp = world.instance(0).unwrap();
    assert_eq!(verdict.reply, Reply::Instance(Some(Box::new(lrp.clone()))));
    assert_eq!((lrp.state, lrp.since, lrp.version), (ActualState::Claimed, world.now, 2));
    assert_eq!((lrp.cell_id.clone(), lrp.placement_error.clone()), (Some("a".into()), None));
}

#[test]
fn claiming_twice_is_claiming_once() {
    let mut world = World::desiring(1).with(claimed("a", "x"));
    world.report("a", claim()).unwrap();
    assert_eq!(world.written, 0);
}

#[test]
fn a_record_that_ran_ahead_is_claimed_again() {
    let mut world = World::desiring(1).with(running("a", "x"));
    world.report("a", claim()).unwrap();
    assert_eq!(world.instance(0).unwrap().state, ActualState::Claimed);
}

#[test]
fn what_is_anothers_or_crashed_cannot_be_claimed() {
    let others = [claimed("b", "x"), claimed("a", "y"), running("b", "x"), running("a", "y")];
    for lrp in others.into_iter().chain([crashed(4)]) {
        let state = lrp.state.name();
        let text = refusal(&mut World::desiring(1).with(lrp), claim());
        assert!(text.contains(state), "{text}");
    }
    assert!(matches!(World::new().report("a", claim()), Err(Refusal::NotFound { .. })));
}

#[test]
fn whatever_runs_is_running_unless_it_runs_elsewhere() {
    for lrp in [unplaced(), claimed("a", "x"), claimed("b", "y"), crashed(4)] {
        let crash_count = lrp.crash_count;
        let mut world = World::desiring(1).with(lrp).with(twin("c", "z"));
        world.report("a", runs()).unwrap();
        let lrp = world.instance(0).unwrap();
        assert_eq!(lrp.state, ActualState::Running);
        assert!(lrp.is_of(&InstanceKey { instance_guid: "x".into(), cell_id: "a".into() }));
        assert_eq!((lrp.net.clone(), lrp.placement_error.clone()), (Some(net()), None));
        assert_eq!(lrp.crash_count, crash_count);
        assert_eq!(world.twin(0), None, "its evacuating twin goes");
    }
    let text = refusal(&mut World::desiring(1).with(running("b", "y")), runs());
    assert!(text.contains("RUNNING as y on cell `b`"), "{text}");
}

#[test]
fn a_running_container_without_a_record_makes_one() {
    let mut world = World::new();
    let verdict = world.report("a", runs()).unwrap();
    let lrp = world.instance(0).unwrap();
    assert_eq!((lrp.state, lrp.version), (ActualState::Running, 1));
    assert_eq!(verdict.effects, []);
}

#[test]
fn running_again_writes_only_a_changed_address() {
    let mut world = World::desiring(1).with(running("a", "x"));
    world.pass(seconds(1));
    world.report("a", runs()).unwrap();
    assert_eq!(world.written, 0);
    let moved = NetInfo { address: "10.0.0.2".to_owned(), ..net() };
    let report = Report::Running {
        key: key(0),
        instance_guid: "x".into(),
        domain: "d".into(),
        incarnation: None,
        net: moved.clone(),
        ready: true,
    };
    world.report("a", report).unwrap();
    let lrp = world.instance(0).unwrap();
    assert_eq!((lrp.net.clone(), lrp.since, lrp.version), (Some(moved), NOW, 2));
}

#[test]
fn a_first_crash_leads_to_a_restart_at_once() {
    for lrp in [claimed("a", "x"), running("a", "x")] {
        let mut world = World::desiring(1).with(lrp);
        world.pass(seconds(1));
        let verdict = world.report("a", crashes()).unwrap();
        assert_eq!(verdict.effects, [start(0)]);
        let lrp = world.instance(0).unwrap();
        assert_eq!((lrp.state, lrp.crash_count), (ActualState::Unclaimed, 1));
        assert_eq!(lrp.crash_reason.as_deref(), Some("Exited with status 1"));
        assert_eq!((lrp.since, lrp.version), (world.now, 2));
    }
}

#[test]
fn a_fourth_crash_makes_it_wait() {
    let mut world = World::desiring(1).with(ActualLrp { crash_count: 3, ..running("a", "x") });
    let verdict = world.report("a", crashes()).unwrap();
    assert_eq!(verdict.effects, []);
    let lrp = world.instance(0).unwrap();
    assert_eq!((lrp.state, lrp.crash_count), (ActualState::Crashed, 4));
}

#[test]
fn a_crash_without_a_record_makes_one_and_starts_only_what_is_desired() {
    let mut world = World::new();
    assert_eq!(world.report("a", crashes()).unwrap().effects, []);
    assert_eq!(world.instance(0).unwrap().crash_count, 1);
    let mut world = World::desiring(1);
    assert_eq!(world.report("a", crashes()).unwrap().effects, [start(0)]);
}

#[test]
fn a_crash_of_what_is_anothers_is_refused() {
    for lrp in [unclaimed(), claimed("b", "y"), running("a", "y"), crashed(4)] {
        refusal(&mut World::desiring(1).with(lrp), crashes());
    }
}

#[test]
fn the_reason_of_the_last_crash_stays_while_it_runs_again() {
    let mut world = World::desiring(1).with(running("a", "x"));
    world.report("a", crashes()).unwrap();
    world.report("a", claim()).unwrap();
    world.report("a", runs()).unwrap();
    let lrp = world.instance(0).unwrap();
    assert_eq!((lrp.crash_count, lrp.crash_reason.is_some()), (1, true));
}

#[test]
fn a_removed_instance_that_is_still_desired_comes_back() {
    let mut world = World::desiring(1).with(running("a", "x"));
    let verdict = world.report("a", remove()).unwrap();
    assert_eq!(verdict.reply, Reply::Instance(None));
    let unfold = Request::Unfold { process_guid: "web".into(), from: 0 };
    assert_eq!(verdict.effects, [Effect::Next(unfold)]);
    assert_eq!(world.instance(0), None);
}

#[test]
fn a_removed_instance_that_is_not_desired_stays_away() {
    let mut world = World::desiring(0).with(claimed("a", "x"));
    assert_eq!(world.report("a", remove()).unwrap().effects, []);
    assert_eq!(world.report("a", remove()).unwrap().reply, Reply::Instance(None));
}

#[test]
fn only_its_own_cell_removes_an_instance() {
    for lrp in [unclaimed(), claimed("b", "x"), running("a", "y"), crashed(4)] {
        refusal(&mut World::desiring(1).with(lrp), remove());
    }
}

#[test]
fn a_cell_gives_up_what_never_ran() {
    for lrp in [claimed("a", "x"), running("a", "x")] {
        let mut world = World::desiring(1).with(lrp);
        assert_eq!(world.report("a", unclaim()).unwrap().effects, [start(0)]);
        assert_eq!(world.instance(0).unwrap().state, ActualState::Unclaimed);
        assert_eq!(world.report("a", unclaim()).unwrap().effects, [], "once is enough");
    }
    for lrp in [claimed("b", "x"), running("a", "y"), crashed(4)] {
        refusal(&mut World::desiring(1).with(lrp), unclaim());
    }
    let mut world = World::giving_up_all_but(0).with(claimed("a", "x"));
    assert_eq!(world.report("a", unclaim()).unwrap().effects, [retire()], "nobody wants it");
}

#[test]
fn what_crashes_after_it_was_given_up_goes_even_in_a_domain_that_is_not_fresh() {
    for lrp in [claimed("a", "x"), running("a", "x")] {
        let mut world = World::giving_up_all_but(0).with(lrp);
        assert_eq!(world.report("a", crashes()).unwrap().effects, [retire()]);
    }
}

/// What is desired may be lost, and then only a fresh domain says that it is not desired.
#[test]
fn what_nobody_gave_up_keeps_its_record_whatever_becomes_of_its_container() {
    for lrp in [claimed("a", "x"), running("a", "x")] {
        for report in [unclaim(), crashes()] {
            let mut world = World::new().with(lrp.clone());
            assert_eq!(world.report("a", report).unwrap().effects, []);
            assert_eq!(world.instance(0).unwrap().state, ActualState::Unclaimed);
        }
        let mut world = World::new().with(lrp);
        let rescue = Request::Rescue { key: key(0), cell_id: "a".into() };
        assert_eq!(world.effects(&rescue), []);
        assert_eq!(world.instance(0).unwrap().state, ActualState::Unclaimed);
    }
}

fn retire() -> Effect {
    let key = LrpKey { process_guid: "web".into(), index: 0 };
    Effect::Next(Request::Retire { key, why: Retirement::Explicit })
}
