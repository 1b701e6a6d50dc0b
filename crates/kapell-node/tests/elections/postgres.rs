use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_node::system::SystemClock;
use kapell_node::testing::{Speed, elections_test_suite};
use kapell_store::postgres::Postgres;
use kapell_store::{How, Store};

use crate::servers::{Open, Server, server, unique};

#[derive(Debug)]
struct Schemas {
    url: String,
    prefix: String,
}

#[async_trait]
impl Open for Schemas {
    async fn open(&self, store: &str) -> Arc<dyn Store> {
        let joint = if self.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{joint}schema={}_{store}", self.url, self.prefix);
        let timeout = Duration::from_secs(5);
        let how = How { create: true, timeout, clock: Arc::new(SystemClock) };
        let opened = Postgres::open(&url, &how).await;
        Arc::new(opened.unwrap_or_else(|error| panic!("{url}: {error:?}")))
    }
}

/// The seed's ElectionsByDriverTests, on PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elections_by_driver_postgres() {
    let name = "elections::postgres::elections_by_driver_postgres";
    let Some(url) = server(name, "KAPELL_TEST_POSTGRES") else { return };
    let schemas = Schemas { url, prefix: unique() };
    elections_test_suite(Arc::new(Server(schemas)), Speed::REAL).await;
}
