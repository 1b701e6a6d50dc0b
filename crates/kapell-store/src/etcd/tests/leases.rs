use std::time::{Duration, Instant};

use etcd_client::{Client, LeaseTimeToLiveOptions};

use super::{eventually, key, raw, server, store, twin};
use crate::etcd::Etcd;
use crate::etcd::leases::{LeaseId, Seconds};
use crate::model::{Generation, Key, Write};
use crate::store::Ttl;

const TTL: Duration = Duration::from_secs(30);
const FIRST: Generation = Generation(0);

async fn client(test: &str) -> Client {
    raw(&server(test).expect("checked before")).await
}

/// On which lease an entry stands, and at which revision it was last written.
async fn standing(etcd: &Etcd, client: &Client, key: &Key) -> (LeaseId, i64) {
    let found = client.kv_client().get(etcd.paths.entry(key), None).await.unwrap();
    let kv = found.kvs().first().expect("an entry");
    (LeaseId(kv.lease()), kv.mod_revision())
}

async fn is_gone(client: &Client, lease: LeaseId) -> bool {
    client.lease_client().time_to_live(lease.0, None).await.unwrap().ttl() < 0
}

/// Leases with this time to live, with and without something on them.
async fn leases_of(client: &Client, ttl: Duration) -> (usize, usize) {
    let mut leases = client.lease_client();
    let (mut bearing, mut empty) = (0, 0);
    for lease in leases.leases().await.unwrap().leases() {
        let options = LeaseTimeToLiveOptions::new().with_keys();
        let state = leases.time_to_live(lease.id(), Some(options)).await.unwrap();
        if state.granted_ttl() != i64::try_from(ttl.as_secs()).unwrap() {
            continue;
        }
        if state.keys().is_empty() {
            empty += 1;
        } else {
            bearing += 1;
        }
    }
    (bearing, empty)
}

fn spare(etcd: &Etcd, ttl: Duration) -> Option<LeaseId> {
    let spare = etcd.leases.take_any(Seconds::of(ttl))?;
    let id = spare.lease.id;
    etcd.leases.keep(Seconds::of(ttl), spare);
    Some(id)
}

#[tokio::test]
async fn a_prepared_insert_stands_on_the_lease_granted_ahead() {
    const NAME: &str = "a_prepared_insert_stands_on_the_lease_granted_ahead";
    let Some(etcd) = store(NAME).await else { return };
    etcd.prepare(TTL).await.unwrap();
    let ahead = spare(&etcd, TTL).unwrap();
    etcd.prepare(TTL).await.unwrap();
    assert_eq!(spare(&etcd, TTL), Some(ahead), "one spare is enough");

    let write = etcd.insert_if_absent(&key("k"), FIRST, b"v", Some(TTL)).await.unwrap();
    assert_eq!(write, Write::Done);
    let (lease, _) = standing(&etcd, &client(NAME).await, &key("k")).await;
    assert_eq!(lease, ahead);
    assert_eq!(spare(&etcd, TTL), None);
}

#[tokio::test]
async fn a_spare_that_is_gone_is_replaced() {
    const NAME: &str = "a_spare_that_is_gone_is_replaced";
    let Some(etcd) = store(NAME).await else { return };
    let client = client(NAME).await;
    etcd.prepare(TTL).await.unwrap();
    let gone = spare(&etcd, TTL).unwrap();
    client.lease_client().revoke(gone.0).await.unwrap();

    let write = etcd.insert_if_absent(&key("k"), FIRST, b"v", Some(TTL)).await.unwrap();
    assert_eq!(write, Write::Done);
    let (lease, _) = standing(&etcd, &client, &key("k")).await;
    assert_ne!(lease, gone);
    assert_eq!(etcd.read(&key("k")).await.unwrap().generation, Generation(1));
}

#[tokio::test]
async fn a_lost_insert_keeps_its_lease_for_the_next_one() {
    const NAME: &str = "a_lost_insert_keeps_its_lease_for_the_next_one";
    let Some(etcd) = store(NAME).await else { return };
    let insert =
        async |name: &str| etcd.insert_if_absent(&key(name), FIRST, b"v", Some(TTL)).await.unwrap();
    assert_eq!(insert("a").await, Write::Done);
    assert_eq!(insert("a").await, Write::Lost);
    let kept = spare(&etcd, TTL).unwrap();
    assert_eq!(insert("a").await, Write::Lost);
    assert_eq!(spare(&etcd, TTL), Some(kept));
    assert_eq!(insert("b").await, Write::Done);
    let (lease, _) = standing(&etcd, &client(NAME).await, &key("b")).await;
    assert_eq!(lease, kept);
}

