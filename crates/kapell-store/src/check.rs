//! Checks that every driver makes before it sends anything.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::model::{ENTRY_BYTES, KEY_BYTES, Key, Limits, Op};

fn within(what: &'static str, is: usize, limit: usize) -> Result<(), Error> {
    if is > limit { Err(Error::AboveLimit { what, is, limit }) } else { Ok(()) }
}

/// An entry that may be written: the specified sizes of keys and values.
pub(crate) fn entry(key: &Key, value: &[u8]) -> Result<(), Error> {
    within("key", key.as_bytes().len(), KEY_BYTES)?;
    within("value", value.len(), ENTRY_BYTES)
}

/// Whole milliseconds, never rounded down to nothing.
#[cfg(any(
    feature = "cassandra",
    feature = "dynamodb",
    feature = "kubernetes",
    feature = "postgres"
))]
pub(crate) fn millis(ttl: std::time::Duration) -> i64 {
    i64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// The net effect of a commit within the limits: one change a key, the last one.
pub(crate) fn commit(limits: Limits, ops: &[Op]) -> Result<BTreeMap<&Key, Option<&[u8]>>, Error> {
    within("number of changes", ops.len(), limits.commit_ops)?;
    within("size of a commit", ops.iter().map(Op::bytes).sum(), limits.commit_bytes)?;
    let mut net = BTreeMap::new();
    for op in ops {
        within("key", op.key().as_bytes().len(), limits.key_bytes)?;
        // Databases have a use of their own for it, or none.
        if op.key().as_bytes().is_empty() {
            return Err(Error::NoKey);
        }
        match op {
            Op::Put(key, value) => {
                within("value", value.len(), limits.value_bytes)?;
                net.insert(key, Some(value.as_slice()));
            }
            Op::Delete(key) => {
                net.insert(key, None);
            }
        }
    }
    Ok(net)
}
