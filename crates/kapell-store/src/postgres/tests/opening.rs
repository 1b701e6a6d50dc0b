use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::{LEASE, LIMIT, Place, how, key, variable};
use crate::error::Error;
use crate::model::{Generation, Write};
use crate::postgres::Postgres;
use crate::store::{Shards, Store, Ttl};

async fn refusal(url: &str, create: bool) -> Error {
    Postgres::open(url, &how(create, LIMIT)).await.unwrap_err()
}

#[tokio::test]
async fn nothing_is_laid_out_without_a_word() {
    let Some(place) = Place::find("nothing_is_laid_out_without_a_word").await else { return };
    let error = refusal(&place.url(""), false).await;
    assert!(matches!(error, Error::Absent { .. }), "{error:?}");
    let schemas = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'", place.schema);
    assert_eq!(place.count(&schemas).await, 0);

    place.open().await;
    Postgres::open(&place.url(""), &how(false, LIMIT)).await.unwrap();
    place.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_creators_all_find_one_store() {
    let Some(place) = Place::find("racing_creators_all_find_one_store").await else { return };
    let mut racers = JoinSet::new();
    for _ in 0..8 {
        let url = place.url("");
        racers.spawn(async move { Postgres::open(&url, &how(true, LIMIT)).await.map(drop) });
    }
    for outcome in racers.join_all().await {
        outcome.unwrap();
    }
    assert_eq!(place.count("SELECT count(*) FROM @.layout").await, 1);
    place.leave().await;
}

#[tokio::test]
async fn another_format_is_refused() {
    let Some(place) = Place::find("another_format_is_refused").await else { return };
    place.open().await;
    place.admin("UPDATE @.layout SET format = 7").await;
    let error = refusal(&place.url(""), true).await;
    assert!(matches!(&error, Error::Format { found, known: 1, .. } if found == "7"), "{error:?}");
    place.admin("UPDATE @.layout SET format = 1, shards = 8").await;
    let error = refusal(&place.url(""), true).await;
    assert!(matches!(&error, Error::Format { found, .. } if found.contains("8 shards")));
    place.leave().await;
}

#[tokio::test]
async fn a_role_that_may_create_nothing_can_use_what_is_there() {
    let test = "a_role_that_may_create_nothing_can_use_what_is_there";
    let Some(place) = Place::find(test).await else { return };
    let url = place.url_of_role("kapell:secret", "");
    place.admin("CREATE SCHEMA @").await;
    let error = refusal(&url, true).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");

    place.open().await;
    place.admin("GRANT USAGE ON SCHEMA @ TO kapell").await;
    place.admin("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA @ TO kapell").await;
    let store = Postgres::open(&url, &how(true, LIMIT)).await.unwrap();
    let mut watch = store.watch(&key("a")).await.unwrap();
    let write = store.insert_if_absent(&key("a"), Generation(0), b"x", LEASE).await.unwrap();
    assert_eq!(write, Write::Done);
    watch.changed().await.unwrap();
    let fence = super::raised(&store).await;
    assert_eq!(store.fence(super::SHARD).await.unwrap(), fence);
    drop(store);
    place.leave().await;
}

#[tokio::test]
async fn passwords_count() {
    let Some(place) = Place::find("passwords_count").await else { return };
    for credentials in ["kapell:wrong", "kapell", "nobody:secret"] {
        let error = refusal(&place.url_of_role(credentials, ""), true).await;
        assert!(
            matches!(error, Error::Denied { .. } | Error::Unreachable { .. }),
            "{credentials}: {error:?}"
        );
        if credentials.starts_with("kapell") {
            assert!(matches!(error, Error::Denied { .. }), "{credentials}: {error:?}");
        }
        assert!(!error.to_string().contains("wrong"));
    }

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password");
    std::fs::write(&path, "secret\n").unwrap();
    let url = place.url_of_role("kapell", &format!("&password_file={}", path.display()));
    let store = Postgres::open(&url, &how(true, LIMIT)).await.unwrap();
    assert!(!store.name().contains("secret"));
    drop(store);
    place.leave().await;
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named() {
    let Some(place) = Place::find("a_database_that_is_not_there_is_named").await else { return };
    let base = place.endpoint.rsplit_once('/').unwrap().0;
    let error = refusal(&format!("{base}/no_such_database"), true).await;
    assert!(matches!(error, Error::BadUrl { .. }), "{error:?}");
    assert!(error.to_string().contains("no database `no_such_database`"), "{error}");
}

#[tokio::test]
async fn nobody_there_is_told_soon() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap();
    let timeout = Duration::from_millis(300);
    let begun = Instant::now();
    for host in ["127.0.0.1:1", &silent.to_string()] {
        let url = format!("postgres://postgres@{host}/postgres");
        let error = Postgres::open(&url, &how(true, timeout)).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    }
    assert!(begun.elapsed() < 4 * timeout);
}

#[tokio::test]
async fn there_may_be_all_the_time_in_the_world() {
    let Some(place) = Place::find("there_may_be_all_the_time_in_the_world").await else { return };
    for timeout in [Duration::from_secs(1 << 20), Duration::MAX] {
        place.open_within(timeout).await;
    }
    place.leave().await;
}

#[tokio::test]
async fn a_server_that_only_reads_is_refused() {
    let Some(place) = Place::find("a_server_that_only_reads_is_refused").await else { return };
    place.open().await;
    let url = place.url("&options=-c%20default_transaction_read_only%3Don");
    let error = refusal(&url, true).await;
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    place.leave().await;
}

#[tokio::test]
async fn defaults_of_the_server_cannot_weaken_a_commit() {
    let test = "defaults_of_the_server_cannot_weaken_a_commit";
    let Some(place) = Place::find(test).await else { return };
    let url = place.url(
        "&options=-c%20synchronous_commit%3Doff%20-c%20default_transaction_isolation%3Dserializable",
    );
    let store = Postgres::open(&url, &how(true, LIMIT)).await.unwrap();
    let raw = store.pool.door().connect(crate::postgres::session::drive).await.unwrap();
    for (setting, wanted) in
        [("synchronous_commit", "on"), ("transaction_isolation", "read committed")]
    {
        let row = raw.client.query_one(&format!("SHOW {setting}"), &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), wanted);
    }
    place.leave().await;
}

