//! Why a container may be stopped.

use super::actual::{ActualLrp, ActualState, InstanceKey, LrpKey};
use super::ids::Domain;
use super::records::Records;

/// What the records say of a container that was to be stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// It is wanted, or nobody knows whether it is.
    None,
    /// Somebody gave it up, by scaling down or deleting.
    GivenUp,
    /// The instance runs as another container.
    Elsewhere,
    /// Nobody wants it, and whoever owns this domain must vouch for that.
    Extra(Domain),
}

impl Records {
    /// Why a container may be stopped, if a record still names it.
    pub fn ground(&self, key: &LrpKey, instance: &InstanceKey) -> Option<Ground> {
        let is_it = |lrp: &&ActualLrp| lrp.is_of(instance);
        if let Some(lrp) = self.instances.get(key).filter(is_it) {
            return Some(self.ground_of(lrp));
        }
        let twin = self.evacuating.get(key).filter(is_it)?;
        let runs = |lrp: &ActualLrp| lrp.state == ActualState::Running;
        let is_elsewhere = self.instances.get(key).is_some_and(runs);
        Some(if is_elsewhere { Ground::Elsewhere } else { self.ground_of(twin) })
    }

    fn ground_of(&self, lrp: &ActualLrp) -> Ground {
        let guid = &lrp.process_guid;
        if self.desired.get(guid).is_some_and(|desired| desired.has_given_up(lrp)) {
            Ground::GivenUp
        } else if self.wants(lrp) || self.is_forgotten(guid) {
            Ground::None
        } else {
            Ground::Extra(lrp.domain.clone())
        }
    }
}
