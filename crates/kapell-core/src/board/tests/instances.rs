use super::world::*;
use crate::board::request::Retirement;
use crate::board::*;

fn retire() -> Request {
    Request::Retire { key: key(0), why: Retirement::Explicit }
}

fn rescue(cell: &str) -> Request {
    Request::Rescue { key: key(0), cell_id: cell.into() }
}

fn fail(reason: &str) -> Request {
    Request::FailPlacement { key: key(0), reason: reason.to_owned() }
}

#[test]
fn what_is_desired_after_all_is_not_retired() {
    let mut world = World::desiring(1).with(running("a", "x"));
    assert_eq!(world.effects(&retire()), []);
    assert_eq!(world.written, 0);
}

#[test]
fn retiring_deletes_what_is_on_no_cell() {
    for lrp in [unclaimed(), crashed(4)] {
        let mut world = World::giving_up_all_but(0).with(lrp);
        assert_eq!(world.effects(&retire()), []);
        assert_eq!(world.instance(0), None);
    }
}

#[test]
fn retiring_stops_what_is_on_a_cell_and_keeps_the_record() {
    for lrp in [claimed("a", "x"), running("a", "x")] {
        let mut world = World::giving_up_all_but(0).with(lrp);
        assert_eq!(world.effects(&retire()), [stop(0, "a", "x")]);
        assert!(world.instance(0).is_some());
    }
}

/// It comes back after all that was given up is gone: whoever planned that before knows nothing of it.
#[test]
fn only_what_was_given_up_is_retired_in_any_domain() {
    for mut world in [World::new(), World::desiring(0)] {
        world = world.with(running("a", "x"));
        assert_eq!(world.effects(&retire()), []);
        assert!(world.instance(0).is_some());
    }
}

#[test]
fn what_convergence_found_is_retired_only_while_its_domain_is_fresh() {
    let converged = |until| {
        let why = Retirement::Converged { fresh_until: Some(until) };
        Request::Retire { key: key(0), why }
    };
    for lrp in [running("a", "x"), unclaimed(), crashed(4)] {
        let mut world = World::new().with(lrp);
        let until = NOW.after(seconds(1));
        world.pass(seconds(1));
        assert_eq!(world.effects(&converged(until)), [], "the commit before it took too long");
        assert!(world.instance(0).is_some());
    }
    let mut world = World::new().with(running("a", "x"));
    assert_eq!(world.effects(&converged(NOW.after(seconds(1)))), [stop(0, "a", "x")]);
}

#[test]
fn retiring_stops_the_evacuating_twin_as_well() {
    let mut world = World::giving_up_all_but(0).with(running("a", "x")).with(twin("b", "y"));
    assert_eq!(world.effects(&retire()), [stop(0, "a", "x"), stop(0, "b", "y")]);
    let mut world = World::giving_up_all_but(0).with(unclaimed()).with(twin("b", "y"));
    assert_eq!(world.effects(&retire()), [stop(0, "b", "y")]);
    assert!(world.instance(0).is_none() && world.twin(0).is_some());
}

#[test]
fn convergence_leaves_the_evacuating_twin_to_its_cell() {
    let converged =
        Request::Retire { key: key(0), why: Retirement::Converged { fresh_until: None } };
    let mut world = World::new().with(running("a", "x")).with(twin("b", "y"));
    assert_eq!(world.effects(&converged), [stop(0, "a", "x")]);
    let mut world = World::new().with(unclaimed()).with(twin("b", "y"));
    assert_eq!(world.effects(&converged), []);
    assert!(world.instance(0).is_none() && world.twin(0).is_some());
    let mut world = World::desiring(1).with(unclaimed());
    world.ask(&converged).unwrap();
    assert_eq!(world.written, 0, "it is desired after all");
}

#[test]
fn a_crashed_instance_is_restarted_once_it_is_due() {
    let restart = Request::RestartCrashed { key: key(0) };
    let mut world = World::desiring(1).with(crashed(4));
    world.pass(seconds(59));
    assert_eq!(world.effects(&restart), []);
    world.pass(seconds(1));
    assert_eq!(world.effects(&restart), [start(0)]);
    let lrp = world.instance(0).unwrap();
    assert_eq!((lrp.state, lrp.crash_count), (ActualState::Unclaimed, 4));
    assert_eq!((lrp.since, lrp.version), (world.now, 2));
    assert_eq!(world.effects(&restart), []);
}