#[tokio::test]
async fn an_entry_can_be_moved_off_a_doubtful_lease() {
    const NAME: &str = "an_entry_can_be_moved_off_a_doubtful_lease";
    let Some(etcd) = store(NAME).await else { return };
    let (client, key, ttl) = (client(NAME).await, key("k"), Seconds::of(TTL));
    let _ = etcd.insert_if_absent(&key, FIRST, b"v", Some(TTL)).await.unwrap();
    let (doubtful, _) = standing(&etcd, &client, &key).await;
    etcd.put_on_new_lease(&key, b"v", ttl, doubtful).await.unwrap();
    let (fresh, _) = standing(&etcd, &client, &key).await;
    assert_ne!(fresh, doubtful);
    eventually("the old lease to go", || is_gone(&client, doubtful)).await;
    assert!(etcd.read(&key).await.unwrap().held.is_some());

    etcd.put_on_new_lease(&key, b"v", ttl, doubtful).await.unwrap_err();
    assert_eq!(standing(&etcd, &client, &key).await.0, fresh);
}

#[tokio::test]
async fn an_entry_that_another_took_off_a_doubtful_lease_was_there() {
    const NAME: &str = "an_entry_that_another_took_off_a_doubtful_lease_was_there";
    let Some(etcd) = store(NAME).await else { return };
    let (client, key, ttl) = (client(NAME).await, key("k"), Seconds::of(TTL));
    let _ = etcd.insert_if_absent(&key, FIRST, b"v", Some(TTL)).await.unwrap();
    let (doubtful, _) = standing(&etcd, &client, &key).await;
    client.kv_client().delete(etcd.paths.entry(&key), None).await.unwrap();
    etcd.put_on_new_lease(&key, b"v", ttl, doubtful).await.unwrap();
    eventually("the old lease to go", || is_gone(&client, doubtful)).await;
    assert!(etcd.read(&key).await.unwrap().held.is_none());
}

#[tokio::test]
async fn a_renewal_keeps_the_lease_and_writes_nothing() {
    const NAME: &str = "a_renewal_keeps_the_lease_and_writes_nothing";
    let Some(etcd) = store(NAME).await else { return };
    let (client, key, ttl) = (client(NAME).await, key("k"), Duration::from_secs(20));
    let _ = etcd.insert_if_absent(&key, FIRST, b"v", Some(ttl)).await.unwrap();
    let before = standing(&etcd, &client, &key).await;
    tokio::time::sleep(Duration::from_millis(2100)).await; // tidy: allow(sleep) the server's time must pass
    let remaining = async || etcd.read(&key).await.unwrap().held.unwrap().remaining.unwrap();
    assert!(remaining().await <= Duration::from_secs(17));
    let renewed = Instant::now();
    let renewal = etcd.compare_and_swap(&key, b"v", b"v", Some(ttl)).await.unwrap();
    assert_eq!(renewal, Write::Done);
    let left = remaining().await;
    assert!(left + renewed.elapsed() + Duration::from_secs(1) >= ttl, "{left:?}");
    assert_eq!(standing(&etcd, &client, &key).await, before);

    let longer = etcd.compare_and_swap(&key, b"v", b"v", Some(TTL)).await.unwrap();
    assert_eq!(longer, Write::Done);
    assert!(remaining().await > ttl);
    eventually("the shorter lease to go", || is_gone(&client, before.0)).await;
    let forever = etcd.compare_and_swap(&key, b"v", b"v", None).await.unwrap();
    assert_eq!(forever, Write::Done);
    assert_eq!(etcd.read(&key).await.unwrap().held.unwrap().remaining, None);
}

#[tokio::test]
async fn a_renewal_notices_what_others_did() {
    const NAME: &str = "a_renewal_notices_what_others_did";
    let Some(ours) = store(NAME).await else { return };
    let (client, theirs) = (client(NAME).await, twin(&ours).await);
    let renew = async |key: &Key| ours.compare_and_swap(key, b"v", b"v", Some(TTL)).await.unwrap();
    for name in ["same", "changed", "deleted", "again", "other"] {
        let _ = ours.insert_if_absent(&key(name), FIRST, b"v", Some(TTL)).await.unwrap();
    }
    // The same value by another client is still that value, on a lease that we do not know.
    let (first, _) = standing(&ours, &client, &key("same")).await;
    let _ = theirs.compare_and_swap(&key("same"), b"v", b"v", Some(TTL)).await.unwrap();
    assert_eq!(renew(&key("same")).await, Write::Done);
    assert_ne!(standing(&ours, &client, &key("same")).await.0, first);
    eventually("the first lease to go", || is_gone(&client, first)).await;
    assert_eq!(renew(&key("same")).await, Write::Done);

    let _ = theirs.compare_and_swap(&key("changed"), b"v", b"w", Some(TTL)).await.unwrap();
    assert_eq!(renew(&key("changed")).await, Write::Lost);
    let _ = theirs.compare_and_delete(&key("deleted"), b"v").await.unwrap();
    assert_eq!(renew(&key("deleted")).await, Write::Lost);
    let _ = theirs.compare_and_delete(&key("again"), b"v").await.unwrap();
    let again = theirs.insert_if_absent(&key("again"), Generation(1), b"w", Some(TTL)).await;
    assert_eq!(again.unwrap(), Write::Done);
    assert_eq!(renew(&key("again")).await, Write::Lost);

    // Asking for a value that never stood there must not take the lease from what does.
    let (lease, _) = standing(&ours, &client, &key("other")).await;
    let wrong = ours.compare_and_swap(&key("other"), b"x", b"x", Some(TTL)).await.unwrap();
    assert_eq!(wrong, Write::Lost);
    tokio::time::sleep(Duration::from_millis(200)).await; // tidy: allow(sleep) the server's time must pass
    assert_eq!(standing(&ours, &client, &key("other")).await.0, lease);
    assert!(!is_gone(&client, lease).await);
}

