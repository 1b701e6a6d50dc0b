//! What the leader keeps of tokens: which were made, and which count no more.
//!
//! Each is an entry of its own in the store, put there by one conditional write, so nothing here needs a fence: making
//! and ending a token are final, whoever does it, and of two who end one, one is told that the other was faster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapell_core::access::{Claims, Ended, How, Invalid, Issued, Purpose, TokenId};
use kapell_core::board::{CellId, Domain};
use kapell_core::seams::{Clock, Ids};
use kapell_store::model::{Generation, Key, Write};
use kapell_store::{Error as StoreError, Store, keys};
use serde::de::DeserializeOwned;

use super::key::{BadKey, ClusterKey};
use super::secrets::Secrets;

/// How often something of unknown outcome is tried again, and how long it is waited in between.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("{}", .0.join("; "))]
    Faults(Vec<String>),
    #[error("there is no token `{0}`")]
    NoSuchToken(TokenId),
    #[error("the store did not take it")]
    Store(#[from] StoreError),
}

/// A token that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub purpose: Purpose,
    /// None: all.
    pub domains: Option<BTreeSet<Domain>>,
    pub name: String,
    pub ttl: Duration,
    pub cell_id: Option<CellId>,
}

/// A token as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub issued: Issued,
    pub ended: Option<Ended>,
}

/// All that is known of tokens. It is true for as long as its holder leads.
pub struct Ledger {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    issued: BTreeMap<TokenId, Issued>,
    ended: BTreeMap<TokenId, Ended>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Ledger {
    /// Reads what the store has, and drops what nobody can ask for any more.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self, StoreError> {
        let now = clock.wall();
        let mut known = Known::default();
        for (key, entry) in store.list().await? {
            let Some(held) = entry.held else { continue };
            let over = if let Some(id) = keys::token_of(&key).and_then(TokenId::parse) {
                match read::<Issued>(&key, &held.value) {
                    Some(issued) if issued.claims.expires_at > now => {
                        known.issued.insert(id, issued);
                        false
                    }
                    Some(_) => true,
                    None => false,
                }
            } else if let Some(id) = keys::token_end_of(&key).and_then(TokenId::parse) {
                match read::<Ended>(&key, &held.value) {
                    Some(ended) if ended.expires_at > now => {
                        known.ended.insert(id, ended);
                        false
                    }
                    Some(_) => true,
                    None => false,
                }
            } else {
                false
            };
            if over && let Err(error) = store.compare_and_delete(&key, &held.value).await {
                tracing::warn!(%key, %error, "what is left of a token could not be removed");
            }
        }
        Ok(Self { store, clock, ids, known: Mutex::new(known) })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The secrets of the same store.
    pub fn secrets(&self, key: &ClusterKey) -> Result<Secrets, BadKey> {
        Secrets::new(Arc::clone(&self.store), Arc::clone(&self.clock), key)
    }

    /// Whether a token that was signed and is in time counts.
    pub fn judge(&self, claims: &Claims) -> Result<(), Invalid> {
        claims.in_time(self.clock.wall())?;
        let known = self.known();
        claims.stands(known.issued.get(&claims.id), known.ended.get(&claims.id))
    }

    /// Those that are in time, by id.
    pub fn list(&self) -> Vec<Listed> {
        let now = self.clock.wall();
        let known = self.known();
        let in_time = known.issued.values().filter(|it| it.claims.expires_at > now);
        in_time
            .map(|issued| Listed {
                issued: issued.clone(),
                ended: known.ended.get(&issued.claims.id).cloned(),
            })
            .collect()
    }

    /// Makes a token. When this returns it is kept.
    pub async fn issue(&self, wanted: Wanted) -> Result<Issued, LedgerError> {
        let now = self.clock.wall();
        let Wanted { purpose, domains, name, ttl, cell_id } = wanted;
        let id = TokenId::drawn(self.ids.draw());
        let expires_at = now.after(ttl);
        let claims = Claims { id: id.clone(), purpose, domains, name, expires_at, cell_id };
        let faults = claims.faults(now);
        if !faults.is_empty() {
            return Err(LedgerError::Faults(faults));
        }
        let issued = Issued { claims, created_at: now };
        let value = serde_json::to_vec(&issued).unwrap_or_default();
        // An id that was drawn before is not handed out a second time.
        if !self.put_once(&keys::token(id.as_str()), &value).await? {
            return Err(LedgerError::Faults(vec!["the id was drawn before: try again".to_owned()]));
        }
        self.known().issued.insert(id, issued.clone());
        Ok(issued)
    }

    /// Ends a token for good. When this returns it counts no more; false if it had ended before.
    pub async fn end(&self, id: &TokenId, how: How) -> Result<bool, LedgerError> {
        let expires_at = {
            let known = self.known();
            let issued = known.issued.get(id);
            issued.ok_or_else(|| LedgerError::NoSuchToken(id.clone()))?.claims.expires_at
        };
        let ended = Ended { at: self.clock.wall(), how, expires_at, mark: self.ids.draw() };
        let key = keys::token_end(id.as_str());
        let value = serde_json::to_vec(&ended).unwrap_or_default();
        let first = self.put_once(&key, &value).await?;
        if first {
            self.known().ended.insert(id.clone(), ended);
        } else {
            // It ended, whatever is left of how; so it counts no more here either.
            let held = self.store.read(&key).await?.held;
            let before = held.and_then(|held| read::<Ended>(&key, &held.value)).unwrap_or(ended);
            self.known().ended.entry(id.clone()).or_insert(before);
        }
        Ok(first)
    }

    /// Puts what was never there. What is told to have failed may have been done all the same: then it is looked at, and
    /// tried again if nothing was.
    async fn put_once(&self, key: &Key, value: &[u8]) -> Result<bool, StoreError> {
        let mut tries = 0;
        let mut unsure = false;
        loop {
            match self.store.insert_if_absent(key, Generation(0), value, None).await {
                Ok(Write::Done) => return Ok(true),
                Ok(Write::Lost) if unsure => {
                    let held = self.store.read(key).await?.held;
                    return Ok(held.is_some_and(|held| held.value == value));
                }
                Ok(Write::Lost) => return Ok(false),
                Err(error) if error.may_pass() && tries < TRIES => {
                    (tries, unsure) = (tries + 1, true);
                    tracing::warn!(%key, %error, "a token could not be noted; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What cannot be read stays as it is: the token that it is about does not count.
fn read<T: DeserializeOwned>(key: &Key, value: &[u8]) -> Option<T> {
    match serde_json::from_slice(value) {
        Ok(read) => Some(read),
        Err(error) => {
            tracing::warn!(%key, %error, "no record of a token");
            None
        }
    }
}
