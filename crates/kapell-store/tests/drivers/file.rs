use std::sync::Arc;

use async_trait::async_trait;
use kapell_store::file::{FileStore, Holder};
use kapell_store::testing::{self, Fresh, Place};
use kapell_store::{Error, How, Store};
use tempfile::TempDir;

use crate::group::passes;

#[derive(Debug)]
struct Directory;

#[derive(Debug)]
struct Fresher {
    store: Arc<FileStore>,
    _dir: TempDir,
}

#[async_trait]
impl Place for Directory {
    async fn fresh(&self, how: &How) -> Result<Arc<dyn Fresh>, Error> {
        let dir = tempfile::tempdir().expect("a directory for the store");
        let holder = Holder {
            pid: std::process::id(),
            address: None,
            command: "the suite".to_owned(),
            since_ms: 0,
        };
        let store = FileStore::open(&dir.path().join("store"), &holder, how)?;
        Ok(Arc::new(Fresher { store: Arc::new(store), _dir: dir }))
    }
}

#[async_trait]
impl Fresh for Fresher {
    async fn client(&self, _: &How) -> Result<Arc<dyn Store>, Error> {
        Ok(self.store.clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ttl_storage_file() {
    passes(&Directory, testing::ttl_storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fenced_commits_file() {
    passes(&Directory, testing::fenced_commits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_file() {
    passes(&Directory, testing::races).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_file() {
    passes(&Directory, testing::histories).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scan_while_committing_file() {
    passes(&Directory, testing::scan_while_committing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn skewed_clocks_file() {
    passes(&Directory, testing::skewed_clocks).await;
}
