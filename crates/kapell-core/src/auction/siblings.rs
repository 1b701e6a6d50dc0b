//! Where instances of one process are.

use rustc_hash::FxHashMap;

/// Sets the keys of zones apart from those of cells.
const ZONE: u32 = 1 << 31;

/// How many instances of one process are on each cell and in each zone.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    /// Cells that have any, in order, and how many; then the zones. One list, since there are very many of these.
    counts: Vec<(u32, u32)>,
}

impl Siblings {
    /// Has room for as many as are expected.
    pub(super) fn expecting(instances: u32) -> Self {
        // Most that are placed are on a cell of their own, in a few zones.
        const MOST: u32 = 64;
        Self { counts: Vec::with_capacity(instances.min(MOST) as usize + 2) }
    }

    pub(super) fn add(&mut self, cell: u32, zone: u32) {
        self.count(cell);
        self.count(ZONE | zone);
    }

    pub(super) fn in_zone(&self, zone: u32) -> u32 {
        self.of(ZONE | zone)
    }

    pub(super) fn on_cell(&self, cell: u32) -> u32 {
        self.of(cell)
    }

    fn of(&self, key: u32) -> u32 {
        let found = self.counts.binary_search_by_key(&key, |(key, _)| *key);
        found.map_or(0, |at| self.counts[at].1)
    }

    fn count(&mut self, key: u32) {
        match self.counts.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(1),
            Err(at) => self.counts.insert(at, (key, 1)),
        }
    }
}

/// The fewest siblings on any cell of a group that has room, for a process and a wish; where it is known, and not 0.
///
/// Siblings only become more and room only less: there will never be fewer.
#[derive(Debug, Default)]
pub(super) struct Fewest(FxHashMap<(u32, u32, u32), u32>);

impl Fewest {
    pub(super) fn get(&self, process: u32, wish: u32, group: u32) -> u32 {
        if self.0.is_empty() {
            return 0;
        }
        self.0.get(&(process, wish, group)).copied().unwrap_or(0)
    }

    pub(super) fn learn(&mut self, process: u32, wish: u32, group: u32, fewest: u32) {
        if fewest > 0 {
            self.0.insert((process, wish, group), fewest);
        }
    }
}