#[tokio::test]
async fn leases_do_not_pile_up() {
    const NAME: &str = "leases_do_not_pile_up";
    let Some(etcd) = store(NAME).await else { return };
    let (client, key) = (client(NAME).await, key("k"));
    let ttl = Duration::from_secs(100_000 + u64::from(std::process::id()));
    for round in 0..20 {
        if round % 2 == 0 {
            etcd.prepare(ttl).await.unwrap();
        }
        let seen = Generation(round);
        assert!(etcd.insert_if_absent(&key, seen, b"a", Some(ttl)).await.unwrap().is_done());
        assert!(!etcd.insert_if_absent(&key, seen, b"b", Some(ttl)).await.unwrap().is_done());
        assert!(etcd.compare_and_swap(&key, b"a", b"a", Some(ttl)).await.unwrap().is_done());
        assert!(etcd.compare_and_swap(&key, b"a", b"b", Some(ttl)).await.unwrap().is_done());
        assert!(!etcd.compare_and_swap(&key, b"a", b"c", Some(ttl)).await.unwrap().is_done());
        assert!(etcd.compare_and_delete(&key, b"b").await.unwrap().is_done());
    }
    eventually("all but a spare to go", async || leases_of(&client, ttl).await <= (0, 1)).await;
}

#[tokio::test]
async fn an_entry_goes_when_its_time_is_over() {
    const NAME: &str = "an_entry_goes_when_its_time_is_over";
    let Some(etcd) = store(NAME).await else { return };
    let (key, expiry) = (key("k"), etcd.expiry());
    assert!(expiry.shortest >= Duration::from_secs(1), "{expiry:?}");
    let called = Instant::now();
    let _ = etcd.insert_if_absent(&key, FIRST, b"v", Some(expiry.shortest)).await.unwrap();
    let answered = Instant::now();
    let (mut promised, mut last_seen) = (called, called);
    let gone = loop {
        let asked = Instant::now();
        match etcd.read(&key).await.unwrap().held {
            Some(held) => {
                promised = promised.max(asked + held.remaining.unwrap());
                last_seen = asked;
            }
            None => break Instant::now(),
        }
        tokio::time::sleep(Duration::from_millis(10)).await; // tidy: allow(sleep) polls with a deadline
    };
    assert!(gone >= called + expiry.shortest, "gone after {:?}", gone - called);
    let latest = answered + expiry.shortest + expiry.lag;
    assert!(last_seen <= latest, "seen after {:?}", last_seen - answered);
    assert!(promised <= gone, "promised {:?} too much", promised - gone);
    let entry = etcd.read(&key).await.unwrap();
    assert_eq!(entry.generation, Generation(1));
    let renewal = etcd.compare_and_swap(&key, b"v", b"v", Some(expiry.shortest)).await.unwrap();
    assert_eq!(renewal, Write::Lost);
}

#[tokio::test]
async fn a_list_has_pages() {
    let Some(etcd) = store("a_list_has_pages").await else { return };
    let count = 130_u64;
    for number in 0..count {
        let ttl = (number % 3 > 0).then_some(TTL);
        let key = Key::new(number.to_be_bytes());
        let _ = etcd.insert_if_absent(&key, FIRST, b"v", ttl).await.unwrap();
    }
    for number in (0..count).step_by(5) {
        let _ = etcd.compare_and_delete(&Key::new(number.to_be_bytes()), b"v").await.unwrap();
    }
    let key = Key::new(count.to_be_bytes());
    etcd.lift(&key, Generation(7)).await.unwrap();
    etcd.lift(&key, Generation(3)).await.unwrap();
    let all = etcd.list().await.unwrap();
    assert_eq!(all.len(), 131);
    for (number, (key, entry)) in (0..count).zip(&all) {
        assert_eq!(key.as_bytes(), number.to_be_bytes());
        assert_eq!(entry.generation, Generation(1));
        assert_eq!(entry.held.is_some(), number % 5 != 0);
        let remaining = entry.held.as_ref().and_then(|held| held.remaining);
        assert_eq!(remaining.is_some(), number % 5 != 0 && number % 3 > 0);
    }
    assert_eq!(all[130].1.generation, Generation(7));
}
