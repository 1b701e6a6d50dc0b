//! The ledger as a service, and the check that all hosts of a store have one key.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use kapell_core::causes::chain;
use kapell_core::seams::{Clock, Ids};
use kapell_store::{Error as StoreError, Store, keys};

use super::key::ClusterKey;
use super::ledger::Ledger;
use crate::conductor::{Failure, Running, Service, Stage};

/// Why a host may not work on a store.
#[derive(Debug, thiserror::Error)]
pub enum Disagreement {
    #[error(
        "the hosts of {store} have another cluster key (fingerprint {theirs}, ours is {ours}): copy the file \
         `cluster.key` from the state directory of one of them to this host's, readable by its user only"
    )]
    Key { store: String, ours: String, theirs: String },
    #[error("the cluster key could not be compared with that of other hosts")]
    Store(#[from] StoreError),
}

/// Makes sure that this host has the key of all others. The first one decides which that is.
pub async fn agree(store: &dyn Store, key: &ClusterKey) -> Result<(), Disagreement> {
    let ours = key.fingerprint();
    loop {
        let entry = store.read(&keys::cluster()).await?;
        if let Some(held) = entry.held {
            if held.value == ours.as_bytes() {
                return Ok(());
            }
            let theirs = String::from_utf8_lossy(&held.value).into_owned();
            return Err(Disagreement::Key { store: store.name().to_owned(), ours, theirs });
        }
        let put = store
            .insert_if_absent(&keys::cluster(), entry.generation, ours.as_bytes(), None)
            .await?;
        if put.is_done() {
            return Ok(());
        }
    }
}

/// Where the ledger is to be found while this host leads. Cheap to clone; all clones are the same place.
#[derive(Debug, Clone, Default)]
pub struct AccessSlot(Arc<RwLock<Option<Arc<Ledger>>>>);

impl AccessSlot {
    pub fn get(&self) -> Option<Arc<Ledger>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows it for as long as the guard lives.
    pub fn show(&self, ledger: Arc<Ledger>) -> Shown {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&ledger));
        Shown { slot: self.clone(), ledger }
    }
}

/// Takes the ledger away again.
#[derive(Debug)]
pub struct Shown {
    slot: AccessSlot,
    ledger: Arc<Ledger>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        let mut shown = self.slot.0.write().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref().is_some_and(|it| Arc::ptr_eq(it, &self.ledger)) {
            *shown = None;
        }
    }
}

/// Knows which tokens count, for as long as its host leads.
#[derive(Debug)]
pub struct AccessService {
    pub key: ClusterKey,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub slot: AccessSlot,
}

#[async_trait]
impl Service for AccessService {
    fn name(&self) -> &'static str {
        "access"
    }

    async fn start(&self, stage: Stage) -> Result<Running, Failure> {
        let store = Arc::clone(stage.tenure.store());
        agree(&*store, &self.key).await.map_err(|why| match why {
            Disagreement::Key { .. } => Failure::Lasting(why.to_string()),
            Disagreement::Store(_) => Failure::Passing(chain(&why)),
        })?;
        let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
        let ledger = Ledger::open(store, clock, ids).await;
        let ledger = ledger.map_err(|error| {
            Failure::Passing(format!("the tokens could not be read: {}", chain(&error)))
        })?;
        let shown = self.slot.show(Arc::new(ledger));
        Ok(Running::new(async move {
            stage.stop.cancelled().await;
            drop(shown);
            Ok(())
        }))
    }
}
