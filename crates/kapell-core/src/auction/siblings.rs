//! Where the instances of processes are.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// Sets the keys of zones apart from those of cells.
const ZONE: u32 = 1 << 31;

/// How many instances of each process are on each cell and in each zone.
///
/// There are very many, and an auction goes through all of them again and again, in the order in which processes are
/// numbered: so they lie in one list, in that order.
#[derive(Debug, Default)]
pub(super) struct AllSiblings {
    /// By number of the process.
    parts: Vec<Part>,
    counts: Vec<(u32, u32)>,
}

/// Which part of the list is of one process, and how much of it is in use.
#[derive(Debug, Clone, Copy)]
struct Part {
    begin: u32,
    room: u32,
    used: u32,
}

impl Part {
    const fn range(self) -> Range<usize> {
        self.begin as usize..(self.begin + self.used) as usize
    }
}

impl AllSiblings {
    /// Has room for as many instances of each process as are expected.
    pub(super) fn expecting(instances: impl Iterator<Item = u32>) -> Self {
        // Most that are placed are on a cell of their own, in a few zones.
        const MOST: u32 = 64;
        let mut end = 0;
        let part = |instances: u32| {
            let (begin, room) = (end, instances.min(MOST) + 2);
            end += room;
            Part { begin, room, used: 0 }
        };
        let parts = instances.map(part).collect();
        Self { parts, counts: vec![(0, 0); end as usize] }
    }

    pub(super) fn of(&self, process: u32) -> Siblings<'_> {
        Siblings(&self.counts[self.parts[process as usize].range()])
    }

    pub(super) fn add(&mut self, process: u32, cell: u32, zone: u32) {
        self.count(process, cell);
        self.count(process, ZONE | zone);
    }

    fn count(&mut self, process: u32, key: u32) {
        let part = self.parts[process as usize];
        let counts = &mut self.counts[part.range()];
        let at = match place(counts, key) {
            Ok(at) => {
                counts[at].1 = counts[at].1.saturating_add(1);
                return;
            }
            Err(at) => part.begin as usize + at,
        };
        let moved = if part.used == part.room { self.give_room(process) } else { part.begin };
        let at = at - part.begin as usize + moved as usize;
        let end = (moved + part.used) as usize;
        self.counts.copy_within(at..end, at + 1);
        self.counts[at] = (key, 1);
        self.parts[process as usize].used += 1;
    }

    /// Moves what is full to the end of the list, where it has twice the room.
    fn give_room(&mut self, process: u32) -> u32 {
        let part = &mut self.parts[process as usize];
        let begin = u32::try_from(self.counts.len()).unwrap_or(u32::MAX);
        self.counts.extend_from_within(part.range());
        *part = Part { begin, room: 2 * part.room, used: part.used };
        self.counts.resize((begin + part.room) as usize, (0, 0));
        begin
    }
}

/// Where instances of one process are: cells that have any, in order, and how many; then the zones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Siblings<'a>(&'a [(u32, u32)]);

impl Siblings<'_> {
    pub(super) fn in_zone(self, zone: u32) -> u32 {
        self.count(ZONE | zone)
    }

    pub(super) fn on_cell(self, cell: u32) -> u32 {
        self.count(cell)
    }

    fn count(self, key: u32) -> u32 {
        place(self.0, key).map_or(0, |at| self.0[at].1)
    }
}

/// Where a key is, or would be.
fn place(counts: &[(u32, u32)], key: u32) -> Result<usize, usize> {
    // Of a few, all are seen sooner than the right one is found.
    const FEW: usize = 16;
    if counts.len() > FEW {
        return counts.binary_search_by_key(&key, |(key, _)| *key);
    }
    let at: u32 = counts.iter().map(|(other, _)| u32::from(*other < key)).sum();
    let at = at as usize;
    if counts.get(at).is_some_and(|(other, _)| *other == key) { Ok(at) } else { Err(at) }
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
