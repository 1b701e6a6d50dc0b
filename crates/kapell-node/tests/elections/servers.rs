//! The suite on real servers, where there are any.

use std::sync::Arc;

use async_trait::async_trait;
use kapell_core::seams::{Clock, Ids as _};
use kapell_node::system::{SystemClock, SystemIds};
use kapell_node::testing::Stores;
use kapell_store::Store;
use kapell_store::testing::skip;

/// The address of a server for tests; without one the test is reported as skipped.
pub(crate) fn server(test: &str, variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok().filter(|url| !url.is_empty());
    if url.is_none() {
        skip(test, &format!("{variable} is not set"));
    }
    url
}

/// A name that no other run has.
pub(crate) fn unique() -> String {
    format!("t{:016x}", SystemIds.draw())
}

/// Opens a client of the store with a name; makes the store if there is none.
#[async_trait]
pub(crate) trait Open: std::fmt::Debug + Send + Sync {
    async fn open(&self, store: &str) -> Arc<dyn Store>;
}

/// Stores on a server that other runs use too.
#[derive(Debug)]
pub(crate) struct Server<T>(pub(crate) T);

#[async_trait]
impl<T: Open> Stores for Server<T> {
    async fn open(&self, store: &str) -> Arc<dyn Store> {
        self.0.open(store).await
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }
}
