//! What is kept in memory of one shard.

use kapell_core::board::aside::SetAside;
use kapell_core::board::{Record, RecordKey, Records};

/// The committed records of a shard, and what was found there that is none.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    records: Records,
    aside: Vec<SetAside>,
}

impl Sheet {
    pub(super) const fn new(records: Records, aside: Vec<SetAside>) -> Self {
        Self { records, aside }
    }

    pub(super) const fn records(&self) -> &Records {
        &self.records
    }

    pub(super) fn aside(&self) -> &[SetAside] {
        &self.aside
    }

    /// Makes a committed change, and gives back what stood there before.
    pub(super) fn apply(&mut self, key: &RecordKey, to: Option<Record>) -> Option<Record> {
        self.records.apply(key, to)
    }
}
