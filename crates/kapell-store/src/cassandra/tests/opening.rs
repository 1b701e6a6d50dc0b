use std::error::Error as _;
use std::time::Duration;

use tokio::time::Instant;

use super::super::Cassandra;
use super::super::address::Address;
use super::super::link::connect;
use super::Place;
use super::wire::Wire;
use crate::error::Error;
use crate::model::{Generation, Key, Write};
use crate::open::How;
use crate::store::{Store as _, Ttl as _};
use crate::testing::how;

/// Statements by which a person, or a program in their place, prepares something.
async fn run(place: &Place, statements: &[String]) {
    let address = Address::parse(&place.url(&place.login, "")).unwrap();
    let session = connect(&address, Duration::from_secs(10)).await.unwrap();
    for statement in statements {
        session.query_unpaged(statement.as_str(), ()).await.unwrap();
    }
}

fn told(error: &Error) -> String {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    format!("{error}: {cause}")
}

#[tokio::test]
async fn a_keyspace_is_made_on_request_only() {
    let Some(place) = Place::named("a_keyspace_is_made_on_request_only") else { return };
    let absent = place.open_as(&place.login, "replication=1", false).await.unwrap_err();
    assert!(matches!(absent, Error::Absent { .. }), "{absent:?}");
    let refused = place.open("").await.unwrap_err();
    let (name, text) = (&place.keyspace, refused.to_string());
    assert!(matches!(refused, Error::BadUrl { .. }) && !refused.may_pass());
    let run =
        format!("there is no keyspace `{name}`: run `CREATE KEYSPACE IF NOT EXISTS {name} WITH");
    assert!(text.contains(&run) && text.contains("`replication=3`"), "{text}");
    assert!(!text.contains("secret"), "{text}");

    let store = place.open("replication=1").await.unwrap();
    assert_eq!(store.name(), format!("cassandra://{}/{name}", place.at));
    assert_eq!(format!("{store:?}"), format!("Cassandra({:?})", store.name()));
    let key = Key::new(*b"");
    let insert = store.insert_if_absent(&key, Generation(0), b"x", None).await.unwrap();
    assert_eq!(insert, Write::Done, "an empty key is a key");
    let again = place.open_as(&place.login, "", false).await.unwrap();
    assert_eq!(again.list().await.unwrap().len(), 1);
}

/// Many hosts are started at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_may_be_made_by_many_at_once() {
    let Some(place) = Place::named("a_store_may_be_made_by_many_at_once") else { return };
    let opened = (0..6).map(|_| place.open("replication=1"));
    let stores = futures_util::future::join_all(opened).await;
    let stores: Vec<_> = stores.into_iter().map(Result::unwrap).collect();
    let key = Key::new(*b"k");
    let insert = stores[0].insert_if_absent(&key, Generation(0), b"x", None).await.unwrap();
    assert_eq!(insert, Write::Done);
    for store in stores {
        assert_eq!(store.read(&key).await.unwrap().generation, Generation(1));
    }
}

/// The first host on a machine that is busy must not end over what takes longer than any call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_may_take_longer_to_make_than_a_call() {
    let Some(mut place) = Place::named("tables_may_take_longer_to_make_than_a_call") else {
        return;
    };
    let timeout = Duration::from_secs(2);
    let wire = Wire::slow_with_tables(&place.at, timeout * 3 / 2).await;
    place.at = wire.address.to_string();
    let (url, began) = (place.url(&place.login, "replication=1"), Instant::now());
    let store = Cassandra::open(&url, &How { timeout, ..how() }).await.unwrap();
    assert!(began.elapsed() > timeout, "it was as fast as any call");
    let insert = store.insert_if_absent(&Key::new(*b"k"), Generation(0), b"x", None).await.unwrap();
    assert_eq!(insert, Write::Done);
}

#[tokio::test]
async fn those_who_agree_among_others_are_refused() {
    let Some(place) = Place::named("those_who_agree_among_others_are_refused") else { return };
    // What the server calls the only one that it knows of.
    let local = "serial=local&dc=datacenter1";
    let store = place.open(&format!("{local}&replication=datacenter1:1")).await.unwrap();
    let key = Key::new(*b"k");
    let insert = store.insert_if_absent(&key, Generation(0), b"x", None).await.unwrap();
    assert_eq!(insert, Write::Done);
    let refused = place.open("").await.unwrap_err().to_string();
    let want = "its hosts agree by `serial=local&dc=datacenter1`; with `serial=global` nobody would hear of them";
    assert!(refused.contains(want), "{refused}");
    assert_eq!(
        place.open(local).await.unwrap().read(&key).await.unwrap().generation,
        Generation(1)
    );
}

#[tokio::test]
async fn a_store_of_another_format_is_left_alone() {
    let Some(place) = Place::named("a_store_of_another_format_is_left_alone") else { return };
    drop(place.open("replication=1").await.unwrap());
    let set = |what: &str| {
        [format!("UPDATE {}.layout SET {what} WHERE store = 'main' IF EXISTS", place.keyspace)]
    };
    run(&place, &set("format = 7")).await;
    let refused = place.open("").await.unwrap_err();
    assert!(
        matches!(&refused, Error::Format { found, known: 1, .. } if found == "7"),
        "{refused:?}"
    );
    run(&place, &set("format = 1, shards = 8")).await;
    let refused = place.open("").await.unwrap_err().to_string();
    assert!(
        refused.contains("format 1 with 8 shards instead of 16; this kapell knows 1"),
        "{refused}"
    );
}

