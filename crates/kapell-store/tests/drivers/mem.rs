use std::sync::Arc;

use async_trait::async_trait;
use kapell_store::mem::Mem;
use kapell_store::testing::{self, Fresh, Place};
use kapell_store::{Error, How, Store};

use crate::group::passes;

#[derive(Debug)]
struct Memory;

#[derive(Debug)]
struct Fresher(Arc<Mem>);

#[async_trait]
impl Place for Memory {
    async fn fresh(&self, how: &How) -> Result<Arc<dyn Fresh>, Error> {
        Ok(Arc::new(Fresher(Arc::new(Mem::new(how.clock.clone())))))
    }
}

#[async_trait]
impl Fresh for Fresher {
    async fn client(&self, _: &How) -> Result<Arc<dyn Store>, Error> {
        Ok(self.0.clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ttl_storage_mem() {
    passes(&Memory, testing::ttl_storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fenced_commits_mem() {
    passes(&Memory, testing::fenced_commits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_mem() {
    passes(&Memory, testing::races).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_mem() {
    passes(&Memory, testing::histories).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scan_while_committing_mem() {
    passes(&Memory, testing::scan_while_committing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn skewed_clocks_mem() {
    passes(&Memory, testing::skewed_clocks).await;
}
