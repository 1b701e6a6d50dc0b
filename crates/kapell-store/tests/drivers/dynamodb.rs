use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_store::dynamodb::DynamoDb;
use kapell_store::testing::{self, Fresh, Place, how};
use kapell_store::{Error, How, Store};
use tokio::sync::{Mutex, MutexGuard};

use crate::children::{Child, several};
use crate::group::{passes, server};

/// It does one transaction at a time: groups that run beside each other take each other's time, and some cases count it.
static ALONE: Mutex<()> = Mutex::const_new(());

/// DynamoDB Local; every store has a table of its own there.
#[derive(Debug)]
struct Service(
    SocketAddr,
    #[expect(dead_code, reason = "held until the group is done")] MutexGuard<'static, ()>,
);

#[derive(Debug)]
struct Table {
    server: SocketAddr,
    name: String,
}

impl Service {
    async fn named(test: &str) -> Option<Self> {
        let url = server(&format!("dynamodb::{test}"), "KAPELL_TEST_DYNAMODB")?;
        let place = url.trim_start_matches("http://").trim_end_matches('/');
        let place = place.parse().expect("KAPELL_TEST_DYNAMODB=http://IP:PORT");
        Some(Self(place, ALONE.lock().await))
    }

    fn table(&self) -> Table {
        Table { server: self.0, name: format!("suite-{:016x}", testing::drawn()) }
    }
}

impl Table {
    fn url(&self, at: SocketAddr) -> String {
        let name = &self.name;
        format!("dynamodb://local/{name}?endpoint=http://{at}&credentials=none&create=true")
    }
}

#[async_trait]
impl Place for Service {
    async fn fresh(&self, _: &How) -> Result<Arc<dyn Fresh>, Error> {
        Ok(Arc::new(self.table()))
    }
}

#[async_trait]
impl Fresh for Table {
    async fn client(&self, how: &How) -> Result<Arc<dyn Store>, Error> {
        self.client_through(self.server, how).await
    }

    fn server(&self) -> Option<SocketAddr> {
        Some(self.server)
    }

    async fn client_through(&self, at: SocketAddr, how: &How) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(DynamoDb::open(&self.url(at), how).await?))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ttl_storage_dynamodb() {
    let Some(service) = Service::named("ttl_storage_dynamodb").await else { return };
    passes(&service, testing::ttl_storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fenced_commits_dynamodb() {
    let Some(service) = Service::named("fenced_commits_dynamodb").await else { return };
    passes(&service, testing::fenced_commits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_dynamodb() {
    let Some(service) = Service::named("races_dynamodb").await else { return };
    passes(&service, testing::races).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_dynamodb() {
    let Some(service) = Service::named("histories_dynamodb").await else { return };
    passes(&service, testing::histories).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_dynamodb() {
    let Some(service) = Service::named("cut_connections_dynamodb").await else { return };
    passes(&service, testing::cut_connections).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scan_while_committing_dynamodb() {
    let Some(service) = Service::named("scan_while_committing_dynamodb").await else { return };
    passes(&service, testing::scan_while_committing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn skewed_clocks_dynamodb() {
    let Some(service) = Service::named("skewed_clocks_dynamodb").await else { return };
    passes(&service, testing::skewed_clocks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_dynamodb() {
    if let Some(child) = Child::of_env() {
        let store = DynamoDb::open(&child.url, &how()).await.expect("the parent's store");
        return child.contend(&store).await;
    }
    let Some(service) = Service::named("several_processes_dynamodb").await else { return };
    let table = service.table();
    let store = table.client(&how()).await.expect("a store");
    several("dynamodb::several_processes_dynamodb", table.url(table.server), store.as_ref()).await;
}
