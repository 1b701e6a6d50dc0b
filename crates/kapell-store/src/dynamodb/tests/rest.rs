//! What a store costs in requests while nothing happens.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::front::Fate;
use super::{Place, key};
use crate::model::{Generation, Write};
use crate::store::Ttl as _;

const TTL: Duration = Duration::from_secs(2);

/// The renewal is one conditional write, and whoever holds a seat does not look at it besides.
#[tokio::test]
async fn a_leader_at_rest_makes_one_request_a_renewal() {
    let test = "rest::a_leader_at_rest_makes_one_request_a_renewal";
    let Some(place) = Place::find(test).await else { return };
    let (store, seat) = (place.through().await, key("seat"));
    let insert = store.insert_if_absent(&seat, Generation(0), b"me", Some(TTL)).await.unwrap();
    assert_eq!(insert, Write::Done);
    let mut watch = store.watch(&seat).await.unwrap();
    place.front.set([], Fate::Passes);
    for renewal in 1..=5 {
        let next = Instant::now() + TTL / 4;
        let told = timeout_at(next, watch.changed()).await;
        assert!(told.is_err(), "a renewal was told: {told:?}");
        let swap = store.compare_and_swap(&seat, b"me", b"me", Some(TTL)).await.unwrap();
        assert_eq!(swap, Write::Done);
        assert_eq!(place.front.asked(), vec!["UpdateItem"; renewal]);
    }
    // Taken by force, it is told by the renewal.
    let forced = place.direct().await.compare_and_delete(&seat, b"me").await.unwrap();
    assert_eq!(forced, Write::Done);
    let swap = store.compare_and_swap(&seat, b"me", b"me", Some(TTL)).await.unwrap();
    assert_eq!(swap, Write::Lost);
    timeout(TTL, watch.changed()).await.expect("the loss is told").expect("a watch");
}

#[tokio::test]
async fn a_standby_at_rest_makes_no_more_requests_than_its_poll() {
    let test = "rest::a_standby_at_rest_makes_no_more_requests_than_its_poll";
    let Some(place) = Place::find(test).await else { return };
    let (store, leader, seat) = (place.through().await, place.direct().await, key("seat"));
    let insert = leader.insert_if_absent(&seat, Generation(0), b"me", Some(TTL * 9)).await.unwrap();
    assert_eq!(insert, Write::Done);
    let mut watch = store.watch(&seat).await.unwrap();
    place.front.set([], Fate::Passes);
    assert!(timeout(TTL * 2, watch.changed()).await.is_err(), "nothing has changed");
    let asked = place.front.asked();
    // Every 150 to 300 ms, and a few more at the beginning.
    assert!((8..=32).contains(&asked.len()), "{} requests in {:?}", asked.len(), TTL * 2);
    assert!(asked.iter().all(|what| what == "GetItem"), "{asked:?}");
    let swap = leader.compare_and_swap(&seat, b"me", b"you", Some(TTL * 9)).await.unwrap();
    assert_eq!(swap, Write::Done);
    timeout(TTL, watch.changed()).await.expect("a change is told").expect("a watch");
    drop(watch);
    place.front.set([], Fate::Passes);
    let nobody = tokio::sync::Notify::new();
    assert!(timeout(TTL / 2, nobody.notified()).await.is_err());
    assert_eq!(place.front.asked().len(), 0, "a watch that is dropped looks no more");
}
