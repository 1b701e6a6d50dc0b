//! Seats: what a host must hold before it may act, and the number that fences off whoever held it before.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::seams::Timestamp;

/// One of the places that hosts compete for, `1..=N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seat(pub u32);

impl Seat {
    /// The only seat of a platform.
    pub const FIRST: Self = Self(1);

    /// All seats of a cluster with `count` of them.
    pub fn all(count: u32) -> impl Iterator<Item = Self> {
        (1..=count).map(Self)
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts who held a seat. It only grows, over releases, expiries and restores.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who a candidate is: drawn at random, so that two hosts with one address are never taken for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Owner {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// What stands in the store while a seat is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    pub epoch: Epoch,
    pub owner: Owner,
    /// Where requests for the holder go.
    pub address: String,
    /// When the holder says it took the seat; for people only.
    pub since: Timestamp,
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a record; nothing if something else stands there.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Whether this is the same holding of the seat: its owner and its epoch.
    pub fn is_of(&self, other: &Self) -> bool {
        self.epoch == other.epoch && self.owner == other.owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was() {
        let record = Record {
            epoch: Epoch(7),
            owner: Owner(0xab),
            address: "10.0.0.1:7070".to_owned(),
            since: Timestamp(1_700_000_000_000),
        };
        let text = String::from_utf8(record.encode()).unwrap();
        assert_eq!(
            text,
            r#"{"epoch":7,"owner":"00000000000000ab","address":"10.0.0.1:7070","since":1700000000000}"#
        );
        assert_eq!(Record::decode(text.as_bytes()), Some(record));
        assert_eq!(Record::decode(b"10.0.0.1"), None);
    }
}
