//! What the leader keeps of secrets: one entry of the store each, sealed by the cluster's key.
//!
//! An entry is put in the place of exactly the one that was read before, so nothing here needs a fence: of two who set
//! a secret at once, the last one wins, and nobody ever sees half of one. Nothing is kept in memory.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::secrets::Due;
use kapell_core::board::{Domain, SecretName};
use kapell_core::seams::{Clock, Timestamp};
use kapell_core::secret::{self, Secret};
use kapell_store::model::{Entry, Key, Write};
use kapell_store::{Error as StoreError, Store, keys};
use serde::{Deserialize, Serialize};

use super::key::{BadKey, ClusterKey};
use super::seal::{Place, Seal};

/// How often a write is tried that lost a race or whose outcome is unknown, and how long it is waited in between.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    #[error("{}", .0.join("; "))]
    Faults(Vec<String>),
    #[error("there is no secret `{name}` in domain `{domain}`")]
    NoSuchSecret { domain: Domain, name: SecretName },
    /// Work that refers to it cannot start.
    #[error("{}", secret::not_set(domain, name))]
    NotSet { domain: Domain, name: SecretName },
    #[error(
        "secret \"{name}\" of domain \"{domain}\" was sealed by another cluster key, or is damaged: set it again (kapell \
         secret set {name} --domain {domain}), or give the hosts the `cluster.key` that they had then"
    )]
    Sealed { domain: Domain, name: SecretName },
    #[error("the value could not be sealed: this machine has no random numbers")]
    Unsealable,
    #[error("others set or remove it all the time: try again")]
    Contended,
    #[error("the store did not take it")]
    Store(#[from] StoreError),
}

/// A secret as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSecret {
    pub domain: Domain,
    pub name: SecretName,
    pub version: u64,
    pub changed_at: Timestamp,
}

/// What stands before the sealed value, in a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    version: u64,
    changed_at: Timestamp,
}

/// All secrets of a store, for a host that has the cluster's key.
pub struct Secrets {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    seal: Seal,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        key: &ClusterKey,
    ) -> Result<Self, BadKey> {
        Ok(Self { store, clock, seal: Seal::new(key).map_err(|_| BadKey)? })
    }

    /// Sets a secret, whatever it was before. When this returns it is kept.
    pub async fn set(
        &self,
        domain: &Domain,
        name: &SecretName,
        value: &Secret,
    ) -> Result<ListedSecret, SecretsError> {
        let faults = secret::faults(domain, name, value);
        if !faults.is_empty() {
            return Err(SecretsError::Faults(faults));
        }
        let key = keys::secret(domain.as_str(), name.as_str());
        let mut ours: Vec<(Vec<u8>, Head)> = Vec::new();
        let mut failed = SecretsError::Contended;
        for _ in 0..TRIES {
            let entry = self.store.read(&key).await?;
            let before = entry.held.as_ref().map(|held| held.value.as_slice());
            // What was told to have failed may have been done all the same.
            if let Some((_, head)) = ours.iter().find(|(value, _)| Some(value.as_slice()) == before)
            {
                return Ok(listed(domain, name, *head));
            }
            let version = before.and_then(parse).map_or(0, |(head, _)| head.version) + 1;
            let head = Head { version, changed_at: self.clock.wall() };
            let sealed = self.seal.close(Place { domain, name, version }, value);
            let new = encode(head, &sealed.map_err(|_| SecretsError::Unsealable)?);
            match self.put(&key, &entry, &new).await {
                Ok(Write::Done) => return Ok(listed(domain, name, head)),
                Ok(Write::Lost) => failed = SecretsError::Contended,
                Err(error) if error.may_pass() => {
                    tracing::warn!(%key, %error, "a secret could not be kept; trying again");
                    failed = error.into();
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
            ours.push((new, head));
        }
        Err(failed)
    }

    async fn put(&self, key: &Key, over: &Entry, new: &[u8]) -> Result<Write, StoreError> {
        match &over.held {
            Some(held) => self.store.compare_and_swap(key, &held.value, new, None).await,
            None => self.store.insert_if_absent(key, over.generation, new, None).await,
        }
    }

    /// Removes a secret. When this returns it is gone.
    pub async fn remove(&self, domain: &Domain, name: &SecretName) -> Result<(), SecretsError> {
        let key = keys::secret(domain.as_str(), name.as_str());
        let (mut failed, mut unsure) = (SecretsError::Contended, false);
        for _ in 0..TRIES {
            let Some(held) = self.store.read(&key).await?.held else {
                let none =
                    SecretsError::NoSuchSecret { domain: domain.clone(), name: name.clone() };
                return if unsure { Ok(()) } else { Err(none) };
            };
            match self.store.compare_and_delete(&key, &held.value).await {
                Ok(Write::Done) => return Ok(()),
                Ok(Write::Lost) => {}
                Err(error) if error.may_pass() => {
                    (failed, unsure) = (error.into(), true);
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(failed)
    }

    /// All that are there, by domain and name.
    pub async fn list(&self) -> Result<Vec<ListedSecret>, StoreError> {
        let entries = self.store.list().await?;
        let found = entries.into_iter().filter_map(|(key, entry)| {
            let (domain, name) = keys::secret_of(&key)?;
            let (head, _) = parse(&entry.held?.value)?;
            Some(listed(&domain.into(), &name.into(), head))
        });
        Ok(found.collect())
    }

    /// The values of what a container is to get.
    pub async fn open(&self, due: &Due) -> Result<Vec<(SecretName, Secret)>, SecretsError> {
        let domain = &due.domain;
        let mut all = Vec::new();
        for name in &due.names {
            let key = keys::secret(domain.as_str(), name.as_str());
            let Some(held) = self.store.read(&key).await?.held else {
                return Err(SecretsError::NotSet { domain: domain.clone(), name: name.clone() });
            };
            let opened = parse(&held.value).and_then(|(head, sealed)| {
                self.seal.open(Place { domain, name, version: head.version }, sealed).ok()
            });
            let Some(value) = opened else {
                return Err(SecretsError::Sealed { domain: domain.clone(), name: name.clone() });
            };
            all.push((name.clone(), value));
        }
        Ok(all)
    }
}

fn listed(domain: &Domain, name: &SecretName, head: Head) -> ListedSecret {
    let Head { version, changed_at } = head;
    ListedSecret { domain: domain.clone(), name: name.clone(), version, changed_at }
}

fn encode(head: Head, sealed: &[u8]) -> Vec<u8> {
    // Two numbers with names can always be written.
    let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
    bytes.push(b'\n');
    bytes.extend_from_slice(sealed);
    bytes
}

fn parse(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let head = serde_json::from_slice(&bytes[..end]).ok()?;
    Some((head, &bytes[end + 1..]))
}
