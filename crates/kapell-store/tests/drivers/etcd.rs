use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use async_trait::async_trait;
use kapell_store::etcd::Etcd;
use kapell_store::testing::{self, Fresh, Place, how};
use kapell_store::{Error, How, Store};

use crate::children::{Child, several};
use crate::group::{passes, server};

/// An etcd server; every store has a root of its own there.
#[derive(Debug)]
struct Cluster(SocketAddr);

#[derive(Debug)]
struct Root {
    server: SocketAddr,
    name: String,
}

impl Cluster {
    fn named(test: &str) -> Option<Self> {
        let url = server(test, "KAPELL_TEST_ETCD")?;
        let place = url.trim_start_matches("http://").trim_end_matches('/');
        let mut found = place.to_socket_addrs().expect("KAPELL_TEST_ETCD=http://HOST:PORT");
        found.next().map(Self)
    }

    fn root(&self) -> Root {
        Root { server: self.0, name: format!("suite-{:016x}", testing::drawn()) }
    }
}

impl Root {
    fn url(&self, server: SocketAddr) -> String {
        format!("etcd://{server}/{}", self.name)
    }
}

#[async_trait]
impl Place for Cluster {
    async fn fresh(&self, _: &How) -> Result<Arc<dyn Fresh>, Error> {
        Ok(Arc::new(self.root()))
    }
}

#[async_trait]
impl Fresh for Root {
    async fn client(&self, how: &How) -> Result<Arc<dyn Store>, Error> {
        self.client_through(self.server, how).await
    }

    fn server(&self) -> Option<SocketAddr> {
        Some(self.server)
    }

    async fn client_through(&self, at: SocketAddr, how: &How) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Etcd::open(&self.url(at), how).await?))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ttl_storage_etcd() {
    let Some(cluster) = Cluster::named("ttl_storage_etcd") else { return };
    passes(&cluster, testing::ttl_storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fenced_commits_etcd() {
    let Some(cluster) = Cluster::named("fenced_commits_etcd") else { return };
    passes(&cluster, testing::fenced_commits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_etcd() {
    let Some(cluster) = Cluster::named("races_etcd") else { return };
    passes(&cluster, testing::races).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_etcd() {
    let Some(cluster) = Cluster::named("histories_etcd") else { return };
    passes(&cluster, testing::histories).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_etcd() {
    let Some(cluster) = Cluster::named("cut_connections_etcd") else { return };
    passes(&cluster, testing::cut_connections).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scan_while_committing_etcd() {
    let Some(cluster) = Cluster::named("scan_while_committing_etcd") else { return };
    passes(&cluster, testing::scan_while_committing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn skewed_clocks_etcd() {
    let Some(cluster) = Cluster::named("skewed_clocks_etcd") else { return };
    passes(&cluster, testing::skewed_clocks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_etcd() {
    if let Some(child) = Child::of_env() {
        let store = Etcd::open(&child.url, &how()).await.expect("the parent's store");
        return child.contend(&store).await;
    }
    let Some(cluster) = Cluster::named("several_processes_etcd") else { return };
    let root = cluster.root();
    let store = root.client(&how()).await.expect("a store");
    several("etcd::several_processes_etcd", root.url(root.server), store.as_ref()).await;
}
