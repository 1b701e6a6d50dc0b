//! Stops of what nobody desires, in domains that are fresh for a while.

use kapell_core::board::request::Report;
use kapell_core::board::{ActualState, LrpKey, NetInfo, Request, shard_of};
use kapell_store::model::SHARDS;

use super::theatre::{Show, Theatre, Told, desire, neighbours, pass, presence, secs, set_domain};
use crate::testing::{Call, Fault, eventually, for_as_long};

/// In another shard than the neighbours.
const DOMAIN: &str = "e";

/// A board with a container on `c` that nobody desires.
async fn with_extra(theatre: &Theatre, guid: &str) -> Show {
    let show = theatre.open_and_settle().await;
    show.board.present(presence("c")).unwrap();
    let net = NetInfo { address: "127.0.0.1".to_owned(), ports: Vec::new() };
    let report = Report::Running {
        key: LrpKey { process_guid: guid.into(), index: 0 },
        instance_guid: "x".into(),
        domain: DOMAIN.into(),
        incarnation: None,
        net,
        ready: true,
    };
    show.report("c", report).await;
    show
}

fn stops(theatre: &Theatre) -> usize {
    theatre.cells.count(|told| matches!(told, Told::Stop(_)))
}

fn fresh_for(seconds: u64) -> Request {
    Request::SetDomain { domain: DOMAIN.into(), ttl: Some(secs(seconds)) }
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_said_again_only_while_the_domain_is_fresh() {
    let theatre = Theatre::new();
    let show = with_extra(&theatre, "l").await;
    show.board.ask(fresh_for(5)).await.unwrap();
    eventually("it is said again", secs(5), async || stops(&theatre) > 1).await;
    pass(secs(5)).await;
    let said = stops(&theatre);
    for_as_long("nobody vouches", secs(5), async || stops(&theatre) == said).await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(fresh_for(5)).await.unwrap();
    eventually("it is said once more", secs(1), async || stops(&theatre) > said).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_what_is_desired_again_is_not_said_again() {
    let theatre = Theatre::new();
    let show = with_extra(&theatre, "l").await;
    show.board.ask(set_domain(DOMAIN)).await.unwrap();
    eventually("it is stopped", secs(1), async || stops(&theatre) == 1).await;
    show.board.ask(desire("l", 1)).await.unwrap();
    for_as_long("it is left alone", secs(10), async || stops(&theatre) == 1).await;
}

/// A store may take longer than whoever vouches for a domain vouches.
#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_slow_commit_is_not_stopped_once_its_domain_is_stale() {
    let theatre = Theatre::new();
    let names = neighbours(2);
    assert_ne!(shard_of(&names[0], SHARDS), shard_of(DOMAIN, SHARDS));
    let show = with_extra(&theatre, &names[0]).await;
    theatre.store.next(Call::Commit, 1, Fault::Delay(secs(10)));
    let first = show.ask(set_domain(&names[1]));
    eventually("it is under way", secs(1), async || show.board.waiting() == (0, 0)).await;
    pass(secs(1)).await;
    show.board.ask(fresh_for(5)).await.unwrap();
    eventually("it is planned", secs(1), async || show.board.waiting().1 == 1).await;
    drop(first.end().await);
    eventually("it is decided", secs(10), async || show.board.waiting().1 == 0).await;
    pass(secs(1)).await;
    assert_eq!(stops(&theatre), 0);
    assert_eq!(show.instance(&names[0], 0).unwrap().state, ActualState::Running);
}
