//! What is special to PostgreSQL, against a real server.

mod faults;
mod opening;
mod racing;
mod url;
mod watching;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kapell_core::seams::{Clock, Moment, Timestamp};
use kapell_core::seat::{Epoch, Seat};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::Postgres;
use crate::model::{Fence, Key, Raise, Shard};
use crate::open::How;
use crate::store::Shards;
use crate::testing;

const LIMIT: Duration = Duration::from_secs(10);
const LEASE: Option<Duration> = Some(Duration::from_secs(20));

/// A schema of its own on the server, and someone who may do anything there.
struct Place {
    endpoint: String,
    schema: String,
    admin: Client,
    /// Holds locks: whoever is in a transaction sees the activity of others as it was at first.
    holder: Client,
    _driver: JoinSet<()>,
}

#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Moment {
        unreachable!("the server has a clock")
    }

    fn wall(&self) -> Timestamp {
        unreachable!("the server has a clock")
    }
}

impl Place {
    /// None if there is no server to test with; then the test is reported as skipped.
    async fn find(test: &str) -> Option<Self> {
        let endpoint = variable(test, "KAPELL_TEST_POSTGRES")?;
        let (admin, wire) = tokio_postgres::connect(&endpoint, NoTls).await.unwrap();
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(wire.await) });
        let (holder, wire) = tokio_postgres::connect(&endpoint, NoTls).await.unwrap();
        driver.spawn(async move { drop(wire.await) });
        let schema = format!("test_{:016x}", RandomState::new().hash_one(Instant::now()));
        Some(Self { endpoint, schema, admin, holder, _driver: driver })
    }

    fn url(&self, more: &str) -> String {
        format!("{}?schema={}{more}", self.endpoint, self.schema)
    }

    /// The URL of the role that has a password.
    fn url_of_role(&self, credentials: &str, more: &str) -> String {
        let host = self.endpoint.split_once('@').unwrap().1;
        format!("postgres://{credentials}@{host}?schema={}{more}", self.schema)
    }

    async fn open(&self) -> Postgres {
        self.open_within(LIMIT).await
    }

    async fn open_within(&self, timeout: Duration) -> Postgres {
        Postgres::open(&self.url(""), &how(true, timeout)).await.unwrap()
    }

    /// Runs a statement in the name of the administrator, `@` being the schema.
    async fn admin(&self, statement: &str) {
        self.admin.batch_execute(&statement.replace('@', &self.schema)).await.unwrap();
    }

    /// Runs a statement and keeps its locks.
    async fn hold(&self, statement: &str) {
        let statement = format!("BEGIN; {}", statement.replace('@', &self.schema));
        self.holder.batch_execute(&statement).await.unwrap();
    }

    async fn release(&self) {
        self.holder.batch_execute("COMMIT").await.unwrap();
    }

    async fn count(&self, question: &str) -> i64 {
        let question = question.replace('@', &self.schema);
        self.admin.query_one(&question, &[]).await.unwrap().get(0)
    }

    /// Ends every connection of stores in this schema, and waits until they are gone.
    async fn kill_sessions(&self) {
        self.admin(&format!("SELECT pg_terminate_backend(pid, 5000) {}", self.sessions())).await;
    }

    /// Sessions are told apart by the statements they made last, all of which name the schema.
    fn sessions(&self) -> String {
        format!(
            "FROM pg_stat_activity WHERE application_name = 'kapell' AND query LIKE '%{}%'",
            self.schema
        )
    }

    async fn wait_for_lock_waiters(&self, wanted: i64) {
        let waiting = format!("SELECT count(*) {} AND wait_event_type = 'Lock'", self.sessions());
        let begun = Instant::now();
        while self.count(&waiting).await < wanted {
            assert!(begun.elapsed() < LIMIT, "nobody waits");
            tokio::time::sleep(Duration::from_millis(5)).await; // tidy: allow(sleep) polls with a deadline
        }
    }

    async fn leave(self) {
        self.admin("DROP SCHEMA IF EXISTS @ CASCADE").await;
    }
}

fn how(create: bool, timeout: Duration) -> How {
    How { create, timeout, clock: Arc::new(NoClock) }
}

fn key(name: &str) -> Key {
    Key::new(name.as_bytes())
}

const SHARD: Shard = Shard { seat: Seat::FIRST, number: 3 };

async fn raised(store: &Postgres) -> Fence {
    let raised = store.raise(Seat::FIRST, Epoch(1 << 32)).await.unwrap();
    assert!(matches!(raised, Raise::Done(_)), "{raised:?}");
    Fence { epoch: Epoch(1 << 32), seq: 0 }
}

/// What the environment says; if it says nothing the test is reported as skipped.
fn variable(test: &str, name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    if value.is_none() {
        testing::skip(&format!("postgres::{test}"), &format!("{name} is not set"));
    }
    value
}
