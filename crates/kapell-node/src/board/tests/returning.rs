//! A cell that comes back after the process of its container was deleted and desired anew.

use kapell_core::board::request::{Refusal, Report};
use kapell_core::board::{ActualState, LrpKey, NetInfo, Request};

use super::theatre::{Show, Theatre, Told, desire, pass, presence, secs};
use crate::board::Declined;
use crate::testing::eventually;

fn key() -> LrpKey {
    LrpKey { process_guid: "l".into(), index: 0 }
}

fn incarnation(show: &Show) -> u64 {
    show.board.look("l", |records| records.desired[&"l".into()].incarnation)
}

fn runs(incarnation: u64) -> Request {
    let net = NetInfo { address: "127.0.0.1".to_owned(), ports: Vec::new() };
    let report = Report::Running {
        key: key(),
        instance_guid: "old".into(),
        domain: "d".into(),
        incarnation: Some(incarnation),
        net,
        ready: true,
    };
    Request::Report { cell_id: "c".into(), report }
}

/// A board with a second process of a name whose first one ran on `c`, which is away; and the
/// incarnation of the first.
async fn desired_anew(theatre: &Theatre, instances: u32) -> (Show, u64) {
    let show = theatre.open_and_settle().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    eventually("it is there", secs(1), async || show.instance("l", 0).is_some()).await;
    let first = incarnation(&show);
    show.board.ask(runs(first)).await.unwrap();
    pass(secs(16)).await;
    show.board.ask(Request::RemoveDesired { process_guid: "l".into() }).await.unwrap();
    eventually("it is gone", secs(1), async || show.instance("l", 0).is_none()).await;
    show.board.ask(desire("l", instances)).await.unwrap();
    assert_ne!(incarnation(&show), first);
    (show, first)
}

#[tokio::test(start_paused = true)]
async fn its_container_is_not_taken_for_an_instance_that_waits() {
    let theatre = Theatre::new();
    let (show, first) = desired_anew(&theatre, 1).await;
    eventually("it waits", secs(1), async || show.instance("l", 0).is_some()).await;
    show.board.present(presence("c")).unwrap();
    let answer = show.board.ask(runs(first)).await;
    assert!(matches!(answer, Err(Declined::Refused(Refusal::State { .. }))), "{answer:?}");
    assert_eq!(show.instance("l", 0).unwrap().state, ActualState::Unclaimed);
}

/// No domain is fresh here, and it is stopped nonetheless: it was deleted.
#[tokio::test(start_paused = true)]
async fn its_container_is_stopped_and_makes_room_where_no_instance_is_known() {
    let theatre = Theatre::new();
    let (show, first) = desired_anew(&theatre, 0).await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(runs(first)).await.unwrap();
    let stopped = async || theatre.cells.count(|told| *told == Told::Stop(key())) > 0;
    eventually("it is stopped", secs(2), stopped).await;
    let update = kapell_core::board::DesiredUpdate { instances: Some(1), ..Default::default() };
    show.board.ask(Request::UpdateDesired { process_guid: "l".into(), update }).await.unwrap();
    assert_eq!(show.instance("l", 0).unwrap().incarnation, first, "its room is not free yet");
    let gone = Report::Remove { key: key(), instance_guid: "old".into() };
    show.report("c", gone).await;
    let second = incarnation(&show);
    let is_new = async || show.instance("l", 0).is_some_and(|lrp| lrp.incarnation == second);
    eventually("the new one has its room", secs(2), is_new).await;
    assert_eq!(show.instance("l", 0).unwrap().state, ActualState::Unclaimed);
}
