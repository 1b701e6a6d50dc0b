//! A key and its value.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

/// A key and its value in one piece of memory: a store in one process holds very many.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pair(Box<[u8]>);

/// How long the key is stands before it.
const HEAD: usize = size_of::<u16>();

impl Pair {
    /// No key is longer than what can be said of its length: who puts one in has checked it against far lower limits.
    pub(crate) fn new(key: &[u8], value: &[u8]) -> Self {
        debug_assert!(u16::try_from(key.len()).is_ok(), "a key of {} bytes", key.len());
        let length = u16::try_from(key.len()).unwrap_or(u16::MAX);
        let key = &key[..usize::from(length)];
        Self([&length.to_le_bytes(), key, value].concat().into())
    }

    fn split(&self) -> (&[u8], &[u8]) {
        let (head, rest) = self.0.split_first_chunk().unwrap_or((&[0; HEAD], &[]));
        rest.split_at(usize::from(u16::from_le_bytes(*head)))
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.split().0
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.split().1
    }

    /// Key and value together.
    pub(crate) const fn bytes(&self) -> usize {
        self.0.len() - HEAD
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pair").field(&self.key()).field(&self.value()).finish()
    }
}

/// A pair that is found by its key.
#[derive(Debug, Clone)]
pub(crate) struct Filed(pub(crate) Pair);

impl PartialEq for Filed {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Filed {}

impl PartialOrd for Filed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Filed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

impl Borrow<[u8]> for Filed {
    fn borrow(&self) -> &[u8] {
        self.0.key()
    }
}
