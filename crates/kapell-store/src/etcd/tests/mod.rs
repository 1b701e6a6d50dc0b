//! What is special to etcd, against a real server. `KAPELL_TEST_ETCD` says where one is.

mod faults;
mod leases;
mod limits;
mod proxy;
mod renewals;
mod secured;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kapell_core::seams::{Clock, Moment, Timestamp};

use super::Etcd;
use crate::error::Error;
use crate::model::Key;
use crate::open::How;
use crate::testing;

const LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Boot(Instant);

impl Clock for Boot {
    fn now(&self) -> Moment {
        Moment::from_origin(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }
}

fn how(create: bool, timeout: Duration) -> How {
    How { create, timeout, clock: Arc::new(Boot(Instant::now())) }
}

fn skip(test: &str, reason: &str) {
    testing::skip(&format!("etcd::tests::{test}"), reason);
}

/// `host:port` of the server for tests, or a record that there is none.
fn server(test: &str) -> Option<String> {
    let Ok(url) = std::env::var("KAPELL_TEST_ETCD") else {
        skip(test, "KAPELL_TEST_ETCD names no server");
        return None;
    };
    Some(url.trim_start_matches("http://").trim_end_matches('/').to_owned())
}

/// Tests share a server, and runs may follow each other on it.
fn fresh_root() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("test-{:x}-{:x}-{number}", std::process::id(), now.as_nanos())
}

async fn open(url: &str) -> Result<Etcd, Error> {
    Etcd::open(url, &how(true, LIMIT)).await
}

async fn store(test: &str) -> Option<Etcd> {
    let server = server(test)?;
    Some(open(&format!("etcd://{server}/{}", fresh_root())).await.expect("a server"))
}

/// A second client of the same store.
async fn twin(etcd: &Etcd) -> Etcd {
    let how = how(false, LIMIT);
    Etcd::open(&etcd.name, &how).await.expect("the store that was just made")
}

fn key(name: &str) -> Key {
    Key::new(name.as_bytes())
}

async fn raw(server: &str) -> etcd_client::Client {
    etcd_client::Client::connect([server], None).await.expect("a server")
}

async fn eventually<F: Future<Output = bool>>(what: &str, look: impl Fn() -> F) {
    let deadline = Instant::now() + LIMIT;
    while !look().await {
        assert!(Instant::now() < deadline, "waited {LIMIT:?} for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await; // tidy: allow(sleep) polls with a deadline
    }
}

#[tokio::test]
async fn a_store_is_made_only_when_asked_for() {
    let Some(server) = server("a_store_is_made_only_when_asked_for") else { return };
    let url = format!("etcd://{server}/{}", fresh_root());
    let absent = Etcd::open(&url, &how(false, LIMIT)).await.unwrap_err();
    assert!(matches!(absent, Error::Absent { .. }), "{absent}");
    open(&url).await.unwrap();
    Etcd::open(&url, &how(false, LIMIT)).await.unwrap();
}

#[tokio::test]
async fn another_layout_is_refused() {
    let Some(server) = server("another_layout_is_refused") else { return };
    let layouts = [
        (r#"{"format":2}"#, "format 2;"),
        (r#"{"format":1,"shards":8}"#, "format 1 with 8 shards;"),
        ("[]", "format unknown (invalid length 0"),
    ];
    for (layout, want) in layouts {
        let root = fresh_root();
        raw(&server).await.put(format!("{root}/layout"), layout, None).await.unwrap();
        let error = open(&format!("etcd://{server}/{root}")).await.unwrap_err();
        assert!(matches!(error, Error::Format { known: 1, .. }), "{error}");
        assert!(error.to_string().contains(want), "{error}");
    }
}
