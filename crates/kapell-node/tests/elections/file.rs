//! Elections over the embedded store, as over any other: by leases in its own log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_node::system::SystemClock;
use kapell_node::testing::{Speed, elections_test_suite};
use kapell_store::file::{FileStore, Holder};
use kapell_store::{How, Store};

use crate::servers::{Open, Server};

/// One process at a time can have a store open, so all clients of one share it.
#[derive(Debug)]
struct Files {
    dir: tempfile::TempDir,
    open: Mutex<HashMap<String, Arc<FileStore>>>,
}

#[async_trait]
impl Open for Files {
    async fn open(&self, store: &str) -> Arc<dyn Store> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.dir.path().join(store);
        let opened = open.entry(store.to_owned()).or_insert_with(|| {
            let clock = Arc::new(SystemClock);
            let how = How { create: true, timeout: Duration::from_secs(5), clock };
            let holder = Holder {
                pid: std::process::id(),
                address: None,
                command: "test".to_owned(),
                since_ms: 0,
            };
            Arc::new(FileStore::open(&path, &holder, &how).expect("a store"))
        });
        Arc::<FileStore>::clone(opened)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn elections_by_driver_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let files = Files { dir, open: Mutex::default() };
    elections_test_suite(Arc::new(Server(files)), Speed::REAL).await;
}
