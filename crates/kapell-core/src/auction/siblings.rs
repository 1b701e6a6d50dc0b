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
    keys: Vec<u32>,
    /// Of each key. Apart from them: keys are looked through all the time, and most are not found.
    counts: Vec<u32>,
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
        Self { parts, keys: vec![0; end as usize], counts: vec![0; end as usize] }
    }

    pub(super) fn of(&self, process: u32) -> Siblings<'_> {
        let range = self.parts[process as usize].range();
        Siblings { keys: &self.keys[range.clone()], counts: &self.counts[range] }
    }

    pub(super) fn add(&mut self, process: u32, cell: u32, zone: u32) {
        self.count(process, cell);
        self.count(process, ZONE | zone);
    }

    fn count(&mut self, process: u32, key: u32) {
        let part = self.parts[process as usize];
        let before = match place(&self.keys[part.range()], key) {
            Ok(at) => {
                let count = &mut self.counts[part.begin as usize + at];
                *count = count.saturating_add(1);
                return;
            }
            Err(before) => before,
        };
        let begin = if part.used == part.room { self.give_room(process) } else { part.begin };
        let (at, end) = (begin as usize + before, (begin + part.used) as usize);
        self.keys.copy_within(at..end, at + 1);
        self.counts.copy_within(at..end, at + 1);
        (self.keys[at], self.counts[at]) = (key, 1);
        self.parts[process as usize].used += 1;
    }

    /// Moves what is full to the end of the list, where it has twice the room.
    fn give_room(&mut self, process: u32) -> u32 {
        let part = &mut self.parts[process as usize];
        let begin = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.extend_from_within(part.range());
        self.counts.extend_from_within(part.range());
        *part = Part { begin, room: 2 * part.room, used: part.used };
        let end = (begin + part.room) as usize;
        self.keys.resize(end, 0);
        self.counts.resize(end, 0);
        begin
    }
}

/// Where instances of one process are: cells that have any, in order, and how many; then the zones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Siblings<'a> {
    keys: &'a [u32],
    counts: &'a [u32],
}

impl Siblings<'_> {
    pub(super) fn in_zone(self, zone: u32) -> u32 {
        self.count(ZONE | zone)
    }

    pub(super) fn on_cell(self, cell: u32) -> u32 {
        // Of a few, all are seen sooner than it is found where one of them is.
        let here = |keys: &[u32]| keys.iter().map(|key| u32::from(*key == cell)).sum::<u32>() > 0;
        if self.keys.len() <= FEW && !here(self.keys) {
            return 0;
        }
        self.count(cell)
    }

    fn count(self, key: u32) -> u32 {
        place(self.keys, key).map_or(0, |at| self.counts[at])
    }
}

/// So many are looked through one by one.
const FEW: usize = 16;

/// Where a key is, or would be.
fn place(keys: &[u32], key: u32) -> Result<usize, usize> {
    if keys.len() > FEW {
        return keys.binary_search(&key);
    }
    let at: u32 = keys.iter().map(|other| u32::from(*other < key)).sum();
    let at = at as usize;
    if keys.get(at) == Some(&key) { Ok(at) } else { Err(at) }
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
