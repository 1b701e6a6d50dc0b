//! What a store costs in requests while nothing happens.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::Place;
use super::wire::Wire;
use crate::model::{Generation, Key, Write};
use crate::store::Ttl as _;

const TTL: Duration = Duration::from_secs(2);

/// The renewal is one conditional statement, and whoever holds a seat does not look at it besides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_at_rest_makes_one_request_a_renewal() {
    let Some(mut place) = Place::named("rest::a_leader_at_rest_makes_one_request_a_renewal") else {
        return;
    };
    let direct = place.open("replication=1").await.unwrap();
    let wire = Wire::to(&place.at).await;
    place.at = wire.address.to_string();
    let (store, seat) = (place.open("").await.unwrap(), Key::new(*b"seat"));
    let mut watch = store.watch(&seat).await.unwrap();
    let insert = store.insert_if_absent(&seat, Generation(0), b"me", Some(TTL)).await.unwrap();
    assert_eq!(insert, Write::Done);
    let renew = || store.compare_and_swap(&seat, b"me", b"me", Some(TTL));
    assert_eq!(renew().await.unwrap(), Write::Done);
    // A look that was under way when it was renewed is over long before the next one.
    let _ = timeout_at(Instant::now() + TTL / 4, watch.changed()).await;
    let before = wire.asked();
    for renewal in 1..=4 {
        assert_eq!(renew().await.unwrap(), Write::Done);
        let told = timeout_at(Instant::now() + TTL / 4, watch.changed()).await;
        assert!(told.is_err(), "a renewal was told: {told:?}");
        assert_eq!(wire.asked() - before, renewal, "requests after renewal {renewal}");
    }
    // Taken by force, it is told by the renewal.
    assert_eq!(direct.compare_and_delete(&seat, b"me").await.unwrap(), Write::Done);
    assert_eq!(renew().await.unwrap(), Write::Lost);
    timeout(TTL, watch.changed()).await.expect("the loss is told").expect("a watch");
}
