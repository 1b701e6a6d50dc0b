//! A book made from many changes at once.

use std::collections::BTreeMap;

use kapell_core::seams::Moment;

use crate::book::{Book, Change, Records};
use crate::model::Shard;
use crate::pair::{Filed, Pair};

/// How many changes of a shard are kept before those that no longer count are dropped.
const KEPT: usize = 1 << 16;

/// Takes changes in order. Sorting many at the end costs far less than finding the place of each.
#[derive(Debug)]
pub(super) struct Bulk {
    book: Book,
    now: Moment,
    piles: BTreeMap<Shard, Pile>,
}

#[derive(Debug, Default)]
struct Pile {
    changes: Vec<Kept>,
    /// When to drop what no longer counts.
    limit: usize,
}

#[derive(Debug)]
struct Kept {
    /// Sorts as the key does, or equal: most comparisons need not look at the keys, which
    /// lie all over the memory.
    rank: u64,
    pair: Pair,
    /// Otherwise it was deleted.
    is_there: bool,
}

impl Bulk {
    /// Times to live begin `now`.
    pub(super) fn new(now: Moment) -> Self {
        Self { book: Book::default(), now, piles: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, change: Change) {
        match change {
            Change::Entry { .. } | Change::Fence { .. } => self.book.apply(change, self.now),
            Change::Put { shard, pair } => self.piles.entry(shard).or_default().push(pair, true),
            Change::Delete { shard, key } => {
                let pair = Pair::new(key.as_bytes(), &[]);
                self.piles.entry(shard).or_default().push(pair, false);
            }
        }
    }

    pub(super) fn finish(mut self) -> Book {
        let piles: Vec<_> = self.piles.into_iter().collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let few = piles.len().div_ceil(threads).max(1);
        let mut piles = piles.into_iter();
        std::thread::scope(|scope| {
            let mut workers = Vec::new();
            loop {
                let some: Vec<_> = piles.by_ref().take(few).collect();
                if some.is_empty() {
                    break;
                }
                let sort = || some.into_iter().map(|(shard, pile)| (shard, pile.sorted()));
                workers.push(scope.spawn(move || sort().collect::<Vec<_>>()));
            }
            for worker in workers {
                let some = worker.join().expect("sorting does not panic");
                for (shard, (records, bytes)) in some {
                    self.book.fill(shard, records, bytes);
                }
            }
        });
        self.book
    }
}

impl Pile {
    fn push(&mut self, pair: Pair, is_there: bool) {
        self.changes.push(Kept { rank: 0, pair, is_there });
        if self.changes.len() > self.limit.max(KEPT) {
            self.settle();
            self.limit = self.changes.len() * 2;
        }
    }

    /// Leaves one change a key, the last one, in key order.
    fn settle(&mut self) {
        if self.changes.is_sorted_by(|a, b| a.pair.key() < b.pair.key()) {
            return;
        }
        self.rank();
        self.changes
            .sort_by(|a, b| a.rank.cmp(&b.rank).then_with(|| a.pair.key().cmp(b.pair.key())));
        // `dedup_by` keeps the first of its equals, which is therefore made the last one.
        self.changes.dedup_by(|later, kept| {
            let is_same = later.rank == kept.rank && later.pair.key() == kept.pair.key();
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
    }

    /// Ranks keys by the eight bytes behind what all of them begin with.
    fn rank(&mut self) {
        let Some(first) = self.changes.first() else { return };
        let mut shared = first.pair.key();
        for Kept { pair, .. } in &self.changes {
            let same = shared.iter().zip(pair.key()).take_while(|(a, b)| a == b).count();
            shared = &shared[..same];
        }
        let shared = shared.len();
        for Kept { rank, pair, .. } in &mut self.changes {
            let rest = &pair.key()[shared..];
            let mut bytes = [0; 8];
            let length = rest.len().min(8);
            bytes[..length].copy_from_slice(&rest[..length]);
            *rank = u64::from_be_bytes(bytes);
        }
    }

    fn sorted(mut self) -> (Records, usize) {
        self.settle();
        let mut bytes = 0;
        let there = self.changes.into_iter().filter(|kept| kept.is_there).map(|kept| {
            bytes += kept.pair.bytes();
            Filed(kept.pair)
        });
        let records = there.collect();
        (records, bytes)
    }
}

#[cfg(test)]
mod tests {
    use kapell_core::seat::Seat;

    use super::*;
    use crate::model::Key;

    #[test]
    fn it_holds_what_the_changes_give_one_by_one() {
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut bulk = Bulk::new(Moment::ZERO);
        let mut book = Book::default();
        for _ in 0..100_000 {
            let number = u16::try_from(draw(2)).unwrap();
            let shard = Shard { seat: Seat(1), number };
            let key = draw(40_000).to_string();
            let key = Key::new(key.as_bytes().repeat(2));
            let change = if draw(4) == 0 {
                Change::Delete { shard, key }
            } else {
                let value = draw(1_000).to_string();
                Change::Put { shard, pair: Pair::new(key.as_bytes(), value.as_bytes()) }
            };
            bulk.add(change.clone());
            book.apply(change, Moment::ZERO);
        }
        let bulk = bulk.finish();
        assert_eq!(bulk.size(), book.size());
        assert_eq!(format!("{bulk:?}"), format!("{book:?}"));
    }
}
