//! What this process has seen of Leases, and when: by that an entry runs out.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kapell_core::seams::Moment;

use super::stand::Stand;
use crate::model::{Entry, Generation, Held, Key};

#[derive(Debug, Default)]
pub(super) struct Sights {
    entries: BTreeMap<Key, Sight>,
    /// By the names of Leases.
    pub(super) leases: BTreeMap<String, Known>,
}

/// A Lease as it was last seen; none if it was not there.
#[derive(Debug, Clone)]
pub(super) struct Known(pub(super) Option<Lease>);

#[derive(Debug)]
struct Sight {
    version: String,
    /// When this version was first seen. The change itself was earlier.
    since: Moment,
    highest: Generation,
}

impl Sights {
    /// What an entry is, now that its Lease looks like this.
    pub(super) fn see(&mut self, key: &Key, stand: &Stand, now: Moment) -> Entry {
        let new =
            || Sight { version: stand.version.clone(), since: now, highest: Generation::default() };
        let sight = self.entries.entry(key.clone()).or_insert_with(new);
        if sight.version != stand.version {
            sight.version.clone_from(&stand.version);
            sight.since = now;
        }
        // Somebody may have put back an old one.
        sight.highest = sight.highest.max(stand.generation);
        let left = |ttl: Duration| ttl.saturating_sub(now.since(sight.since));
        let remaining = stand.ttl.map(left);
        let value = stand.value.clone().filter(|_| remaining != Some(Duration::ZERO));
        Entry { generation: sight.highest, held: value.map(|value| Held { value, remaining }) }
    }

    /// The highest generation that was seen of a key.
    pub(super) fn highest(&self, key: &Key) -> Generation {
        self.entries.get(key).map(|sight| sight.highest).unwrap_or_default()
    }
}
