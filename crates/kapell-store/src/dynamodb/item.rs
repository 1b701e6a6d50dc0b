//! How things lie in the table.
//!
//! | `pk` (text) | `sk` (bytes) | besides |
//! |---|---|---|
//! | `layout` | `layout` | `format`, `shards` |
//! | `entry` | the key | `g` generation, `t` stamp of the last write; `v` value and `ttl` (ms) while it is held |
//! | `fence/SEAT/SHARD` | `fence` | `epoch`, `seq`, `keys` that the last commit wrote |
//! | `record/SEAT/SHARD` | the key | `v` value |

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use kapell_core::seat::Epoch;

use super::failure::Failure;
use crate::model::{Fence, Generation, Key, Shard};

pub(super) type Attributes = HashMap<String, AttributeValue>;

pub(super) const PARTITION: &str = "pk";
pub(super) const SORT: &str = "sk";
pub(super) const ENTRIES: &str = "entry";
pub(super) const LAYOUT: &str = "layout";
pub(super) const FENCE: &str = "fence";

pub(super) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(super) fn bytes(value: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

pub(super) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(super) fn fence_partition(shard: Shard) -> String {
    format!("{FENCE}/{}/{}", shard.seat.0, shard.number)
}

pub(super) fn record_partition(shard: Shard) -> String {
    format!("record/{}/{}", shard.seat.0, shard.number)
}

fn odd(what: &str) -> Failure {
    Failure::Odd(format!("the table is damaged: attribute `{what}` is not what we wrote"))
}

pub(super) fn bytes_in(item: &Attributes, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    let found = item.get(name).map(|value| value.as_b().map(|blob| blob.as_ref().to_vec()));
    found.transpose().map_err(|_| odd(name))
}

pub(super) fn number_in(item: &Attributes, name: &str) -> Result<Option<u64>, Failure> {
    let Some(value) = item.get(name) else { return Ok(None) };
    let parsed = value.as_n().ok().and_then(|text| text.parse().ok());
    parsed.map(Some).ok_or_else(|| odd(name))
}

pub(super) fn key_in(item: &Attributes) -> Result<Key, Failure> {
    bytes_in(item, SORT)?.map(Key::new).ok_or_else(|| odd(SORT))
}

/// Every write of an entry has one of its own: by it a change is seen, and by it a write is known again.
pub(super) type Stamp = [u8; 16];

/// What lies at a key of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stand {
    pub(super) generation: Generation,
    pub(super) value: Option<Vec<u8>>,
    pub(super) ttl: Option<Duration>,
    /// Empty if it was lifted and never written.
    pub(super) stamp: Vec<u8>,
}

impl Stand {
    pub(super) fn of(item: &Attributes) -> Result<Self, Failure> {
        Ok(Self {
            generation: Generation(number_in(item, "g")?.unwrap_or_default()),
            value: bytes_in(item, "v")?,
            ttl: number_in(item, "ttl")?.map(Duration::from_millis),
            stamp: bytes_in(item, "t")?.unwrap_or_default(),
        })
    }

    /// Without an item nothing was ever there.
    pub(super) fn of_any(item: Option<&Attributes>) -> Result<Self, Failure> {
        item.map_or_else(|| Ok(Self::default()), Self::of)
    }
}

pub(super) fn fence_in(item: Option<&Attributes>) -> Result<Fence, Failure> {
    let Some(item) = item else { return Ok(Fence::default()) };
    let part = |name| number_in(item, name)?.ok_or_else(|| odd(name));
    Ok(Fence { epoch: Epoch(part("epoch")?), seq: part("seq")? })
}

/// Keys one after the other, each behind its length.
pub(super) fn pack<'k>(keys: impl IntoIterator<Item = &'k Key>) -> Vec<u8> {
    let mut packed = Vec::new();
    for key in keys {
        // No key is as long as that: the limit is far lower.
        let length = u16::try_from(key.as_bytes().len()).unwrap_or(u16::MAX);
        packed.extend(length.to_be_bytes());
        packed.extend(key.as_bytes());
    }
    packed
}

pub(super) fn unpack(packed: &[u8]) -> Result<Vec<Key>, Failure> {
    let mut keys = Vec::new();
    let mut rest = packed;
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length));
        let (key, behind) = behind.split_at_checked(length).ok_or_else(|| odd("keys"))?;
        keys.push(Key::new(key));
        rest = behind;
    }
    if rest.is_empty() { Ok(keys) } else { Err(odd("keys")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_packed_and_come_back() {
        let keys = [Key::new(*b"a"), Key::new([0; 1000]), Key::new(*b"\xff\x00")];
        let packed = pack(&keys);
        assert_eq!(packed.len(), 3 * 2 + 1 + 1000 + 2);
        assert_eq!(unpack(&packed).unwrap(), keys);
        assert_eq!(unpack(&[]).unwrap(), []);
        assert!(unpack(&packed[..packed.len() - 1]).is_err());
        assert!(unpack(&[0]).is_err());
    }

    #[test]
    fn an_item_holds_an_entry_and_damage_is_told() {
        let mut item = Attributes::from([
            ("g".to_owned(), number(u64::MAX)),
            ("v".to_owned(), bytes(b"")),
            ("ttl".to_owned(), number(1500)),
            ("t".to_owned(), bytes(&[7; 16])),
        ]);
        let stand = Stand::of(&item).unwrap();
        assert_eq!((stand.generation, stand.value), (Generation(u64::MAX), Some(Vec::new())));
        assert_eq!((stand.ttl, stand.stamp), (Some(Duration::from_millis(1500)), vec![7; 16]));
        item.insert("g".to_owned(), text("1"));
        let why = Stand::of(&item).unwrap_err().to_string();
        assert_eq!(why, "the table is damaged: attribute `g` is not what we wrote");
        assert_eq!(Stand::of_any(None).unwrap(), Stand::default());
        assert_eq!(fence_in(None).unwrap(), Fence::default());
        assert!(fence_in(Some(&item)).is_err());
    }
}
