use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_node::system::SystemClock;
use kapell_node::testing::{Speed, elections_test_suite};
use kapell_store::dynamodb::DynamoDb;
use kapell_store::{How, Store};

use crate::servers::{Open, Server, server, unique};

#[derive(Debug)]
struct Tables {
    endpoint: String,
    prefix: String,
}

#[async_trait]
impl Open for Tables {
    async fn open(&self, store: &str) -> Arc<dyn Store> {
        let (endpoint, table) = (&self.endpoint, format!("{}_{store}", self.prefix));
        let options = format!("endpoint={endpoint}&credentials=none&create=true");
        let url = format!("dynamodb://local/{table}?{options}");
        let timeout = Duration::from_secs(5);
        let how = How { create: true, timeout, clock: Arc::new(SystemClock) };
        let opened = DynamoDb::open(&url, &how).await;
        Arc::new(opened.unwrap_or_else(|error| panic!("{url}: {error:?}")))
    }
}

/// The seed's ElectionsByDriverTests, on DynamoDB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elections_by_driver_dynamodb() {
    let name = "elections::dynamodb::elections_by_driver_dynamodb";
    let Some(endpoint) = server(name, "KAPELL_TEST_DYNAMODB") else { return };
    let tables = Tables { endpoint, prefix: unique() };
    // A leader at rest makes one request a renewal, so the renewal is what tells it of a loss.
    let speed = Speed { told: false, ..Speed::REAL };
    elections_test_suite(Arc::new(Server(tables)), speed).await;
}
