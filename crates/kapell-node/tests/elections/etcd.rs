use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_node::system::SystemClock;
use kapell_node::testing::{Speed, elections_test_suite};
use kapell_store::etcd::Etcd;
use kapell_store::{How, Store};

use crate::servers::{Open, Server, server, unique};

#[derive(Debug)]
struct Roots {
    host: String,
    root: String,
}

#[async_trait]
impl Open for Roots {
    async fn open(&self, store: &str) -> Arc<dyn Store> {
        let url = format!("etcd://{}/{}/{store}", self.host, self.root);
        let timeout = Duration::from_secs(5);
        let how = How { create: true, timeout, clock: Arc::new(SystemClock) };
        let opened = Etcd::open(&url, &how).await;
        Arc::new(opened.unwrap_or_else(|error| panic!("{url}: {error:?}")))
    }
}

/// The seed's ElectionsByDriverTests, on etcd.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elections_by_driver_etcd() {
    let name = "elections::etcd::elections_by_driver_etcd";
    let Some(url) = server(name, "KAPELL_TEST_ETCD") else { return };
    let host = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let roots = Roots { host, root: unique() };
    elections_test_suite(Arc::new(Server(roots)), Speed::REAL).await;
}
