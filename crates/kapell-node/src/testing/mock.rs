use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kapell_core::seams::Clock;
use kapell_store::Store;
use kapell_store::mem::Mem;

use super::suite::Stores;

/// The seed's `ttlStorageMock`: stores in memory whose time the test owns.
#[derive(Debug)]
pub struct TtlStorageMock {
    clock: Arc<dyn Clock>,
    stores: Mutex<BTreeMap<String, Arc<Mem>>>,
}

impl TtlStorageMock {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, stores: Mutex::default() }
    }
}

#[async_trait]
impl Stores for TtlStorageMock {
    async fn open(&self, store: &str) -> Arc<dyn Store> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Mem::new(Arc::clone(&self.clock)));
        Arc::clone(stores.entry(store.to_owned()).or_insert_with(new)) as Arc<dyn Store>
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }
}
