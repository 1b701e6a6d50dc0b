mod clocks;
mod faults;
mod own;

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_store::cassandra::Cassandra;
use kapell_store::testing::{self, Fresh, Place, how};
use kapell_store::{Error, How, Store};
use tokio::sync::RwLock;

use crate::children::{Child, several};
use crate::group::{passes, server};

/// Connections that are cut are opened anew within a second, while nobody else keeps the server busy.
static QUIET: RwLock<()> = RwLock::const_new(());

/// A Cassandra server; all stores are in one keyspace there.
#[derive(Debug)]
struct Cluster {
    /// What stands before the host in a URL: scheme and login.
    login: String,
    server: SocketAddr,
}

#[derive(Debug)]
struct Named {
    login: String,
    server: SocketAddr,
    name: String,
}

impl Cluster {
    fn named(test: &str) -> Option<Self> {
        let url = server(test, "KAPELL_TEST_CASSANDRA")?;
        let (login, place) =
            url.rsplit_once('@').expect("KAPELL_TEST_CASSANDRA=cassandra://…@HOST:PORT");
        Some(Self { login: login.to_owned(), server: place.parse().expect("an address") })
    }

    fn store(&self) -> Named {
        let name = format!("{:016x}", testing::drawn());
        Named { login: self.login.clone(), server: self.server, name }
    }
}

impl Named {
    fn url(&self, at: SocketAddr) -> String {
        format!("{}@{at}/suite/{}?replication=1", self.login, self.name)
    }
}

#[async_trait]
impl Place for Cluster {
    async fn fresh(&self, _: &How) -> Result<Arc<dyn Fresh>, Error> {
        Ok(Arc::new(self.store()))
    }
}

#[async_trait]
impl Fresh for Named {
    async fn client(&self, how: &How) -> Result<Arc<dyn Store>, Error> {
        self.client_through(self.server, how).await
    }

    fn server(&self) -> Option<SocketAddr> {
        Some(self.server)
    }

    async fn client_through(&self, at: SocketAddr, how: &How) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Cassandra::open(&self.url(at), how).await?))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ttl_storage_cassandra() {
    let Some(cluster) = Cluster::named("ttl_storage_cassandra") else { return };
    let _beside_others = QUIET.read().await;
    passes(&cluster, testing::ttl_storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fenced_commits_cassandra() {
    let Some(cluster) = Cluster::named("fenced_commits_cassandra") else { return };
    let _beside_others = QUIET.read().await;
    passes(&cluster, testing::fenced_commits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_cassandra() {
    let Some(cluster) = Cluster::named("races_cassandra") else { return };
    let _beside_others = QUIET.read().await;
    passes(&cluster, testing::races).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_cassandra() {
    let Some(cluster) = Cluster::named("histories_cassandra") else { return };
    let _beside_others = QUIET.read().await;
    passes(&cluster, testing::histories).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_cassandra() {
    let Some(cluster) = Cluster::named("cut_connections_cassandra") else { return };
    let _alone = QUIET.write().await;
    passes(&cluster, testing::cut_connections).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scan_while_committing_cassandra() {
    let Some(cluster) = Cluster::named("scan_while_committing_cassandra") else { return };
    let _beside_others = QUIET.read().await;
    passes(&cluster, testing::scan_while_committing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn skewed_clocks_cassandra() {
    let Some(cluster) = Cluster::named("skewed_clocks_cassandra") else { return };
    let _beside_others = QUIET.read().await;
    passes(&cluster, testing::skewed_clocks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_cassandra() {
    if let Some(child) = Child::of_env() {
        let store = Cassandra::open(&child.url, &how()).await.expect("the parent's store");
        return child.contend(&store).await;
    }
    let Some(cluster) = Cluster::named("several_processes_cassandra") else { return };
    let named = cluster.store();
    let store = named.client(&how()).await.expect("a store");
    several("cassandra::several_processes_cassandra", named.url(named.server), store.as_ref())
        .await;
}
