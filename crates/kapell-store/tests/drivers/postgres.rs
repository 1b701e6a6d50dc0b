use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_store::postgres::Postgres;
use kapell_store::testing::{self, Fresh, Place, how};
use kapell_store::{Error, How, Store};
use url::Url;

use crate::children::{Child, several};
use crate::group::{passes, server};

/// A PostgreSQL server; every store has a schema of its own there.
#[derive(Debug)]
struct Database(Url);

#[derive(Debug)]
struct Schema {
    url: Url,
    server: SocketAddr,
}

impl Database {
    fn named(test: &str) -> Option<Self> {
        let url = server(test, "KAPELL_TEST_POSTGRES")?;
        Some(Self(url.parse().expect("KAPELL_TEST_POSTGRES=postgres://…")))
    }

    fn schema(&self) -> Schema {
        let found = self.0.socket_addrs(|| Some(5432)).expect("the server's address");
        let mut url = self.0.clone();
        let name = format!("suite_{:016x}", testing::drawn());
        url.query_pairs_mut().append_pair("schema", &name);
        Schema { url, server: *found.first().expect("the server's address") }
    }
}

impl Schema {
    fn url(&self, at: SocketAddr) -> String {
        let mut url = self.url.clone();
        url.set_host(Some(&at.ip().to_string())).expect("a host");
        url.set_port(Some(at.port())).expect("a port");
        url.into()
    }
}

#[async_trait]
impl Place for Database {
    async fn fresh(&self, _: &How) -> Result<Arc<dyn Fresh>, Error> {
        Ok(Arc::new(self.schema()))
    }
}

#[async_trait]
impl Fresh for Schema {
    async fn client(&self, how: &How) -> Result<Arc<dyn Store>, Error> {
        self.client_through(self.server, how).await
    }

    fn server(&self) -> Option<SocketAddr> {
        Some(self.server)
    }

    async fn client_through(&self, at: SocketAddr, how: &How) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Postgres::open(&self.url(at), how).await?))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ttl_storage_postgres() {
    let Some(database) = Database::named("ttl_storage_postgres") else { return };
    passes(&database, testing::ttl_storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fenced_commits_postgres() {
    let Some(database) = Database::named("fenced_commits_postgres") else { return };
    passes(&database, testing::fenced_commits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_postgres() {
    let Some(database) = Database::named("races_postgres") else { return };
    passes(&database, testing::races).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_postgres() {
    let Some(database) = Database::named("histories_postgres") else { return };
    passes(&database, testing::histories).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_postgres() {
    let Some(database) = Database::named("cut_connections_postgres") else { return };
    passes(&database, testing::cut_connections).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scan_while_committing_postgres() {
    let Some(database) = Database::named("scan_while_committing_postgres") else { return };
    passes(&database, testing::scan_while_committing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn skewed_clocks_postgres() {
    let Some(database) = Database::named("skewed_clocks_postgres") else { return };
    passes(&database, testing::skewed_clocks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_postgres() {
    if let Some(child) = Child::of_env() {
        let store = Postgres::open(&child.url, &how()).await.expect("the parent's store");
        return child.contend(&store).await;
    }
    let Some(database) = Database::named("several_processes_postgres") else { return };
    let schema = database.schema();
    let store = schema.client(&how()).await.expect("a store");
    several("postgres::several_processes_postgres", schema.url(schema.server), store.as_ref())
        .await;
}
