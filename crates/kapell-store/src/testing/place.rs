use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Error;
use crate::open::How;
use crate::store::Store;

/// Where stores can be made: what a driver brings to the suite.
#[async_trait]
pub trait Place: fmt::Debug + Send + Sync {
    /// Makes a store that is empty and that nobody else knows of.
    async fn fresh(&self, how: &How) -> Result<Arc<dyn Fresh>, Error>;
}

/// A store that was empty when it was made.
#[async_trait]
pub trait Fresh: fmt::Debug + Send + Sync {
    /// Opens one more client, as another host would.
    ///
    /// A store that one process holds alone gives out itself, and `how` is the one that it was
    /// made with: it judges by one clock, so its clients have no clocks to differ.
    async fn client(&self, how: &How) -> Result<Arc<dyn Store>, Error>;

    /// Where its server listens, if it has one.
    fn server(&self) -> Option<SocketAddr> {
        None
    }

    /// Opens a client that takes `through` for the server. Asked only if there is a server.
    async fn client_through(
        &self,
        through: SocketAddr,
        how: &How,
    ) -> Result<Arc<dyn Store>, Error> {
        let _ = through;
        self.client(how).await
    }

    /// Runs whatever removes expired entries now and then, whether it is due or not. The suite
    /// cannot wait an hour to learn what it does to an entry that was renewed.
    async fn sweep(&self) -> Result<(), Error> {
        Ok(())
    }
}
