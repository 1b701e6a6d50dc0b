//! Changes of the records of a shard that are not committed yet.

use std::collections::BTreeMap;

use super::actual::{ActualLrp, LrpKey};
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::ids::{Domain, ProcessGuid, TaskGuid};
use super::record::{Record, RecordKey};
use super::records::Records;
use super::task::Task;

fn key_of(lrp: &ActualLrp) -> RecordKey {
    if lrp.evacuating { RecordKey::Evacuating(lrp.key()) } else { RecordKey::Instance(lrp.key()) }
}

/// The changes of instances of a process and of their twins.
fn all_of<'a>(
    changes: &'a BTreeMap<RecordKey, Option<Record>>,
    guid: &ProcessGuid,
) -> impl Iterator<Item = (&'a RecordKey, &'a Option<Record>)> {
    let at = |index| LrpKey { process_guid: guid.clone(), index };
    let instances = RecordKey::Instance(at(0))..=RecordKey::Instance(at(u32::MAX));
    let twins = RecordKey::Evacuating(at(0))..=RecordKey::Evacuating(at(u32::MAX));
    changes.range(instances).chain(changes.range(twins))
}

/// Changes on top of committed records: those of the group that is being formed, and those of
/// the request that is being decided.
#[derive(Debug)]
pub struct Draft<'a> {
    pub(super) base: &'a Records,
    pub(super) group: &'a BTreeMap<RecordKey, Option<Record>>,
    pub(super) own: BTreeMap<RecordKey, Option<Record>>,
    /// The keys of `own`, in the order in which they were changed.
    made: Vec<RecordKey>,
    /// How many records were looked at.
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<usize>,
}

impl<'a> Draft<'a> {
    pub fn new(base: &'a Records, group: &'a BTreeMap<RecordKey, Option<Record>>) -> Self {
        Self {
            base,
            group,
            own: BTreeMap::new(),
            made: Vec::new(),
            #[cfg(test)]
            looks: std::cell::Cell::default(),
        }
    }

    fn changed(&self, key: &RecordKey) -> Option<&Option<Record>> {
        #[cfg(test)]
        self.looks.update(|looks| looks + 1);
        self.own.get(key).or_else(|| self.group.get(key))
    }

    pub fn desired(&self, guid: &ProcessGuid) -> Option<DesiredLrp> {
        self.get(&RecordKey::Desired(guid.clone()))?.into_desired().map(|lrp| *lrp)
    }

    pub fn instance(&self, key: &LrpKey) -> Option<ActualLrp> {
        self.actual(&RecordKey::Instance(key.clone()))
    }

    pub fn evacuating(&self, key: &LrpKey) -> Option<ActualLrp> {
        self.actual(&RecordKey::Evacuating(key.clone()))
    }

    fn actual(&self, key: &RecordKey) -> Option<ActualLrp> {
        self.get(key)?.into_actual().map(|lrp| *lrp)
    }

    pub fn task(&self, guid: &TaskGuid) -> Option<Task> {
        self.get(&RecordKey::Task(guid.clone()))?.into_task().map(|task| *task)
    }

    pub fn domain(&self, domain: &Domain) -> Option<Freshness> {
        self.get(&RecordKey::Domain(domain.clone()))?.into_domain()
    }

    pub fn get(&self, key: &RecordKey) -> Option<Record> {
        self.changed(key).map_or_else(|| self.base.get(key), Clone::clone)
    }

    /// The instances of a process as they would be, in order of their index.
    pub fn instances_of(&self, guid: &ProcessGuid) -> Vec<ActualLrp> {
        let mut found: BTreeMap<u32, ActualLrp> =
            self.base.instances_of(guid).map(|lrp| (lrp.index, lrp.clone())).collect();
        for (key, to) in all_of(self.group, guid).chain(all_of(&self.own, guid)) {
            let RecordKey::Instance(key) = key else { continue };
            match to {
                Some(Record::Actual(lrp)) => drop(found.insert(key.index, (**lrp).clone())),
                Some(
                    Record::Desired(_)
                    | Record::Task(_)
                    | Record::Domain(_)
                    | Record::Job(_)
                    | Record::Definition(_)
                    | Record::Run(_)
                    | Record::Message(_),
                )
                | None => {
                    found.remove(&key.index);
                }
            }
        }
        found.into_values().collect()
    }

    /// Whether some instance of a process, or some evacuating twin, is there.
    pub fn has_some(&self, guid: &ProcessGuid) -> bool {
        self.has_any(guid, |_| true)
    }

    /// Whether something is there of a process that is not wanted, now that some of it was given up.
    pub fn has_unwanted(&self, desired: &DesiredLrp) -> bool {
        let guid = &desired.process_guid;
        let Some(leaving) = self.base.leaving(desired) else {
            return self.has_any(guid, |lrp| !desired.wants_this(lrp));
        };
        // From the end, for they go in order: most often the last one is still there.
        leaving.iter().rev().any(|leaving| self.changed(&leaving.key(guid)).is_none())
            || self.has_changed(guid, |lrp| !desired.wants_this(lrp))
    }

    fn has_any(&self, guid: &ProcessGuid, is_meant: impl Fn(&ActualLrp) -> bool) -> bool {
        let committed = self.base.instances_of(guid).chain(self.base.evacuating_of(guid));
        let mut stands = committed.filter(|lrp| self.changed(&key_of(lrp)).is_none());
        stands.any(&is_meant) || self.has_changed(guid, is_meant)
    }

    /// Whether one of those that are not committed yet is meant.
    fn has_changed(&self, guid: &ProcessGuid, is_meant: impl Fn(&ActualLrp) -> bool) -> bool {
        let mut of_group = all_of(self.group, guid).filter(|(key, _)| !self.own.contains_key(*key));
        let is_meant = |to: &Option<Record>| match to {
            Some(Record::Actual(lrp)) => is_meant(lrp),
            Some(
                Record::Desired(_)
                | Record::Task(_)
                | Record::Domain(_)
                | Record::Job(_)
                | Record::Definition(_)
                | Record::Run(_)
                | Record::Message(_),
            )
            | None => false,
        };
        of_group.any(|(_, to)| is_meant(to)) || all_of(&self.own, guid).any(|(_, to)| is_meant(to))
    }

    pub fn put(&mut self, record: Record) {
        self.change(record.key(), Some(record));
    }

    pub fn delete(&mut self, key: RecordKey) {
        self.change(key, None);
    }

    /// How many records this request changes so far.
    pub(crate) fn changes(&self) -> usize {
        self.own.len()
    }

    fn change(&mut self, key: RecordKey, to: Option<Record>) {
        if self.own.insert(key.clone(), to).is_none() {
            self.made.push(key);
        }
    }

    /// What this request changes, in the order in which it was changed.
    pub fn into_changes(mut self) -> Vec<(RecordKey, Option<Record>)> {
        let made = self.made.into_iter();
        made.filter_map(|key| self.own.remove_entry(&key)).collect()
    }
}
