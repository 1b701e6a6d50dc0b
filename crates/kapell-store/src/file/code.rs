//! Changes as bytes.

use std::time::Duration;

use kapell_core::seat::{Epoch, Seat};

use crate::book::Change;
use crate::model::{ENTRY_BYTES, Fence, Generation, KEY_BYTES, Key, SHARDS, Shard};
use crate::pair::Pair;

const ENTRY: u8 = 1;
const FENCE: u8 = 2;
const PUT: u8 = 3;
const DELETE: u8 = 4;

/// What a change takes at most beyond its key and its value.
const OVERHEAD: usize = 32;
/// No value; no time to live.
const NONE_32: u32 = u32::MAX;
const NONE_64: u64 = u64::MAX;

/// At most how many bytes a change with this key and this value takes.
pub(super) const fn bound(key: usize, value: usize) -> usize {
    OVERHEAD + key + value
}

/// At most how many bytes lifting a generation takes.
pub(super) const LIFT: usize = bound(KEY_BYTES, ENTRY_BYTES);
/// At most how many bytes raising all fences of a seat takes.
pub(super) const RAISE: usize = OVERHEAD * SHARDS as usize;

/// At most how many bytes these changes take.
pub(super) fn bounds(changes: &[Change]) -> usize {
    let bound_of = |change: &Change| match change {
        Change::Entry { key, value, .. } => {
            bound(key.as_bytes().len(), value.as_ref().map_or(0, |(value, _)| value.len()))
        }
        Change::Fence { .. } => OVERHEAD,
        Change::Put { pair, .. } => bound(pair.key().len(), pair.value().len()),
        Change::Delete { key, .. } => bound(key.as_bytes().len(), 0),
    };
    changes.iter().map(bound_of).sum()
}

pub(super) fn encode(change: &Change, to: &mut Vec<u8>) {
    match change {
        Change::Entry { key, generation, value } => {
            to.push(ENTRY);
            let length = value.as_ref().map_or(NONE_32, |(value, _)| size_32(value));
            let ttl = value.as_ref().and_then(|(_, ttl)| *ttl).map_or(NONE_64, nanos);
            to.extend_from_slice(&size_16(key.as_bytes()).to_le_bytes());
            to.extend_from_slice(&length.to_le_bytes());
            to.extend_from_slice(&generation.0.to_le_bytes());
            to.extend_from_slice(&ttl.to_le_bytes());
            to.extend_from_slice(key.as_bytes());
            to.extend_from_slice(value.as_ref().map_or(&[], |(value, _)| value));
        }
        Change::Fence { shard, fence } => {
            to.push(FENCE);
            put_shard(*shard, to);
            to.extend_from_slice(&fence.epoch.0.to_le_bytes());
            to.extend_from_slice(&fence.seq.to_le_bytes());
        }
        Change::Put { shard, pair } => {
            let (key, value) = (pair.key(), pair.value());
            to.push(PUT);
            put_shard(*shard, to);
            to.extend_from_slice(&size_16(key).to_le_bytes());
            to.extend_from_slice(&size_32(value).to_le_bytes());
            to.extend_from_slice(key);
            to.extend_from_slice(value);
        }
        Change::Delete { shard, key } => {
            to.push(DELETE);
            put_shard(*shard, to);
            to.extend_from_slice(&size_16(key.as_bytes()).to_le_bytes());
            to.extend_from_slice(key.as_bytes());
        }
    }
}

fn put_shard(shard: Shard, to: &mut Vec<u8>) {
    to.extend_from_slice(&shard.seat.0.to_le_bytes());
    to.extend_from_slice(&shard.number.to_le_bytes());
}

fn size_16(key: &[u8]) -> u16 {
    u16::try_from(key.len()).expect("keys are checked before they come here")
}

fn size_32(value: &[u8]) -> u32 {
    u32::try_from(value.len()).expect("values are checked before they come here")
}

