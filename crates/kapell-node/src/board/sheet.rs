//! What is kept in memory of one shard.

use kapell_core::board::{Record, RecordKey, Records};

/// The committed records of a shard, and how much was found there that is none.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    records: Records,
    aside: usize,
}

impl Sheet {
    pub(super) const fn new(records: Records, aside: usize) -> Self {
        Self { records, aside }
    }

    pub(super) const fn records(&self) -> &Records {
        &self.records
    }

    /// How much was found there that is no record, and lies aside.
    pub(super) const fn aside(&self) -> usize {
        self.aside
    }

    /// Makes a committed change, and gives back what stood there before.
    pub(super) fn apply(&mut self, key: &RecordKey, to: Option<Record>) -> Option<Record> {
        self.records.apply(key, to)
    }
}
