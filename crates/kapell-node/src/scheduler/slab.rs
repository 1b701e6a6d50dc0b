//! All runs under way, each in a slot that is used again when it has ended.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use kapell_core::run::RunId;
use rustc_hash::FxBuildHasher;

use super::entry::Entry;

/// So many slots are made at once. They never move, and none are made in reserve by doubling.
pub(super) const CHUNK: usize = 1_024;

/// Names one run for as long as it is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    slot: u32,
    /// How often the slot had been used before.
    round: u32,
}

impl Key {
    pub(super) const fn slot(self) -> usize {
        self.slot as usize
    }

    /// The same as a number, for those who need not know what it names.
    pub(super) fn tag(self) -> u64 {
        u64::from(self.round) << u32::BITS | u64::from(self.slot)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a half each")]
    pub(super) const fn of_tag(tag: u64) -> Self {
        Self { slot: tag as u32, round: (tag >> u32::BITS) as u32 }
    }
}

/// The upper bits are the good ones.
fn hash(run_id: &RunId) -> u32 {
    u32::try_from(FxBuildHasher.hash_one(run_id) >> u32::BITS).unwrap_or(0)
}

/// A table goes by the upper bits and by the lower ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << u32::BITS | u64::from(hash)
}

#[derive(Debug)]
struct Slot {
    round: u32,
    entry: Option<Entry>,
}

/// A slot, and as much of the hash of its run's id as tells most runs apart.
#[derive(Debug, Clone, Copy)]
struct Numbered {
    hash: u32,
    slot: u32,
}

#[derive(Debug, Default)]
pub(super) struct Slab {
    chunks: Vec<Vec<Slot>>,
    free: Vec<u32>,
    /// Slots by the ids of their runs, which the slots themselves have.
    numbers: HashTable<Numbered>,
}

impl Slab {
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    fn slot(&self, number: u32) -> Option<&Slot> {
        let number = number as usize;
        self.chunks.get(number / CHUNK)?.get(number % CHUNK)
    }

    fn slot_mut(&mut self, number: u32) -> Option<&mut Slot> {
        let number = number as usize;
        self.chunks.get_mut(number / CHUNK)?.get_mut(number % CHUNK)
    }

    /// Finds a run by its id.
    pub(super) fn key(&self, run_id: &RunId) -> Option<Key> {
        let hash = hash(run_id);
        let is_of_run =
            |slot: &Slot| slot.entry.as_ref().is_some_and(|it| it.it.run_id() == run_id);
        let is_it =
            |there: &Numbered| there.hash == hash && self.slot(there.slot).is_some_and(is_of_run);
        let slot = self.numbers.find(spread(hash), is_it)?.slot;
        Some(Key { slot, round: self.slot(slot)?.round })
    }

    /// Takes a run in, unless it is there.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<Key> {
        if self.key(entry.it.run_id()).is_some() {
            return None;
        }
        let hash = hash(entry.it.run_id());
        let slot = self.free.pop().or_else(|| self.grow())?;
        let there = self.slot_mut(slot)?;
        there.entry = Some(entry);
        let round = there.round;
        self.numbers.insert_unique(spread(hash), Numbered { hash, slot }, |it| spread(it.hash));
        Some(Key { slot, round })
    }

    fn grow(&mut self) -> Option<u32> {
        let first = u32::try_from(self.chunks.len() * CHUNK).ok()?;
        let slots = (0..CHUNK).map(|_| Slot { round: 0, entry: None }).collect();
        self.chunks.push(slots);
        let end = first.checked_add(u32::try_from(CHUNK).ok()?)?;
        self.free.extend((first + 1..end).rev());
        Some(first)
    }

    pub(super) fn get(&self, key: Key) -> Option<&Entry> {
        let slot = self.slot(key.slot).filter(|slot| slot.round == key.round)?;
        slot.entry.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Entry> {
        let slot = self.slot_mut(key.slot).filter(|slot| slot.round == key.round)?;
        slot.entry.as_mut()
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Entry> {
        let slot = self.slot_mut(key.slot).filter(|slot| slot.round == key.round)?;
        let entry = slot.entry.take()?;
        slot.round = slot.round.wrapping_add(1);
        let is_it = |there: &Numbered| there.slot == key.slot;
        if let Ok(there) = self.numbers.find_entry(spread(hash(entry.it.run_id())), is_it) {
            there.remove();
        }
        self.free.push(key.slot);
        Some(entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flatten().filter_map(|slot| slot.entry.as_ref())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut Entry)> {
        let slots = self.chunks.iter_mut().flatten().zip(0_u32..);
        slots.filter_map(|(slot, number)| {
            let key = Key { slot: number, round: slot.round };
            slot.entry.as_mut().map(|entry| (key, entry))
        })
    }

    /// How much it has been given, without what its runs hold themselves.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.chunks.iter().map(Vec::capacity).sum();
        let numbers = self.numbers.allocation_size();
        slots * size_of::<Slot>() + numbers + self.free.capacity() * size_of::<u32>()
    }
}