/// The grants that the docs name are enough, and less is not.
#[tokio::test]
async fn rights_are_those_that_the_docs_name() {
    let Some(place) = Place::named("rights_are_those_that_the_docs_name") else { return };
    let wrong = place.open_as("kapell:hunter2", "replication=1", true).await.unwrap_err();
    assert!(
        matches!(wrong, Error::Denied { .. }) && !told(&wrong).contains("hunter2"),
        "{wrong:?}"
    );
    let stranger = "stranger:secret";
    let denied = place.open_as(stranger, "replication=1", true).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{denied:?}");
    assert!(told(&denied).contains("CREATE"), "{}", told(&denied));

    drop(place.open("replication=1").await.unwrap());
    let denied = place.open_as(stranger, "", true).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{denied:?}");
    let grants = ["SELECT", "MODIFY"]
        .map(|right| format!("GRANT {right} ON KEYSPACE {} TO stranger", place.keyspace));
    run(&place, &grants).await;
    let store = allowed(&place, stranger).await;
    let insert = store.insert_if_absent(&Key::new(*b"k"), Generation(0), b"x", None).await.unwrap();
    assert_eq!(insert, Write::Done);
}

/// What a role may do is remembered by the server for a moment.
async fn allowed(place: &Place, login: &str) -> Cassandra {
    let mut again = tokio::time::interval(Duration::from_millis(200));
    for _ in 0..50 {
        match place.open_as(login, "", true).await {
            Ok(store) => return store,
            Err(error) => assert!(matches!(error, Error::Denied { .. }), "{error:?}"),
        }
        again.tick().await;
    }
    panic!("{login} may not open it");
}

/// The statements that the docs name, in their order: the role makes the tables itself, and nothing but them.
#[tokio::test]
async fn the_order_of_keyspace_and_grants_is_that_of_the_docs() {
    let test = "the_order_of_keyspace_and_grants_is_that_of_the_docs";
    let Some(place) = Place::named(test) else { return };
    // The role itself is the server's: nobody else here may make one.
    let (keyspace, login) = (&place.keyspace, "stranger:secret");
    let replication = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}";
    let mut statements =
        vec![format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}")];
    for right in ["CREATE", "SELECT", "MODIFY"] {
        statements.push(format!("GRANT {right} ON KEYSPACE {keyspace} TO stranger"));
    }
    run(&place, &statements).await;
    drop(allowed(&place, login).await);
    run(&place, &[format!("REVOKE CREATE ON KEYSPACE {keyspace} FROM stranger")]).await;
    let store = allowed(&place, login).await;
    let insert = store.insert_if_absent(&Key::new(*b"k"), Generation(0), b"x", None).await.unwrap();
    assert_eq!(insert, Write::Done);
}

#[tokio::test]
async fn nodes_prove_who_they_are() {
    let Some(place) = Place::named("nodes_prove_who_they_are") else { return };
    let Ok(ca) = std::env::var("KAPELL_TEST_CA") else {
        return crate::testing::skip("nodes_prove_who_they_are", "KAPELL_TEST_CA names no file");
    };
    let with = |more: &str| format!("replication=1&tls=true&ca={ca}{more}");
    let store = place.open(&with("")).await.unwrap();
    let insert = store.insert_if_absent(&Key::new(*b"k"), Generation(0), b"x", None).await.unwrap();
    assert_eq!(insert, Write::Done);
    assert!(place.open(&with("&domain=localhost")).await.is_ok());
    let short = How { timeout: Duration::from_secs(3), ..how() };
    for (options, what) in [(with("&domain=elsewhere.example"), "another name")] {
        let url = place.url(&place.login, &options);
        let refused = Cassandra::open(&url, &short).await.unwrap_err();
        assert!(matches!(refused, Error::Unreachable { .. }), "{what}: {refused:?}");
        assert!(told(&refused).contains("certificate"), "{}", told(&refused));
    }
    // An authority that has signed nothing.
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other.pem");
    std::fs::write(&other, OTHER).unwrap();
    let options = format!("replication=1&tls=true&ca={}", other.display());
    let url = place.url(&place.login, &options);
    let refused = Cassandra::open(&url, &short).await.unwrap_err();
    assert!(told(&refused).contains("certificate"), "{}", told(&refused));
}

#[tokio::test]
async fn nobody_there_is_told_with_the_reason() {
    let how = How { timeout: Duration::from_secs(2), ..how() };
    let refused = Cassandra::open("cassandra://u:hunter2@127.0.0.1:1/k", &how).await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable { .. }) && refused.may_pass(), "{refused:?}");
    let text = told(&refused);
    assert!(text.contains("refused") && !text.contains("hunter2"), "{text}");
}

/// Made for this test, and its key thrown away.
const OTHER: &str = "\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUEZIcXZP7DzkgilCyZ3thAKKH+nQwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTExNzE3MTgzM1oYDzIxMjYxMDI0MTcx
ODMzWjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAT2cI180K0HAuEfnFJ92WEwrDe7lAWJcmnu5cwHRN3MBLl3lLYPvuHnKPnvLwZm
vg3z7QgwgPpPWw2WpB8KWOjfo1MwUTAdBgNVHQ4EFgQUsIgIQPSFKU2kESsSr1qu
nQoigPcwHwYDVR0jBBgwFoAUsIgIQPSFKU2kESsSr1qunQoigPcwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEA2h1+LGy6phLjItLm8UKwPemW0bfW
CPB1j41ymUcA9rQCICkJa6l3VfzKr9G2iVvNPhGX6f80z8xkv+9gMtN2yMwI
-----END CERTIFICATE-----
";
