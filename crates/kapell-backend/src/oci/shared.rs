//! What all containers of an agent share.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cgroups::Hierarchies;
use super::kept::Kept;
use super::network::{self, Wires};
use super::realm::Claim;
use super::rules::Published;
use super::slot::{Realm, SLOTS, Slot};
use crate::containers::Error;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) runc: PathBuf,
    pub(super) claim: Claim,
    pub(super) realm: Realm,
    /// None for the network of the machine.
    pub(super) wires: Option<Wires>,
    pub(super) hierarchies: Hierarchies,
    /// All containers of this agent.
    pub(super) group: String,
    pub(super) known: Mutex<Known>,
    /// Nothing is left to give back.
    pub(super) left: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Known {
    pub(super) containers: BTreeMap<String, Arc<Kept>>,
    /// What could not be made, as long as something of it may be left.
    pub(super) unmade: BTreeMap<String, (Slot, Published)>,
    /// Those that are being made, too.
    pub(super) slots: Vec<Slot>,
    pub(super) last: Slot,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            containers: BTreeMap::new(),
            unmade: BTreeMap::new(),
            slots: Vec::new(),
            last: Slot(SLOTS - 1),
        }
    }
}

impl Shared {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of all containers that something may be left of.
    pub(super) fn guids(&self) -> Vec<String> {
        let known = self.known();
        known.containers.keys().chain(known.unmade.keys()).cloned().collect()
    }

    pub(super) fn take_slot(&self, guid: &str) -> Result<Slot, Error> {
        let mut known = self.known();
        if known.containers.contains_key(guid) {
            let what = format!("there is a container `{guid}` already");
            return Err(Error::Io { what, source: io::ErrorKind::AlreadyExists.into() });
        }
        let slot = Slot::next_free(known.last, |slot| known.slots.contains(&slot));
        let slot = slot.ok_or_else(|| Error::Io {
            what: format!("this agent has {SLOTS} containers already"),
            source: io::ErrorKind::QuotaExceeded.into(),
        })?;
        known.last = slot;
        known.slots.push(slot);
        Ok(slot)
    }

    /// Removes what belongs to no container, after a restart.
    pub(super) fn tidy(&self) -> Result<(), Error> {
        let (slots, guids, published) = {
            let known = self.known();
            let guids: Vec<String> = known.containers.keys().cloned().collect();
            let kept = known.containers.values();
            let published: Vec<_> = kept.map(|kept| kept.published(self.realm)).collect();
            (known.slots.clone(), guids, published)
        };
        if let Some(wires) = &self.wires {
            wires.publish_all(&published)?;
            wires.cut_strays(|slot| slots.contains(&slot))?;
        }
        let is_known = |guid: &str| guids.iter().any(|known| known == guid);
        self.hierarchies.remove_strays(&self.group, is_known);
        Ok(())
    }

    /// Leaves nothing behind, unless there are containers. Only the first time: what bears our number later may be
    /// the next agent's.
    pub(super) fn leave(&self) {
        if self.left.swap(true, Ordering::SeqCst) || !self.known().slots.is_empty() {
            return;
        }
        self.hierarchies.remove_if_empty(&self.group);
        self.claim.release(|is_last| {
            if let Some(wires) = &self.wires {
                wires.close();
            }
            if is_last {
                network::restore_forwarding(&self.claim.claims);
            }
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.leave();
    }
}