#[tokio::test]
async fn tls_proves_who_answers() {
    let Some(ca) = variable("tls_proves_who_answers", "KAPELL_TEST_CA") else { return };
    let Some(place) = Place::find("tls_proves_who_answers").await else { return };
    let encrypted = |store: Postgres| async move {
        let raw = store.pool.door().connect(crate::postgres::session::drive).await.unwrap();
        let question = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        raw.client.query_one(question, &[]).await.unwrap().get::<_, bool>(0)
    };
    for (more, wanted) in [
        (format!("&sslmode=verify-full&sslrootcert={ca}"), true),
        (format!("&sslrootcert={ca}"), true),
        ("&sslmode=require".to_owned(), true),
        ("&sslmode=disable".to_owned(), false),
    ] {
        let url = place.url_of_role("kapell:secret", &more);
        let store = Postgres::open(&url, &how(true, LIMIT)).await.unwrap();
        assert_eq!(encrypted(store).await, wanted, "{more}");
    }

    let strange_name = place.endpoint.replace("127.0.0.1", "wrong.example");
    let strange_name = format!("{strange_name}?hostaddr=127.0.0.1&sslrootcert={ca}");
    let strangers = [place.url("&sslmode=verify-full"), strange_name];
    for url in strangers {
        let error = refusal(&url, true).await;
        let Error::Unreachable { source, .. } = &error else { panic!("{error:?}") };
        assert!(source.to_string().contains("invalid peer certificate"), "{source}");
    }
    let error = refusal(&place.url("&sslrootcert=/nowhere"), true).await;
    assert!(matches!(error, Error::BadUrl { .. }), "{error:?}");
    place.leave().await;
}
