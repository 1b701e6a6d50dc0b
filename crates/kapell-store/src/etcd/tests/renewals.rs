//! What a renewal costs while somebody watches the entry, and what it notices all the same.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use super::proxy::{Line, Proxy};
use super::{LIMIT, eventually, fresh_root, how, key, raw, server, store, twin};
use crate::etcd::Etcd;
use crate::model::{Generation, Key, Write};
use crate::store::Ttl;
use crate::watch::{Cut, Watch};

const TTL: Duration = Duration::from_secs(30);

/// A renewal, and how many messages it took.
async fn renew(etcd: &Etcd, key: &Key) -> (Write, u64) {
    let sent = || etcd.link.sent.load(Ordering::Relaxed);
    let before = sent();
    let write = etcd.compare_and_swap(key, b"v", b"v", Some(TTL)).await.unwrap();
    (write, sent() - before)
}

/// Holds an entry as a leader does: watched, and renewed once.
async fn led(etcd: &Etcd, key: &Key) -> Watch {
    etcd.prepare(TTL).await.unwrap();
    let watch = etcd.watch(key).await.unwrap();
    let seen = etcd.read(key).await.unwrap().generation;
    let insert = etcd.insert_if_absent(key, seen, b"v", Some(TTL)).await.unwrap();
    assert_eq!(insert, Write::Done);
    // The watch may tell of the insert after the first renewal: then the next one looks, too.
    let renewals = || async { renew(etcd, key).await == (Write::Done, 1) };
    eventually("a renewal by one message", renewals).await;
    watch
}

async fn is_told(watch: &mut Watch) -> Result<(), Cut> {
    timeout(LIMIT, watch.changed()).await.expect("a watch that is told")
}

#[tokio::test]
async fn a_renewal_under_a_watch_is_one_message() {
    let Some(etcd) = store("renewals::a_renewal_under_a_watch_is_one_message").await else {
        return;
    };
    let seat = key("seat");
    let mut watch = led(&etcd, &seat).await;
    for _ in 0..5 {
        assert_eq!(renew(&etcd, &seat).await, (Write::Done, 1));
    }
    // Another value than the one that was seen stands there.
    let other = etcd.compare_and_swap(&seat, b"x", b"x", Some(TTL)).await.unwrap();
    assert_eq!(other, Write::Lost);
    assert_eq!(renew(&etcd, &seat).await, (Write::Done, 2));
    assert_eq!(renew(&etcd, &seat).await, (Write::Done, 1));
    // What is told of makes the next one look, and the one after that need not.
    is_told(&mut watch).await.unwrap();
    etcd.lift(&seat, Generation(9)).await.unwrap();
    is_told(&mut watch).await.unwrap();
    assert_eq!(renew(&etcd, &seat).await, (Write::Done, 2));
    assert_eq!(renew(&etcd, &seat).await, (Write::Done, 1));
    drop(watch);
    eventually("nobody to listen", async || etcd.ears.mark(&seat, 0).is_none()).await;
    for _ in 0..2 {
        assert_eq!(renew(&etcd, &seat).await, (Write::Done, 2), "nobody would have told");
    }
}

/// Without a look, only the lease can tell it: it is gone before the other is answered.
#[tokio::test]
async fn what_another_client_did_is_noticed_by_the_next_renewal() {
    const NAME: &str = "renewals::what_another_client_did_is_noticed_by_the_next_renewal";
    let Some(ours) = store(NAME).await else { return };
    let (theirs, client) = (twin(&ours).await, raw(&server(NAME).unwrap()).await);
    for (name, new) in [("swapped", Some(b"w")), ("same", Some(b"v")), ("deleted", None)] {
        let key = key(name);
        let _watch = led(&ours, &key).await;
        let found = client.kv_client().get(ours.paths.entry(&key), None).await.unwrap();
        let lease = found.kvs()[0].lease();
        let write = match new {
            Some(new) => theirs.compare_and_swap(&key, b"v", new, Some(TTL)).await,
            None => theirs.compare_and_delete(&key, b"v").await,
        };
        assert_eq!(write.unwrap(), Write::Done);
        let left = client.lease_client().time_to_live(lease, None).await.unwrap().ttl();
        assert!(left < 0, "{name}: it has {left} s left, and the other was answered");
        // The same value stands there still, and is ours again.
        let want = Write::of(name == "same");
        assert_eq!(renew(&ours, &key).await.0, want, "{name}");
    }
}

#[tokio::test]
async fn what_is_taken_away_by_hand_is_told_and_then_lost() {
    const NAME: &str = "renewals::what_is_taken_away_by_hand_is_told_and_then_lost";
    let Some(etcd) = store(NAME).await else { return };
    let (client, seat) = (raw(&server(NAME).unwrap()).await, key("seat"));
    let mut watch = led(&etcd, &seat).await;
    is_told(&mut watch).await.unwrap();
    client.kv_client().delete(etcd.paths.entry(&seat), None).await.unwrap();
    is_told(&mut watch).await.unwrap();
    assert_eq!(renew(&etcd, &seat).await.0, Write::Lost);
}

#[tokio::test]
async fn a_watch_that_was_cut_is_trusted_no_more() {
    const NAME: &str = "renewals::a_watch_that_was_cut_is_trusted_no_more";
    let Some(server) = server(NAME) else { return };
    let proxy = Proxy::to(&server).await;
    let url = format!("etcd://{}/{}", proxy.address, fresh_root());
    let etcd = Etcd::open(&url, &how(true, LIMIT)).await.unwrap();
    let seat = key("seat");
    let mut watch = led(&etcd, &seat).await;
    is_told(&mut watch).await.unwrap();
    proxy.set(Line::Cut);
    assert_eq!(is_told(&mut watch).await, Err(Cut));
    proxy.set(Line::Open);
    eventually("the server to be back", async || etcd.read(&seat).await.is_ok()).await;
    // The stream is gone, too, and opened anew by the first.
    assert_eq!(renew(&etcd, &seat).await.0, Write::Done);
    assert_eq!(renew(&etcd, &seat).await, (Write::Done, 2));
    let _watch = etcd.watch(&seat).await.unwrap();
    assert_eq!(renew(&etcd, &seat).await, (Write::Done, 2));
    assert_eq!(renew(&etcd, &seat).await, (Write::Done, 1));
}

/// Whoever keeps a lease alive at a member that says nothing turns to another, with or without a look.
#[tokio::test]
async fn a_member_that_says_nothing_is_turned_from() {
    const NAME: &str = "renewals::a_member_that_says_nothing_is_turned_from";
    let Some(server) = server(NAME) else { return };
    let (first, second) = (Proxy::to(&server).await, Proxy::to(&server).await);
    let url = format!("etcd://{},{}/{}", first.address, second.address, fresh_root());
    let limit = Duration::from_secs(2);
    let etcd = Etcd::open(&url, &how(true, limit)).await.unwrap();
    let seat = key("seat");
    let _watch = led(&etcd, &seat).await;
    first.set(Line::Silent);
    assert!(etcd.compare_and_swap(&seat, b"v", b"v", Some(TTL)).await.is_err());
    assert_eq!(renew(&etcd, &seat).await.0, Write::Done);
    assert_eq!(renew(&etcd, &seat).await, (Write::Done, 2), "the watch is at the other member");
}
