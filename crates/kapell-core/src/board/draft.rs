//! Changes of the records of a shard that are not committed yet.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

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

/// Changes on top of committed records: those of the group that is being formed, and those of
/// the request that is being decided.
#[derive(Debug)]
pub struct Draft<'a> {
    pub(super) base: &'a Records,
    pub(super) group: &'a BTreeMap<RecordKey, Option<Record>>,
    /// In the order in which they were changed, each once: a request changes few.
    own: Vec<(RecordKey, Option<Record>)>,
    /// How many records were looked at.
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<usize>,
}

impl<'a> Draft<'a> {
    pub fn new(base: &'a Records, group: &'a BTreeMap<RecordKey, Option<Record>>) -> Self {
        Self {
            base,
            group,
            own: Vec::new(),
            #[cfg(test)]
            looks: std::cell::Cell::default(),
        }
    }

    pub(super) fn changed(&self, key: &RecordKey) -> Option<&Option<Record>> {
        #[cfg(test)]
        self.looks.update(|looks| looks + 1);
        self.own_change(key).or_else(|| self.group.get(key))
    }

    fn own_change(&self, key: &RecordKey) -> Option<&Option<Record>> {
        self.own.iter().find(|(known, _)| known == key).map(|(_, to)| to)
    }

    /// What is changed within a range of keys: first by the group, then by this request.
    pub(super) fn changes_in(
        &self,
        keys: RangeInclusive<RecordKey>,
    ) -> impl Iterator<Item = (&RecordKey, &Option<Record>)> {
        let (group, own) = (self.group.range(keys.clone()), self.own.iter());
        group.chain(own.map(|(key, to)| (key, to)).filter(move |(key, _)| keys.contains(key)))
    }

    /// The changes of instances of a process and of their twins.
    fn all_of(&self, guid: &ProcessGuid) -> impl Iterator<Item = (&RecordKey, &Option<Record>)> {
        let at = |index| LrpKey { process_guid: guid.clone(), index };
        let instances = RecordKey::Instance(at(0))..=RecordKey::Instance(at(u32::MAX));
        let twins = RecordKey::Evacuating(at(0))..=RecordKey::Evacuating(at(u32::MAX));
        self.changes_in(instances).chain(self.changes_in(twins))
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
        for (key, to) in self.all_of(guid) {
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
        self.all_of(guid).any(|(key, to)| is_meant(self.own_change(key).unwrap_or(to)))
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
        match self.own.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = to,
            None => self.own.push((key, to)),
        }
    }

    /// What this request changes, in the order in which it was changed.
    pub fn into_changes(self) -> Vec<(RecordKey, Option<Record>)> {
        self.own
    }
}
