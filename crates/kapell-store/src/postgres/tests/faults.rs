use std::time::{Duration, Instant};

use super::{LEASE, LIMIT, Place, key, raised};
use crate::error::Error;
use crate::model::{Commit, Generation, Op, Write};
use crate::store::{Shards, Ttl};

const FIRST: Generation = Generation(0);

#[tokio::test]
async fn connections_that_were_killed_between_calls_go_unnoticed() {
    let test = "connections_that_were_killed_between_calls_go_unnoticed";
    let Some(place) = Place::find(test).await else { return };
    let store = place.open().await;
    let seat = key("seat");
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"me", LEASE).await.unwrap(), Write::Done);
    for _ in 0..3 {
        place.kill_sessions().await;
        // The server is done with the session a moment before this end has heard of it.
        tokio::time::sleep(Duration::from_millis(50)).await; // tidy: allow(sleep) the server's time must pass
        let renewed = store.compare_and_swap(&seat, b"me", b"me", LEASE).await.unwrap();
        assert_eq!(renewed, Write::Done);
    }
    place.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_killed_in_a_call_is_an_error_and_then_replaced() {
    let test = "a_connection_killed_in_a_call_is_an_error_and_then_replaced";
    let Some(place) = Place::find(test).await else { return };
    let store = place.open().await;
    let seat = key("seat");
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"me", LEASE).await.unwrap(), Write::Done);
    let fence = raised(&store).await;

    place.hold("SELECT FROM @.ttl FOR UPDATE; SELECT FROM @.fence FOR UPDATE").await;
    let ops = [Op::Put(key("k"), b"v".to_vec())];
    let swap = store.compare_and_swap(&seat, b"me", b"you", LEASE);
    let commit = store.commit(super::SHARD, fence, &ops);
    let kill = async {
        place.wait_for_lock_waiters(2).await;
        place.kill_sessions().await;
    };
    let (swap, commit, ()) = tokio::join!(swap, commit, kill);
    for error in [swap.unwrap_err(), commit.unwrap_err()] {
        assert!(matches!(error, Error::Failed { .. }), "{error:?}");
    }
    place.release().await;

    let entry = store.read(&seat).await.unwrap();
    assert_eq!(entry.held.unwrap().value, b"me");
    assert_eq!(store.commit(super::SHARD, fence, &ops).await.unwrap(), Commit::Done);
    place.leave().await;
}

#[tokio::test]
async fn what_a_dropped_call_left_behind_ends_with_the_timeout() {
    let test = "what_a_dropped_call_left_behind_ends_with_the_timeout";
    let Some(place) = Place::find(test).await else { return };
    let timeout = Duration::from_millis(500);
    let store = place.open_within(timeout).await;
    let seat = key("seat");
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"me", LEASE).await.unwrap(), Write::Done);
    let fence = raised(&store).await;

    place.hold("SELECT FROM @.ttl FOR UPDATE; SELECT FROM @.fence FOR UPDATE").await;
    let ops = [Op::Put(key("k"), b"v".to_vec())];
    tokio::select! {
        _ = store.compare_and_swap(&seat, b"me", b"you", LEASE) => panic!("the row is locked"),
        _ = store.commit(super::SHARD, fence, &ops) => panic!("the row is locked"),
        () = place.wait_for_lock_waiters(2) => {}
    }
    tokio::time::sleep(timeout).await; // tidy: allow(sleep) the server's time must pass
    place.release().await;
    assert_eq!(store.read(&seat).await.unwrap().held.unwrap().value, b"me");
    assert_eq!(store.fence(super::SHARD).await.unwrap(), fence);
    assert!(store.scan(super::SHARD, None).await.unwrap().items.is_empty());
    place.leave().await;
}

#[tokio::test]
async fn a_call_that_waits_too_long_is_over_on_both_sides() {
    let test = "a_call_that_waits_too_long_is_over_on_both_sides";
    let Some(place) = Place::find(test).await else { return };
    let timeout = Duration::from_millis(400);
    let store = place.open_within(timeout).await;
    let seat = key("seat");
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"me", LEASE).await.unwrap(), Write::Done);

    place.hold("SELECT FROM @.ttl FOR UPDATE").await;
    let begun = Instant::now();
    let error = store.compare_and_delete(&seat, b"me").await.unwrap_err();
    assert!(begun.elapsed() < timeout * 2);
    assert!(
        matches!(error, Error::Timeout { call: "compare_and_delete", limit, .. } if limit == timeout),
        "{error:?}"
    );
    place.release().await;
    assert_eq!(store.read(&seat).await.unwrap().held.unwrap().value, b"me");
    place.leave().await;
}

#[tokio::test]
async fn dropped_calls_leave_neither_transactions_nor_connections_behind() {
    let test = "dropped_calls_leave_neither_transactions_nor_connections_behind";
    let Some(place) = Place::find(test).await else { return };
    let store = place.open().await;
    let seat = key("seat");
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"me", None).await.unwrap(), Write::Done);
    let mut dropped = 0;
    for wait_us in (0..600).step_by(10) {
        let wait = Duration::from_micros(wait_us);
        let renewal = store.compare_and_swap(&seat, b"me", b"me", None);
        match tokio::time::timeout(wait, renewal).await {
            Ok(renewed) => assert_eq!(renewed.unwrap(), Write::Done),
            Err(_) => dropped += 1,
        }
    }
    assert!(dropped > 0);
    let left = format!("SELECT count(*) {}", place.sessions());
    let begun = Instant::now();
    while place.count(&left).await > 1 {
        assert!(begun.elapsed() < LIMIT, "connections are left behind");
        tokio::time::sleep(Duration::from_millis(5)).await; // tidy: allow(sleep) polls with a deadline
    }
    let open = format!("SELECT count(*) {} AND state LIKE 'idle in%'", place.sessions());
    assert_eq!(place.count(&open).await, 0);
    place.leave().await;
}