fn nanos(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos()).unwrap_or(NONE_64).min(NONE_64 - 1)
}

/// The changes in a body of bytes, in order. Ends at the first thing that is none.
#[derive(Debug)]
pub(super) struct Changes<'a> {
    rest: &'a [u8],
}

/// There are bytes that are no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

impl<'a> Changes<'a> {
    pub(super) const fn of(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    fn shard(&mut self) -> Option<Shard> {
        let seat = Seat(u32::from_le_bytes(self.array()?));
        Some(Shard { seat, number: u16::from_le_bytes(self.array()?) })
    }

    fn change(&mut self) -> Option<Change> {
        let [tag] = self.array()?;
        match tag {
            ENTRY => self.entry(),
            FENCE => {
                let shard = self.shard()?;
                let epoch = Epoch(u64::from_le_bytes(self.array()?));
                let seq = u64::from_le_bytes(self.array()?);
                Some(Change::Fence { shard, fence: Fence { epoch, seq } })
            }
            PUT => {
                let shard = self.shard()?;
                let key = u16::from_le_bytes(self.array()?);
                let value = u32::from_le_bytes(self.array()?);
                let key = self.take(key.into())?;
                Some(Change::Put { shard, pair: Pair::new(key, self.take(value as usize)?) })
            }
            DELETE => {
                let shard = self.shard()?;
                let key = u16::from_le_bytes(self.array()?);
                Some(Change::Delete { shard, key: Key::new(self.take(key.into())?) })
            }
            _ => None,
        }
    }

    fn entry(&mut self) -> Option<Change> {
        let key = u16::from_le_bytes(self.array()?);
        let length = u32::from_le_bytes(self.array()?);
        let generation = Generation(u64::from_le_bytes(self.array()?));
        let ttl = u64::from_le_bytes(self.array()?);
        let key = Key::new(self.take(key.into())?);
        let value = if length == NONE_32 {
            None
        } else {
            let ttl = (ttl != NONE_64).then(|| Duration::from_nanos(ttl));
            Some((self.take(length as usize)?.to_vec(), ttl))
        };
        Some(Change::Entry { key, generation, value })
    }
}

impl Iterator for Changes<'_> {
    type Item = Result<Change, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let change = self.change();
        if change.is_none() {
            self.rest = &[];
        }
        Some(change.ok_or(Unreadable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Change> {
        let shard = Shard { seat: Seat(7), number: 15 };
        let key = || Key::new(*b"key");
        let entry = |value| Change::Entry { key: key(), generation: Generation(9), value };
        vec![
            entry(None),
            entry(Some((Vec::new(), None))),
            entry(Some((b"x".to_vec(), Some(Duration::ZERO)))),
            entry(Some((vec![0; ENTRY_BYTES], Some(Duration::from_millis(1_500))))),
            Change::Fence { shard, fence: Fence { epoch: Epoch(u64::MAX), seq: 3 } },
            Change::Put { shard, pair: Pair::new(&[], &[]) },
            Change::Put { shard, pair: Pair::new(&[1; KEY_BYTES], &[2; 300]) },
            Change::Delete { shard, key: key() },
        ]
    }

    #[test]
    fn changes_come_back_as_they_were() {
        let mut bytes = Vec::new();
        for change in &samples() {
            encode(change, &mut bytes);
        }
        assert!(bytes.len() <= bounds(&samples()));
        let back: Result<Vec<_>, _> = Changes::of(&bytes).collect();
        assert_eq!(back, Ok(samples()));
    }

    #[test]
    fn a_cut_change_is_no_change() {
        for change in samples() {
            let mut bytes = Vec::new();
            encode(&change, &mut bytes);
            for cut in 1..bytes.len().min(200) {
                let read: Vec<_> = Changes::of(&bytes[..cut]).collect();
                assert_eq!(read, [Err(Unreadable)], "{change:?} cut at {cut}");
            }
        }
    }
}
