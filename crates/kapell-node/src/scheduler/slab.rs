//! All runs under way, each in a slot that is used again when it has ended.

use kapell_core::run::RunId;
use rustc_hash::FxHashMap;

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

#[derive(Debug)]
struct Slot {
    round: u32,
    entry: Option<Entry>,
}

#[derive(Debug, Default)]
pub(super) struct Slab {
    chunks: Vec<Vec<Slot>>,
    free: Vec<u32>,
    keys: FxHashMap<RunId, u32>,
}

impl Slab {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
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
        let slot = *self.keys.get(run_id)?;
        Some(Key { slot, round: self.slot(slot)?.round })
    }

    /// Takes a run in, unless it is there.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<Key> {
        let run_id = entry.it.run_id().clone();
        if self.keys.contains_key(&run_id) {
            return None;
        }
        let slot = self.free.pop().or_else(|| self.grow())?;
        let there = self.slot_mut(slot)?;
        there.entry = Some(entry);
        let round = there.round;
        self.keys.insert(run_id, slot);
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
        self.keys.remove(entry.it.run_id());
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
        let keys = self.keys.capacity() * 8 / 7 * (size_of::<(RunId, u32)>() + 1);
        slots * size_of::<Slot>() + keys + self.free.capacity() * size_of::<u32>()
    }
}
