use std::time::Duration;

use super::{LEASE, LIMIT, Place, key};
use crate::model::{Generation, Write};
use crate::store::Ttl;
use crate::watch::{Cut, Watch};

async fn told(watch: &mut Watch) {
    tokio::time::timeout(LIMIT, watch.changed()).await.expect("nobody tells").unwrap();
}

async fn is_quiet(watch: &mut Watch) -> bool {
    tokio::time::timeout(Duration::from_millis(50), watch.changed()).await.is_err()
}

#[tokio::test]
async fn changes_are_told_and_renewals_are_not() {
    let Some(place) = Place::find("changes_are_told_and_renewals_are_not").await else { return };
    let (store, other) = (place.open().await, place.open().await);
    let seat = key("\0seat\u{7f}");
    let mut watch = store.watch(&seat).await.unwrap();
    let mut beside = store.watch(&key("another")).await.unwrap();

    let write = other.insert_if_absent(&seat, Generation(0), b"me", LEASE).await.unwrap();
    assert_eq!(write, Write::Done);
    told(&mut watch).await;
    assert_eq!(other.compare_and_swap(&seat, b"me", b"me", LEASE).await.unwrap(), Write::Done);
    assert_eq!(other.compare_and_swap(&seat, b"no", b"me", LEASE).await.unwrap(), Write::Lost);
    assert!(is_quiet(&mut watch).await);
    assert_eq!(other.compare_and_swap(&seat, b"me", b"you", LEASE).await.unwrap(), Write::Done);
    told(&mut watch).await;
    assert_eq!(other.compare_and_delete(&seat, b"you").await.unwrap(), Write::Done);
    told(&mut watch).await;
    let again = other.insert_if_absent(&seat, Generation(1), b"me", LEASE).await.unwrap();
    assert_eq!(again, Write::Done);
    told(&mut watch).await;
    other.lift(&seat, Generation(9)).await.unwrap();
    told(&mut watch).await;
    assert!(is_quiet(&mut beside).await);
    place.leave().await;
}

#[tokio::test]
async fn watches_are_cut_with_the_connection_and_can_be_had_again() {
    let test = "watches_are_cut_with_the_connection_and_can_be_had_again";
    let Some(place) = Place::find(test).await else { return };
    let store = place.open().await;
    let seat = key("seat");
    let mut watches = [store.watch(&seat).await.unwrap(), store.watch(&seat).await.unwrap()];
    let mut other = store.watch(&key("other")).await.unwrap();
    let ears = format!("SELECT count(*) {} AND query LIKE 'LISTEN%'", place.sessions());
    assert_eq!(place.count(&ears).await, 1, "one connection for all");
    place.kill_sessions().await;
    for watch in watches.iter_mut().chain([&mut other]) {
        assert_eq!(tokio::time::timeout(LIMIT, watch.changed()).await, Ok(Err(Cut)));
    }

    let mut watch = store.watch(&seat).await.unwrap();
    let write = store.insert_if_absent(&seat, Generation(0), b"me", LEASE).await.unwrap();
    assert_eq!(write, Write::Done);
    told(&mut watch).await;
    drop(store);
    assert_eq!(tokio::time::timeout(LIMIT, watch.changed()).await, Ok(Err(Cut)));
    place.leave().await;
}
