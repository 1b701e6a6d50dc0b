use std::collections::{BTreeMap, BTreeSet};

use kapell_core::board::{
    ActualLrp, ActualState, Domain, InstanceGuid, LrpKey, ProcessGuid, Record, RecordKey, Records,
};

use crate::fleet::fact::Fact;

/// Why a leader may tell a cell to stop a container: all that commits have ever given as a reason.
#[derive(Debug, Default)]
pub(super) struct Grounds {
    by_container: BTreeMap<InstanceGuid, Ground>,
    /// The containers that records of an index have named.
    named: BTreeMap<LrpKey, BTreeSet<InstanceGuid>>,
    /// Processes of which nobody can read what is desired: that is no reason to stop anything.
    forgotten: BTreeSet<ProcessGuid>,
    /// How many were wanted last.
    wanted: BTreeMap<ProcessGuid, u32>,
    /// The lowest number to which somebody has ever scaled down.
    fewest: BTreeMap<ProcessGuid, u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ground {
    /// Somebody scaled down or deleted.
    pub(super) given_up: bool,
    /// Nobody desires it, in this domain.
    pub(super) undesired: Option<Domain>,
    /// The instance runs as another container.
    pub(super) elsewhere: bool,
}

impl Grounds {
    /// Something has happened, and these are the records after it.
    pub(super) fn saw(&mut self, fact: &Fact, records: &Records) {
        if let Fact::Corrupted { key } = fact {
            if let RecordKey::Desired(guid) = key {
                self.forgotten.insert(guid.clone());
            }
            self.changed(key, records);
        }
        let Fact::Committed { changes, .. } = fact else { return };
        for change in changes {
            // The instance ran elsewhere, if only within this commit.
            if let (RecordKey::Evacuating(_), Some(Record::Actual(twin)), None) =
                (&change.key, &change.before, &change.after)
                && let Some(container) = twin.instance_guid.clone()
            {
                self.by_container.entry(container).or_default().elsewhere = true;
            }
            if let Some(Record::Desired(lrp)) = &change.after
                && !lrp.forgotten
            {
                self.forgotten.remove(&lrp.process_guid);
            }
            self.changed(&change.key, records);
        }
    }

    /// A record is another one now, or gone.
    fn changed(&mut self, key: &RecordKey, records: &Records) {
        match key {
            RecordKey::Desired(guid) => {
                self.rescaled(guid, records);
                let all = records.instances_of(guid).chain(records.evacuating_of(guid));
                for key in all.map(ActualLrp::key) {
                    self.look(&key, records);
                }
            }
            RecordKey::Instance(key) | RecordKey::Evacuating(key) => self.look(key, records),
            RecordKey::Task(_)
            | RecordKey::Domain(_)
            | RecordKey::Job(_)
            | RecordKey::Definition(..)
            | RecordKey::Run(_)
            | RecordKey::Message(..) => {}
        }
    }

    /// Somebody who wants fewer gives up all that ran beyond that, also what is on no record just now because its
    /// cell is taken for lost.
    fn rescaled(&mut self, guid: &ProcessGuid, records: &Records) {
        let Some(desired) = records.desired.get(guid).filter(|it| !it.forgotten) else { return };
        let wanted = if desired.removing { 0 } else { desired.instances };
        let before = self.wanted.insert(guid.clone(), wanted).unwrap_or(0);
        if wanted < before {
            let fewest = self.fewest.entry(guid.clone()).or_insert(wanted);
            *fewest = wanted.min(*fewest);
        }
        let at = |index| LrpKey { process_guid: guid.clone(), index };
        for (_, containers) in self.named.range(at(wanted)..at(before.max(wanted))) {
            for container in containers {
                self.by_container.entry(container.clone()).or_default().given_up = true;
            }
        }
    }

    fn look(&mut self, key: &LrpKey, records: &Records) {
        let named = [records.instances.get(key), records.evacuating.get(key)];
        for lrp in named.into_iter().flatten() {
            let Some(container) = lrp.instance_guid.clone() else { continue };
            self.named.entry(key.clone()).or_default().insert(container.clone());
            if records.wants(lrp) || self.forgotten.contains(&key.process_guid) {
                continue;
            }
            let ground = self.by_container.entry(container).or_default();
            let desired = records.desired.get(&key.process_guid);
            if desired.is_some_and(|desired| desired.retiring) {
                ground.given_up = true;
            } else {
                ground.undesired = Some(lrp.domain.clone());
            }
        }
        let runs = records.instances.get(key).filter(|lrp| lrp.state == ActualState::Running);
        if let Some(container) = runs.and_then(|lrp| lrp.instance_guid.as_ref()) {
            let named = self.named.get(key).into_iter().flatten();
            for other in named.filter(|other| *other != container) {
                self.by_container.entry(other.clone()).or_default().elsewhere = true;
            }
        }
    }

    /// Whether a container that no commit has ever named is of an index that somebody has given up: its claim and
    /// what became of it can share one commit, which shows only the last.
    pub(super) fn is_of_one_given_up(&self, key: &LrpKey, container: &InstanceGuid) -> bool {
        let is_named = self.named.get(key).is_some_and(|named| named.contains(container));
        let fewest = self.fewest.get(&key.process_guid);
        !is_named && fewest.is_some_and(|fewest| key.index >= *fewest)
    }

    pub(super) fn of(&self, container: &InstanceGuid) -> Ground {
        self.by_container.get(container).cloned().unwrap_or_default()
    }
}
