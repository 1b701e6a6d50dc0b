use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::Place;
use crate::model::{Entry, Generation, Key, Write};
use crate::store::Ttl as _;

const KEYS: u32 = 4000;

/// Keys are never deleted, so they become ever more; to look at each of them takes longer than a call may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_are_gone_are_listed_without_a_look_at_each() {
    let name = "keys_that_are_gone_are_listed_without_a_look_at_each";
    let Some(place) = Place::named(name) else { return };
    let mut store = place.open("replication=1").await.unwrap();
    let keys: Vec<Key> = (0..KEYS).map(|number| Key::new(number.to_be_bytes())).collect();
    let lifts = keys.iter().map(|key| store.lift(key, Generation(3)));
    let () = stream::iter(lifts).buffer_unordered(64).try_collect().await.unwrap();
    let (held, over) = (&keys[1], &keys[2]);
    let ttl = Duration::from_millis(100);
    for (key, ttl) in [(held, None), (over, Some(ttl))] {
        let insert = store.insert_if_absent(key, Generation(3), b"x", ttl).await.unwrap();
        assert_eq!(insert, Write::Done);
    }
    while store.read(over).await.unwrap().held.is_some() {}
    store.timeout = Duration::from_secs(1);
    let listed = store.list().await.unwrap();
    assert_eq!(listed.len(), keys.len());
    for ((key, entry), want) in listed.into_iter().zip(keys.iter()) {
        assert_eq!(&key, want);
        let generation = Generation(if &key == held || &key == over { 4 } else { 3 });
        assert_eq!(entry.held.is_some(), &key == held, "{key}");
        assert_eq!(Entry { held: None, ..entry }, Entry { generation, held: None }, "{key}");
    }
    assert_eq!(store.read(held).await.unwrap().generation, Generation(4));
}
