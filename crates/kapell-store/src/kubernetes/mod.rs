//! `kubernetes:`: elections by Leases of a Kubernetes cluster, and nothing else.
//!
//! A Lease says who holds a key and for how long, not since when: whose clock would that be? An entry has run out once the
//! Lease has stood unchanged for its whole time to live, by the clock of whoever looks. So a newcomer waits for all of it,
//! and no two clocks are ever compared.

mod address;
mod failure;
mod leases;
mod seen;
mod shards;
mod stand;
#[cfg(test)]
mod tests;
mod ttl;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kapell_core::seams::Clock;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use self::address::Address;
use self::failure::Failure;
use self::seen::Sights;
use crate::error::Error;
use crate::open::How;
use crate::store::Store;

/// Elections on coordination/v1 Leases, for programs that embed them: it holds no records.
///
/// `kubernetes://NAMESPACE[/NAME][?kubeconfig=FILE&context=NAME]`. Leases are called by `NAME` (`kapell`) and their key.
/// Without `kubeconfig` the cluster is found as other tools find theirs: `KUBECONFIG`, the file in the home directory, or
/// the account of the pod. It needs `get`, `list`, `watch`, `create` and `update` of `leases.coordination.k8s.io`.
pub struct Leases {
    /// As messages call it.
    name: String,
    api: Api<Lease>,
    /// What the Leases of this store are called by.
    prefix: String,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    sights: Mutex<Sights>,
    watches: Mutex<JoinSet<()>>,
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leases").field(&self.name).finish()
    }
}

impl Store for Leases {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Leases {
    /// Opens it. There is nothing to be laid out.
    pub async fn open(url: &str, how: &How) -> Result<Self, Error> {
        let address: Address = url.parse()?;
        let name = format!("kubernetes://{}/{}", address.namespace, address.name);
        let unusable = |why: String| Error::BadUrl { url: name.clone(), why };
        let mut config = address.config().await.map_err(unusable)?;
        config.connect_timeout = Some(how.timeout);
        // An answer that is lost is unknown to whoever asked: nothing is sent twice.
        config.default_retry = false;
        // Another driver brings a second provider of cryptography, and then the client of clusters cannot choose. One that was
        // chosen before stays.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let client = Client::try_from(config).map_err(|error| unusable(error.to_string()))?;
        let leases = Self {
            name,
            api: Api::namespaced(client, &address.namespace),
            prefix: address.name,
            timeout: how.timeout,
            clock: Arc::clone(&how.clock),
            sights: Mutex::default(),
            watches: Mutex::default(),
        };
        let few = ListParams::default().limit(1);
        leases.within("open", async { Ok(leases.api.list(&few).await?) }).await?;
        Ok(leases)
    }

    /// No call takes longer than it was said.
    async fn within<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Error> {
        match timeout(self.timeout, answer).await {
            Ok(answer) => answer.map_err(|failure| failure.of(&self.name, call, self.timeout)),
            Err(_) => Err(Error::Timeout { store: self.name.clone(), call, limit: self.timeout }),
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        while watches.try_join_next().is_some() {}
        watches.spawn(task)
    }
}
