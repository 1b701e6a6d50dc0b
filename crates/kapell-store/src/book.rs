use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use kapell_core::seams::Moment;
use kapell_core::seat::{Epoch, Seat};

use crate::model::{Commit, Entry, Fence, Generation, Held, Item, Key, Page, Raise, Shard, Write};
use crate::pair::{Filed, Pair};

/// How many records and bytes a page holds at most; it holds at least one record.
const PAGE_ITEMS: usize = 1000;
const PAGE_BYTES: usize = 1 << 20;

/// What a store that lives in one process holds. Decides every operation; keeps nothing safe.
#[derive(Debug, Default)]
pub(crate) struct Book {
    entries: BTreeMap<Key, Slot>,
    shards: BTreeMap<Shard, Pile>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: Generation,
    value: Option<Standing>,
}

#[derive(Debug)]
struct Standing {
    value: Vec<u8>,
    ttl: Option<Duration>,
    until: Option<Moment>,
}

#[derive(Debug, Default)]
struct Pile {
    fence: Fence,
    records: Records,
    /// Keys and values together.
    bytes: usize,
}

pub(crate) type Records = BTreeSet<Filed>;

/// One change of the book, complete in itself: applied in order to an empty book, all changes
/// give the book back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Entry { key: Key, generation: Generation, value: Option<(Vec<u8>, Option<Duration>)> },
    Fence { shard: Shard, fence: Fence },
    Put { shard: Shard, pair: Pair },
    Delete { shard: Shard, key: Key },
}

impl Slot {
    fn standing(&self, now: Moment) -> Option<&Standing> {
        self.value.as_ref().filter(|standing| standing.until.is_none_or(|until| now < until))
    }

    fn entry(&self, now: Moment) -> Entry {
        let held = self.standing(now).map(|standing| Held {
            value: standing.value.clone(),
            remaining: standing.until.map(|until| until.since(now)),
        });
        Entry { generation: self.generation, held }
    }
}

