use std::collections::BTreeMap;
use std::fmt;

use kapell_core::board::{Record, RecordKey, Records};
use kapell_store::model::{Key, Op};

/// What one commit does to one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) key: RecordKey,
    pub(super) before: Option<Record>,
    pub(super) after: Option<Record>,
}

/// In a line of a trace: what is left, or that it is gone.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.after {
            None => write!(f, "-{:?}", self.key),
            Some(Record::Desired(lrp)) => {
                let removing = if lrp.removing { " removing" } else { "" };
                write!(f, "+{} x{}{removing} v{}", lrp.process_guid, lrp.instances, lrp.version)
            }
            Some(Record::Actual(lrp)) => {
                let twin = if lrp.evacuating { "/e" } else { "" };
                write!(f, "+{}{twin} {} v{}", lrp.key(), lrp.state.name(), lrp.version)?;
                lrp.cell_id.iter().try_for_each(|cell| write!(f, " on {cell}"))
            }
            Some(Record::Task(task)) => {
                write!(f, "+{} {} v{}", task.guid(), task.state.name(), task.version)?;
                task.cell_id.iter().try_for_each(|cell| write!(f, " on {cell}"))
            }
            Some(Record::Domain(fresh)) => write!(f, "+{} {:?}", fresh.domain, fresh.expires_at),
            Some(Record::Job(job)) => {
                write!(f, "+{} r{} v{}", job.job_id, job.revision, job.version)
            }
            Some(Record::Definition(of)) => write!(f, "+{} r{}", of.definition.job_id, of.revision),
            Some(Record::Run(run)) => {
                write!(f, "+{} {} v{}", run.run_id, run.state.name(), run.version)
            }
            Some(Record::Message(message)) => write!(f, "+{} {}", message.job_id, message.id),
        }
    }
}

/// The records of all shards together, as commits make them.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    records: Records,
    /// What the keys in the store stand for.
    names: BTreeMap<Key, RecordKey>,
}

impl Ledger {
    pub(super) const fn records(&self) -> &Records {
        &self.records
    }

    /// Makes the changes of a commit. What is no record of the board is left out: what was set aside is none.
    pub(super) fn commit(&mut self, ops: &[Op]) -> Vec<Change> {
        ops.iter().filter_map(|op| self.change(op)).collect()
    }

    fn change(&mut self, op: &Op) -> Option<Change> {
        let (key, after) = match op {
            Op::Put(at, value) => {
                let record = Record::decode(at.as_bytes(), value).ok()?;
                let key = record.key();
                self.names.insert(at.clone(), key.clone());
                (key, Some(record))
            }
            Op::Delete(at) => (self.names.remove(at)?, None),
        };
        let before = self.records.apply(&key, after.clone());
        Some(Change { key, before, after })
    }

    /// What stands at a key is garbage now; says what stood there.
    pub(super) fn corrupt(&mut self, at: &Key) -> Option<RecordKey> {
        let key = self.names.remove(at)?;
        self.records.apply(&key, None);
        Some(key)
    }
}
