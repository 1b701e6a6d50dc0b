use super::world::*;
use crate::board::request::Report;
use crate::board::*;

fn ready(ready: bool) -> Report {
    Report::Ready { key: key(0), instance_guid: "x".into(), ready }
}

fn runs(ready: bool) -> Report {
    Report::Running {
        key: key(0),
        instance_guid: "x".into(),
        domain: "d".into(),
        incarnation: None,
        net: net(),
        ready,
    }
}

fn unready() -> ActualLrp {
    ActualLrp { ready: Some(false), ..running("a", "x") }
}

#[test]
fn what_runs_says_whether_it_is_ready() {
    for is_ready in [true, false] {
        for lrp in [None, Some(unclaimed()), Some(claimed("a", "x")), Some(crashed(4))] {
            let mut world = lrp.into_iter().fold(World::desiring(1), World::with);
            world.report("a", runs(is_ready)).unwrap();
            let lrp = world.instance(0).unwrap();
            assert_eq!((lrp.ready, lrp.is_ready()), (Some(is_ready), is_ready));
        }
    }
}

#[test]
fn running_again_writes_only_another_readiness() {
    let mut world = World::desiring(1).with(running("a", "x"));
    world.pass(seconds(1));
    world.report("a", runs(true)).unwrap();
    assert_eq!(world.written, 0);
    world.report("a", runs(false)).unwrap();
    let lrp = world.instance(0).unwrap();
    assert_eq!((lrp.ready, lrp.since, lrp.version), (Some(false), NOW, 2));
}

#[test]
fn a_cell_tells_when_an_instance_becomes_ready_and_when_it_is_not_any_more() {
    let mut world = World::desiring(1).with(unready());
    world.pass(seconds(1));
    let verdict = world.report("a", ready(true)).unwrap();
    let lrp = world.instance(0).unwrap().clone();
    assert_eq!((lrp.ready, lrp.since, lrp.version), (Some(true), NOW, 2), "it runs as before");
    assert_eq!((verdict.reply, verdict.effects), (Reply::Instance(Some(Box::new(lrp))), vec![]));
    world.report("a", ready(true)).unwrap();
    assert_eq!(world.written, 0, "once is enough");
    world.report("a", ready(false)).unwrap();
    assert_eq!(world.instance(0).unwrap().ready, Some(false));
}

#[test]
fn only_its_own_cell_says_that_what_runs_is_ready() {
    let others = [claimed("a", "x"), running("b", "x"), running("a", "y"), unclaimed(), crashed(4)];
    for lrp in others {
        let state = lrp.state.name();
        for is_ready in [true, false] {
            let mut world = World::desiring(1).with(lrp.clone());
            let Err(Refusal::State { text }) = world.report("a", ready(is_ready)) else {
                panic!("not refused")
            };
            let wish = if is_ready { "become ready here" } else { "stop being ready here" };
            assert!(text.contains(wish) && text.contains(state), "{text}");
        }
    }
    let nothing = World::desiring(1).report("a", ready(true));
    assert!(matches!(nothing, Err(Refusal::NotFound { .. })), "{nothing:?}");
}

#[test]
fn what_does_not_run_any_more_is_not_ready_either() {
    let crashes = Report::Crashed {
        key: key(0),
        instance_guid: "x".into(),
        domain: "d".into(),
        incarnation: None,
        reason: "r".to_owned(),
    };
    let claims = Report::Claim { key: key(0), instance_guid: "x".into(), incarnation: None };
    let gives_up = Report::Unclaim { key: key(0), instance_guid: "x".into() };
    for report in [crashes, claims, gives_up] {
        let mut world = World::desiring(1).with(running("a", "x"));
        world.report("a", report).unwrap();
        assert_eq!(world.instance(0).unwrap().ready, None);
    }
}

#[test]
fn a_twin_is_as_ready_as_its_instance_was() {
    for (lrp, want) in [(running("a", "x"), true), (unready(), false), (claimed("a", "x"), true)] {
        let mut world = World::desiring(1).with(lrp);
        world.report("a", evacuate()).unwrap();
        assert_eq!(world.twin(0).unwrap().ready, Some(want));
        assert_eq!(world.instance(0).unwrap().ready, None);
    }
    let mut world = World::desiring(1).with(unready()).with(twin("b", "y"));
    world.report("a", evacuate()).unwrap();
    assert_eq!(world.twin(0).unwrap().ready, Some(false), "whatever the twin was before");
}

#[test]
fn a_twin_stops_being_ready_as_well() {
    let mut world = World::desiring(1).with(running("b", "y")).with(twin("a", "x"));
    world.report("a", ready(false)).unwrap();
    let twin = world.twin(0).unwrap();
    assert_eq!((twin.ready, twin.version), (Some(false), 2));
    assert_eq!(world.instance(0).unwrap().ready, Some(true), "the other one is not ours");
    let text = world.report("c", ready(true)).unwrap_err().to_string();
    assert!(text.contains("RUNNING as y on cell `b`"), "{text}");
}

#[test]
fn a_change_of_readiness_is_told() {
    let record = |lrp: ActualLrp| Some(Record::Actual(Box::new(lrp)));
    let event = Event::of(record(unready()), record(running("a", "x"))).unwrap();
    assert_eq!(event.name(), "actual_lrp_changed");
}

#[test]
fn readiness_is_shown_of_what_runs_only() {
    let shown = |lrp: &ActualLrp| serde_json::to_value(lrp).unwrap().get("ready").cloned();
    assert_eq!(shown(&running("a", "x")), Some(true.into()));
    assert_eq!(shown(&unready()), Some(false.into()));
    for lrp in [unclaimed(), claimed("a", "x"), crashed(4)] {
        assert_eq!(shown(&lrp), None);
    }
}

#[test]
fn what_older_agents_run_is_ready() {
    let text = r#"{"report":"running","key":{"process_guid":"web","index":0},"instance_guid":"x",
        "domain":"d","net":{"address":"10.0.0.1","ports":[]}}"#;
    let Report::Running { ready, .. } = serde_json::from_str(text).unwrap() else {
        panic!("another report")
    };
    assert!(ready);
    let text = serde_json::to_string(&super::readiness::ready(false)).unwrap();
    assert!(text.starts_with(r#"{"report":"ready","#) && text.ends_with(r#""ready":false}"#));
}