#[test]
fn a_crashed_instance_that_is_not_desired_is_not_restarted() {
    let mut world = World::new().with(crashed(4));
    world.pass(seconds(600));
    assert_eq!(world.effects(&Request::RestartCrashed { key: key(0) }), []);
    assert_eq!(world.written, 0);
}

#[test]
fn only_an_unclaimed_instance_is_asked_for_again() {
    let again = Request::Reemit { key: key(0) };
    let mut world = World::desiring(1).with(unclaimed());
    assert_eq!((world.effects(&again), world.written), (vec![start(0)], 0));
    for lrp in [claimed("a", "x"), running("a", "x"), crashed(4)] {
        assert_eq!(World::desiring(1).with(lrp).effects(&again), []);
    }
    assert_eq!(World::desiring(1).effects(&again), []);
}

#[test]
fn what_was_on_a_lost_cell_is_started_elsewhere() {
    for lrp in [claimed("a", "x"), running("a", "x")] {
        let mut world = World::desiring(1).with(lrp);
        world.pass(seconds(1));
        assert_eq!(world.effects(&rescue("a")), [start(0)]);
        let lrp = world.instance(0).unwrap();
        assert_eq!((lrp.state, lrp.since), (ActualState::Unclaimed, world.now));
    }
}

#[test]
fn what_was_on_a_lost_cell_and_was_given_up_goes() {
    let mut world = World::giving_up_all_but(0).with(running("a", "x"));
    assert_eq!(world.effects(&rescue("a")), []);
    assert_eq!(world.instance(0), None);
}

#[test]
fn what_is_on_another_cell_is_not_rescued() {
    let mut world = World::desiring(1).with(running("b", "x")).with(twin("b", "y"));
    assert_eq!(world.effects(&rescue("a")), []);
    assert_eq!(world.written, 0);
}

#[test]
fn a_lost_cell_takes_its_evacuating_twin_along() {
    let mut world = World::desiring(1).with(running("a", "x")).with(twin("a", "y"));
    assert_eq!(world.effects(&rescue("a")), [start(0)]);
    assert_eq!(world.twin(0), None);
    let mut world = World::desiring(1).with(unclaimed()).with(twin("a", "y"));
    assert_eq!(world.effects(&rescue("a")), []);
    assert!(world.twin(0).is_none() && world.instance(0).is_some());
}

#[test]
fn a_failed_placement_is_noted_once_on_an_unclaimed_instance() {
    let mut world = World::desiring(1).with(unclaimed());
    world.pass(seconds(1));
    world.ask(&fail("insufficient resources: memory")).unwrap();
    let lrp = world.instance(0).unwrap();
    assert_eq!(lrp.placement_error.as_deref(), Some("insufficient resources: memory"));
    assert_eq!((lrp.since, lrp.version), (NOW, 2));
    world.ask(&fail("insufficient resources: memory")).unwrap();
    assert_eq!(world.written, 0);
    for lrp in [claimed("a", "x"), running("a", "x"), crashed(4)] {
        let mut world = World::desiring(1).with(lrp);
        world.ask(&fail("no")).unwrap();
        assert_eq!(world.written, 0);
    }
}

#[test]
fn a_long_reason_is_cut_at_a_letter() {
    for reason in ["x".repeat(1025), "ä".repeat(4000)] {
        let mut world = World::desiring(1).with(unclaimed());
        world.ask(&fail(&reason)).unwrap();
        let error = world.instance(0).unwrap().placement_error.clone().unwrap();
        assert!((1020..=1024).contains(&error.len()), "{}", error.len());
        assert!(error.ends_with("(truncated)"));
    }
    let mut world = World::desiring(1).with(unclaimed());
    world.ask(&fail(&"x".repeat(1024))).unwrap();
    assert_eq!(world.instance(0).unwrap().placement_error, Some("x".repeat(1024)));
}

#[test]
fn an_evacuating_twin_goes_when_its_time_is_over() {
    let expire = Request::ExpireEvacuating { key: key(0) };
    let mut world = World::desiring(1).with(unclaimed()).with(twin("a", "x"));
    world.ask(&expire).unwrap();
    assert!(world.twin(0).is_some());
    world.pass(seconds(600));
    world.ask(&expire).unwrap();
    assert!(world.twin(0).is_none());
}
