use kapell_core::board::request::Report;
use kapell_core::board::{Event, InstanceGuid, LrpKey, NetInfo, Request};

use super::theatre::{Show, Theatre, desire, neighbours, pass, secs, set_domain};
use crate::board::{EventId, Next, Subscription};
use crate::testing::{Call, Fault, within};

async fn next(events: &mut Subscription) -> Event {
    match within("an event", secs(1), events.next()).await {
        Some(Next::Event(_, event)) => (*event).clone(),
        other => panic!("{other:?}"),
    }
}

async fn names(events: &mut Subscription, count: usize) -> Vec<&'static str> {
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(next(events).await.name());
    }
    names
}

/// Has all of these decided during one commit, so that they share the next one.
async fn together(theatre: &Theatre, show: &Show, first: &str, requests: Vec<Request>) {
    theatre.store.set(&[Call::Commit], Fault::Delay(secs(1)));
    let first = show.ask(set_domain(first));
    pass(secs(1) / 2).await;
    let asked: Vec<_> = requests.into_iter().map(|request| show.ask(request)).collect();
    first.end().await.unwrap();
    for asked in asked {
        asked.end().await.unwrap();
    }
    theatre.store.heal();
}

#[tokio::test(start_paused = true)]
async fn every_change_has_its_event_though_only_the_last_is_written() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let shard = neighbours(2);
    let fresh = |ttl| Request::SetDomain { domain: shard[1].as_str().into(), ttl: Some(secs(ttl)) };
    let mut events = show.board.events(None);
    together(&theatre, &show, &shard[0], vec![fresh(100), fresh(200), fresh(300)]).await;
    assert_eq!(theatre.seq(&shard[0]).await, 2);
    assert_eq!(next(&mut events).await.name(), "domain_created");
    let mut stood = None;
    for name in ["domain_created", "domain_changed", "domain_changed"] {
        let event = next(&mut events).await;
        assert_eq!(event.name(), name);
        let Event::Domain(change) = event else { panic!("{event:?}") };
        assert_eq!(change.before, stood);
        stood = change.after;
    }
    let stands = show.board.look(&shard[1], |records| {
        records.domains.get(&shard[1].as_str().into()).cloned().map(Box::new)
    });
    assert_eq!(stood, stands);
    assert_eq!(show.board.last_event().number, 4);
}

#[tokio::test(start_paused = true)]
async fn what_comes_and_goes_within_one_commit_is_told_in_order() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let shard = neighbours(3);
    let mut events = show.board.events(None);
    let gone = Request::RemoveDesired { process_guid: shard[1].as_str().into() };
    let requests = vec![desire(&shard[1], 0), gone, desire(&shard[2], 0), desire(&shard[1], 0)];
    together(&theatre, &show, &shard[0], requests).await;
    let told = names(&mut events, 5).await;
    let (created, removed) = ("desired_lrp_created", "desired_lrp_removed");
    assert_eq!(told, ["domain_created", created, removed, created, created]);
}

/// One instance runs on cell `c`: which, and what was told last.
async fn one_runs(show: &Show) -> (LrpKey, EventId) {
    show.board.ask(desire("p", 1)).await.unwrap();
    show.run("c", "p", 0).await;
    (LrpKey { process_guid: "p".into(), index: 0 }, show.board.last_event())
}

/// Whoever follows the events knows at any moment where it runs.
#[tokio::test(start_paused = true)]
async fn the_twin_of_an_evacuation_is_told_of_before_its_instance() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let (key, before) = one_runs(&show).await;
    let (instance_guid, domain) = (InstanceGuid::new("p-0-on-c"), "d".into());
    let net = NetInfo { address: "127.0.0.1".to_owned(), ports: Vec::new() };
    show.report("c", Report::Evacuate { key, instance_guid, domain, incarnation: None, net }).await;
    let mut events = show.board.events(Some(before));
    assert_eq!(names(&mut events, 2).await, ["actual_lrp_created", "actual_lrp_changed"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_told_after_the_change_that_it_makes() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let (key, before) = one_runs(&show).await;
    let instance_guid = InstanceGuid::new("p-0-on-c");
    let (domain, reason) = ("d".into(), "Exited with status 1".to_owned());
    show.report("c", Report::Crashed { key, instance_guid, incarnation: None, domain, reason })
        .await;
    let mut events = show.board.events(Some(before));
    assert_eq!(next(&mut events).await.name(), "actual_lrp_changed");
    let crash = next(&mut events).await;
    assert_eq!(crash.name(), "actual_lrp_crashed");
    let want = serde_json::json!({
        "kind": "actual_lrp_crashed", "process_guid": "p", "index": 0, "instance_guid": "p-0-on-c",
        "cell_id": "c", "crash_count": 1, "reason": "Exited with status 1",
    });
    assert_eq!(serde_json::to_value(&crash).unwrap(), want);
    // Whoever has seen the change only goes on with the crash.
    let changed = EventId { number: before.number + 1, ..before };
    assert_eq!(next(&mut show.board.events(Some(changed))).await, crash);
}

#[tokio::test(start_paused = true)]
async fn a_crash_that_is_refused_is_not_told() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let (key, before) = one_runs(&show).await;
    let (instance_guid, domain) = (InstanceGuid::new("another"), "d".into());
    let report =
        Report::Crashed { key, instance_guid, incarnation: None, domain, reason: "why".to_owned() };
    let request = Request::Report { cell_id: "c".into(), report };
    assert!(show.board.ask(request).await.is_err());
    assert_eq!(show.board.last_event(), before);
}
