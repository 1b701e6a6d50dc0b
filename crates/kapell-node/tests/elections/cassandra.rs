use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_node::system::SystemClock;
use kapell_node::testing::{Speed, elections_test_suite};
use kapell_store::cassandra::Cassandra;
use kapell_store::{How, Store};

use crate::servers::{Open, Server, server, unique};

#[derive(Debug)]
struct Names {
    url: String,
    prefix: String,
}

#[async_trait]
impl Open for Names {
    async fn open(&self, store: &str) -> Arc<dyn Store> {
        let url = format!("{}/elections/{}.{store}?replication=1", self.url, self.prefix);
        let timeout = Duration::from_secs(5);
        let how = How { create: true, timeout, clock: Arc::new(SystemClock) };
        let opened = Cassandra::open(&url, &how).await;
        Arc::new(opened.unwrap_or_else(|error| panic!("{url}: {error:?}")))
    }
}

/// The seed's ElectionsByDriverTests, on Cassandra.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elections_by_driver_cassandra() {
    let name = "elections::cassandra::elections_by_driver_cassandra";
    let Some(url) = server(name, "KAPELL_TEST_CASSANDRA") else { return };
    let names = Names { url, prefix: unique() };
    // Whoever holds a seat does not look at it, so the renewal is what tells it of a loss.
    let speed = Speed { told: false, ..Speed::REAL };
    elections_test_suite(Arc::new(Server(names)), speed).await;
}