impl Book {
    pub(crate) fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
        now: Moment,
    ) -> (Write, Option<Change>) {
        let slot = self.entries.get(key);
        let stands = slot.is_some_and(|slot| slot.standing(now).is_some());
        let generation = slot.map_or(Generation::default(), |slot| slot.generation);
        if stands || generation != seen {
            return (Write::Lost, None);
        }
        let value = Some((value.to_vec(), ttl));
        (Write::Done, Some(Change::Entry { key: key.clone(), generation: seen.next(), value }))
    }

    /// Replaces what stands there, or removes it, if exactly `old` stands there.
    pub(crate) fn compare_and_set(
        &self,
        key: &Key,
        old: &[u8],
        new: Option<(&[u8], Option<Duration>)>,
        now: Moment,
    ) -> (Write, Option<Change>) {
        let slot = self.entries.get(key);
        let Some(slot) = slot.filter(|slot| slot.standing(now).is_some_and(|it| it.value == old))
        else {
            return (Write::Lost, None);
        };
        let value = new.map(|(value, ttl)| (value.to_vec(), ttl));
        let change = Change::Entry { key: key.clone(), generation: slot.generation, value };
        (Write::Done, Some(change))
    }

    /// What keeps a generation from going below `floor`. A value that stands keeps its full time.
    pub(crate) fn lift(&self, key: &Key, floor: Generation, now: Moment) -> Option<Change> {
        let slot = self.entries.get(key);
        if slot.is_some_and(|slot| slot.generation >= floor) {
            return None;
        }
        let value = slot
            .and_then(|slot| slot.standing(now))
            .map(|standing| (standing.value.clone(), standing.ttl));
        Some(Change::Entry { key: key.clone(), generation: floor, value })
    }

    pub(crate) fn read(&self, key: &Key, now: Moment) -> Entry {
        self.entries.get(key).map(|slot| slot.entry(now)).unwrap_or_default()
    }

    pub(crate) fn list(&self, now: Moment) -> Vec<(Key, Entry)> {
        self.entries.iter().map(|(key, slot)| (key.clone(), slot.entry(now))).collect()
    }

    pub(crate) fn raise(&self, seat: Seat, epoch: Epoch) -> (Raise, Vec<Change>) {
        let fences: Vec<_> = Shard::all(seat).map(|shard| (shard, self.fence(shard))).collect();
        if let Some(highest) = fences.iter().map(|(_, fence)| fence.epoch).max()
            && highest > epoch
        {
            return (Raise::Fenced(highest), Vec::new());
        }
        let mut after = Vec::with_capacity(fences.len());
        let mut changes = Vec::new();
        for (shard, fence) in fences {
            let raised = if fence.epoch == epoch { fence } else { Fence { epoch, seq: 0 } };
            if raised != fence {
                changes.push(Change::Fence { shard, fence: raised });
            }
            after.push(raised);
        }
        (Raise::Done(after), changes)
    }

    pub(crate) fn fence(&self, shard: Shard) -> Fence {
        self.shards.get(&shard).map(|pile| pile.fence).unwrap_or_default()
    }

    pub(crate) fn commit(
        &self,
        shard: Shard,
        at: Fence,
        net: BTreeMap<&Key, Option<&[u8]>>,
    ) -> (Commit, Vec<Change>) {
        match self.admit(shard, at) {
            Commit::Done => (Commit::Done, Self::changes(shard, at, net)),
            fenced @ Commit::Fenced(_) => (fenced, Vec::new()),
        }
    }

    /// Whether a commit that names this fence would be let in.
    pub(crate) fn admit(&self, shard: Shard, at: Fence) -> Commit {
        let fence = self.fence(shard);
        if fence == at { Commit::Done } else { Commit::Fenced(fence) }
    }

    /// What a commit changes once it is let in.
    pub(crate) fn changes(
        shard: Shard,
        at: Fence,
        net: BTreeMap<&Key, Option<&[u8]>>,
    ) -> Vec<Change> {
        let mut changes = Vec::with_capacity(net.len() + 1);
        for (key, value) in net {
            changes.push(match value {
                Some(value) => Change::Put { shard, pair: Pair::new(key.as_bytes(), value) },
                None => Change::Delete { shard, key: key.clone() },
            });
        }
        changes.push(Change::Fence { shard, fence: at.next() });
        changes
    }

    pub(crate) fn scan(&self, shard: Shard, after: Option<&Key>) -> Page {
        let mut page = Page { items: Vec::new(), next: None };
        let Some(pile) = self.shards.get(&shard) else { return page };
        let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.as_bytes()));
        let mut bytes = 0;
        for Filed(pair) in pile.records.range::<[u8], _>((start, Bound::Unbounded)) {
            bytes += pair.bytes();
            if page.items.len() == PAGE_ITEMS || (bytes > PAGE_BYTES && !page.items.is_empty()) {
                page.next = page.items.last().map(|item| item.key.clone());
                break;
            }
            page.items.push(Item { key: Key::new(pair.key()), value: pair.value().to_vec() });
        }
        page
    }

    /// Makes a change that was decided on. A time to live begins `now`.
    pub(crate) fn apply(&mut self, change: Change, now: Moment) {
        match change {
            Change::Entry { key, generation, value } => {
                let value = value.map(|(value, ttl)| Standing {
                    value,
                    ttl,
                    until: ttl.map(|ttl| now.after(ttl)),
                });
                self.entries.insert(key, Slot { generation, value });
            }
            Change::Fence { shard, fence } => self.shards.entry(shard).or_default().fence = fence,
            Change::Put { shard, pair } => {
                let pile = self.shards.entry(shard).or_default();
                pile.bytes += pair.bytes();
                if let Some(Filed(old)) = pile.records.replace(Filed(pair)) {
                    pile.bytes -= old.bytes();
                }
            }
            Change::Delete { shard, key } => {
                let pile = self.shards.entry(shard).or_default();
                if let Some(Filed(old)) = pile.records.take(key.as_bytes()) {
                    pile.bytes -= old.bytes();
                }
            }
        }
    }

    /// Gives a shard the records that it is to hold, instead of one change after the other.
    pub(crate) fn fill(&mut self, shard: Shard, records: Records, bytes: usize) {
        let pile = self.shards.entry(shard).or_default();
        (pile.records, pile.bytes) = (records, bytes);
    }

    /// How many records there are and how many bytes they have, keys and values together.
    /// Entries are not counted: they are few.
    pub(crate) fn size(&self) -> (usize, usize) {
        let sizes = self.shards.values().map(|pile| (pile.records.len(), pile.bytes));
        sizes.fold((0, 0), |(records, bytes), (more, of)| (records + more, bytes + of))
    }
}
