//! Changes of the records of a shard that are not committed yet.

use std::collections::BTreeMap;

use super::actual::{ActualLrp, LrpKey};
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::ids::{Domain, ProcessGuid, TaskGuid};
use super::record::{Record, RecordKey};
use super::records::Records;
use super::task::Task;

fn is_actual_of(
    record: Option<&Record>,
    guid: &ProcessGuid,
    is_meant: impl Fn(&ActualLrp) -> bool,
) -> bool {
    match record {
        Some(Record::Actual(lrp)) => lrp.process_guid == *guid && is_meant(lrp),
        Some(Record::Desired(_) | Record::Task(_) | Record::Domain(_)) | None => false,
    }
}

/// Changes on top of committed records: those of the group that is being formed, and those of
/// the request that is being decided.
#[derive(Debug)]
pub struct Draft<'a> {
    base: &'a Records,
    group: &'a BTreeMap<RecordKey, Option<Record>>,
    own: BTreeMap<RecordKey, Option<Record>>,
}

impl<'a> Draft<'a> {
    pub fn new(base: &'a Records, group: &'a BTreeMap<RecordKey, Option<Record>>) -> Self {
        Self { base, group, own: BTreeMap::new() }
    }

    fn changed(&self, key: &RecordKey) -> Option<&Option<Record>> {
        self.own.get(key).or_else(|| self.group.get(key))
    }

    pub fn desired(&self, guid: &ProcessGuid) -> Option<DesiredLrp> {
        match self.get(&RecordKey::Desired(guid.clone()))? {
            Record::Desired(lrp) => Some(*lrp),
            Record::Actual(_) | Record::Task(_) | Record::Domain(_) => None,
        }
    }

    pub fn instance(&self, key: &LrpKey) -> Option<ActualLrp> {
        self.actual(&RecordKey::Instance(key.clone()))
    }

    pub fn evacuating(&self, key: &LrpKey) -> Option<ActualLrp> {
        self.actual(&RecordKey::Evacuating(key.clone()))
    }

    fn actual(&self, key: &RecordKey) -> Option<ActualLrp> {
        match self.get(key)? {
            Record::Actual(lrp) => Some(*lrp),
            Record::Desired(_) | Record::Task(_) | Record::Domain(_) => None,
        }
    }

    pub fn task(&self, guid: &TaskGuid) -> Option<Task> {
        match self.get(&RecordKey::Task(guid.clone()))? {
            Record::Task(task) => Some(*task),
            Record::Desired(_) | Record::Actual(_) | Record::Domain(_) => None,
        }
    }

    pub fn domain(&self, domain: &Domain) -> Option<Freshness> {
        match self.get(&RecordKey::Domain(domain.clone()))? {
            Record::Domain(freshness) => Some(freshness),
            Record::Desired(_) | Record::Actual(_) | Record::Task(_) => None,
        }
    }

    pub fn get(&self, key: &RecordKey) -> Option<Record> {
        self.changed(key).map_or_else(|| self.base.get(key), Clone::clone)
    }

    /// The instances of a process as they would be, in order of their index.
    pub fn instances_of(&self, guid: &ProcessGuid) -> Vec<ActualLrp> {
        let mut found: BTreeMap<u32, ActualLrp> =
            self.base.instances_of(guid).map(|lrp| (lrp.index, lrp.clone())).collect();
        for changes in [self.group, &self.own] {
            for (key, to) in changes {
                let RecordKey::Instance(key) = key else { continue };
                if key.process_guid != *guid {
                    continue;
                }
                match to {
                    Some(Record::Actual(lrp)) => drop(found.insert(key.index, (**lrp).clone())),
                    Some(Record::Desired(_) | Record::Task(_) | Record::Domain(_)) | None => {
                        found.remove(&key.index);
                    }
                }
            }
        }
        found.into_values().collect()
    }

    /// Whether some instance of a process, or some evacuating twin, is there.
    pub fn has_any(&self, guid: &ProcessGuid, is_meant: impl Fn(&ActualLrp) -> bool) -> bool {
        let stands = |lrp: &&ActualLrp| {
            let key = if lrp.evacuating {
                RecordKey::Evacuating(lrp.key())
            } else {
                RecordKey::Instance(lrp.key())
            };
            self.changed(&key).is_none()
        };
        let committed = self.base.instances_of(guid).chain(self.base.evacuating_of(guid));
        let mut own = self.group.iter().filter(|(key, _)| !self.own.contains_key(*key));
        committed.filter(stands).any(&is_meant)
            || own.any(|(_, to)| is_actual_of(to.as_ref(), guid, &is_meant))
            || self.own.values().any(|to| is_actual_of(to.as_ref(), guid, &is_meant))
    }

    pub fn put(&mut self, record: Record) {
        self.own.insert(record.key(), Some(record));
    }

    pub fn delete(&mut self, key: RecordKey) {
        self.own.insert(key, None);
    }

    /// What this request changes.
    pub fn into_changes(self) -> BTreeMap<RecordKey, Option<Record>> {
        self.own
    }
}
