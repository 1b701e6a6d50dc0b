//! The committed records of one shard with what is asked of them most.

use std::collections::{BTreeMap, BTreeSet};

use kapell_core::board::{CellId, Record, RecordKey, Records};

/// Records, and which of them name which cell.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    records: Records,
    by_cell: BTreeMap<CellId, BTreeSet<RecordKey>>,
}

fn cell_of(record: &Record) -> Option<&CellId> {
    match record {
        Record::Actual(lrp) => lrp.cell_id.as_ref(),
        Record::Task(task) => task.cell_id.as_ref(),
        Record::Desired(_) | Record::Domain(_) => None,
    }
}

impl Sheet {
    pub(super) const fn records(&self) -> &Records {
        &self.records
    }

    /// Makes a committed change, and gives back what stood there before.
    pub(super) fn apply(&mut self, key: &RecordKey, to: Option<Record>) -> Option<Record> {
        let cell = to.as_ref().and_then(cell_of).cloned();
        let before = self.records.apply(key, to);
        if let Some(cell) = before.as_ref().and_then(cell_of)
            && let Some(keys) = self.by_cell.get_mut(cell)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_cell.remove(cell);
            }
        }
        if let Some(cell) = cell {
            self.by_cell.entry(cell).or_default().insert(key.clone());
        }
        before
    }

    /// Every cell that a record names.
    pub(super) fn cells(&self) -> impl Iterator<Item = &CellId> {
        self.by_cell.keys()
    }

    /// What names a cell.
    pub(super) fn of_cell(&self, cell_id: &CellId) -> impl Iterator<Item = &RecordKey> {
        self.by_cell.get(cell_id).into_iter().flatten()
    }
}
