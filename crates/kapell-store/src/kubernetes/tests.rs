use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kapell_core::seams::Moment;
use kapell_core::seat::{Epoch, Seat};

use super::Leases;
use super::address::Address;
use super::seen::Sights;
use super::stand::{Stand, all_in_ledger, in_ledger, key_of, put_in_ledger};
use crate::Error;
use crate::model::{Generation, Key};
use crate::store::{Shards as _, Store as _, Ttl as _};
use crate::testing::{how, skip};

fn at(ms: u64) -> Moment {
    Moment::ZERO.after(Duration::from_millis(ms))
}

fn stand(version: &str) -> Stand {
    Stand {
        generation: Generation(3),
        value: Some(b"who".to_vec()),
        ttl: Some(Duration::from_secs(2)),
        version: version.to_owned(),
    }
}

#[test]
fn an_entry_runs_out_once_it_stood_unchanged_for_all_of_its_time() {
    let key = Key::new(*b"k");
    let mut sights = Sights::default();
    let mut left = |version: &str, ms: u64| {
        let entry = sights.see(&key, &stand(version), at(ms));
        assert_eq!(entry.generation, Generation(3));
        entry.held.map(|held| held.remaining.unwrap().as_millis())
    };
    assert_eq!(left("1", 5_000), Some(2_000), "a newcomer waits for all of it");
    assert_eq!(left("1", 6_500), Some(500));
    assert_eq!(left("2", 6_900), Some(2_000), "it was renewed");
    assert_eq!(left("2", 8_899), Some(1));
    assert_eq!((left("2", 8_900), left("2", 99_000)), (None, None));
    assert_eq!(left("3", 99_001), Some(2_000), "somebody took it");
}

#[test]
fn a_generation_never_goes_back_for_whoever_has_seen_it() {
    let key = Key::new(*b"k");
    let mut sights = Sights::default();
    sights.see(&key, &stand("9"), at(0));
    let old = Stand { generation: Generation(1), ..stand("10") };
    assert_eq!(sights.see(&key, &old, at(1)).generation, Generation(3));
    assert_eq!(sights.highest(&key), Generation(3));
    assert_eq!(sights.highest(&Key::new(*b"other")), Generation(0));
}

#[test]
fn a_lease_holds_an_entry_and_what_others_wrote_stays() {
    let key = Key::new([0, 0, 0, 1, 0xff]);
    let mut lease = Lease::default();
    let theirs = lease.metadata.annotations.get_or_insert_default();
    theirs.insert("theirs".to_owned(), "stays".to_owned());
    let held = Stand { version: String::new(), ..stand("") };
    held.put(&mut lease, "main", &key);
    assert_eq!(Stand::of(&lease).unwrap(), held);
    assert_eq!(key_of(&lease), Some(key.clone()));
    let spec = lease.spec.clone().unwrap();
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_duration_seconds),
        (Some("who"), Some(2))
    );
    assert_eq!((spec.renew_time, spec.acquire_time), (None, None), "no clock is written");
    let before = lease.clone();
    held.put(&mut lease, "main", &key);
    assert_ne!(lease, before, "a renewal is a change");
    let free = Stand { value: None, ttl: None, ..held };
    free.put(&mut lease, "main", &key);
    assert_eq!(Stand::of(&lease).unwrap(), free);
    assert_eq!(lease.metadata.annotations.unwrap()["theirs"], "stays");
}

#[test]
fn a_ledger_knows_the_generations_of_all_keys() {
    let (one, other) = (Key::new([1]), Key::new([2, 3]));
    let mut ledger = Lease::default();
    put_in_ledger(&mut ledger, "main", &one, Generation(7));
    put_in_ledger(&mut ledger, "main", &other, Generation(2));
    assert_eq!(in_ledger(&ledger, &one).unwrap(), Generation(7));
    assert_eq!(in_ledger(&ledger, &Key::new([9])).unwrap(), Generation(0));
    let all = all_in_ledger(&ledger).unwrap();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), [(one, Generation(7)), (other, Generation(2))]);
    assert_eq!(key_of(&ledger), None);
}

#[test]
fn an_address_is_a_namespace_and_a_name() {
    let parse = |text: &str| text.parse::<Address>().map_err(|error| error.to_string());
    let named = |text: &str| parse(text).map(|it| (it.namespace, it.name)).unwrap();
    assert_eq!(named("kubernetes://jobs"), ("jobs".to_owned(), "kapell".to_owned()));
    assert_eq!(named("kubernetes://jobs/a-1?context=x"), ("jobs".to_owned(), "a-1".to_owned()));
    for (text, want) in [
        ("kubernetes://", "the namespace must be 1 to 63 lower-case letters"),
        ("kubernetes://jobs/A", "the name must be"),
        ("kubernetes://jobs?contxt=x", "unknown option `contxt`"),
        ("kubernetes://jobs:6443", "no user and no port"),
    ] {
        let why = parse(text).unwrap_err();
        assert!(why.contains(want), "{text}: {why}");
    }
}

async fn open(kubeconfig: &str, name: &str) -> Result<Leases, Error> {
    let url = format!("kubernetes://default/{name}?kubeconfig={kubeconfig}");
    Leases::open(&url, &how()).await
}

#[tokio::test]
async fn a_real_cluster_is_asked_and_who_may_not_is_told() {
    let name = "kubernetes::tests::a_real_cluster_is_asked_and_who_may_not_is_told";
    let Ok(kubeconfig) = std::env::var("KAPELL_TEST_KUBERNETES") else {
        return skip(name, "KAPELL_TEST_KUBERNETES names no kubeconfig");
    };
    let store = open(&kubeconfig, "conformance").await.unwrap();
    assert_eq!(store.name(), "kubernetes://default/conformance");
    let long = store.read(&Key::new([7])).await.unwrap();
    assert_eq!((long.generation, long.held), (Generation(0), None));
    let refused = store.insert_if_absent(&Key::new([0; 25]), Generation(0), b"", None).await;
    assert!(matches!(refused, Err(Error::AboveLimit { .. })), "{refused:?}");
    let refused = store.raise(Seat::FIRST, Epoch(1)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "kubernetes://default/conformance holds elections and nothing else: records need a file, etcd, PostgreSQL, Cassandra or DynamoDB"
    );
    assert!(!refused.may_pass());
    let stranger = kubeconfig.replace("/kubeconfig", "/stranger.kubeconfig");
    let refused = open(&stranger, "conformance").await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    assert!(
        std::error::Error::source(&refused).unwrap().to_string().contains("cannot list resource")
    );
    let refused = open("/no/such/file", "conformance").await.unwrap_err();
    assert!(refused.to_string().contains("/no/such/file"), "{refused}");
}
