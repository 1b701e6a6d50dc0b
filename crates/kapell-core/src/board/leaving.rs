//! What is there and not wanted.

use super::actual::{ActualLrp, LrpKey};
use super::ids::ProcessGuid;
use super::record::RecordKey;

/// An instance or a twin that is not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Leaving {
    pub(super) index: u32,
    pub(super) evacuating: bool,
}

impl Leaving {
    pub(super) const fn of(lrp: &ActualLrp) -> Self {
        Self { index: lrp.index, evacuating: lrp.evacuating }
    }

    pub(super) fn key(self, guid: &ProcessGuid) -> RecordKey {
        let key = LrpKey { process_guid: guid.clone(), index: self.index };
        if self.evacuating { RecordKey::Evacuating(key) } else { RecordKey::Instance(key) }
    }
}
