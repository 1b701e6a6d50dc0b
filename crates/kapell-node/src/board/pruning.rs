//! Sets aside what is no record: it is kept, but nobody takes it for one.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::aside::{Aside, replacement};
use kapell_core::causes::chain;
use kapell_store::model::{Commit, Fence, Item, Key, Limits, Op, SHARDS, Shard};

use crate::elections::Tenure;

const PAUSE: Duration = Duration::from_millis(50);

/// Sets aside all of it within the shard, and says what the next commit must name.
pub(super) async fn set_aside(
    tenure: &Tenure,
    shard: Shard,
    mut fence: Fence,
    bad: Vec<Item>,
) -> Result<Fence, String> {
    if !bad.is_empty() {
        tracing::warn!(%shard, count = bad.len(), "setting aside what is no record of the board");
    }
    let limits = tenure.store().limits();
    let mut items = bad.into_iter().peekable();
    while items.peek().is_some() {
        let to = |key: &[u8]| Aside { epoch: fence.epoch.0, seq: fence.seq, key }.encode();
        let ops = next_commit(&mut items, limits, shard, to);
        if !ops.is_empty() {
            fence = commit(tenure, shard, fence, &ops).await?;
        }
    }
    Ok(fence)
}

/// As many moves as go into one commit. What the store would not take at its new place stays
/// where it is: nobody takes it for a record there either.
fn next_commit(
    items: &mut std::iter::Peekable<impl Iterator<Item = Item>>,
    limits: Limits,
    shard: Shard,
    to: impl Fn(&[u8]) -> Vec<u8>,
) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut bytes = 0;
    while let Some(item) = items.peek() {
        let key = item.key.as_bytes();
        let to = to(key);
        let stands_in = replacement(key, (shard.number, SHARDS)).map(|record| record.encode());
        let size = to.len() + item.value.len() + key.len() + stands_in.as_ref().map_or(0, Vec::len);
        if to.len() > limits.key_bytes || size > limits.commit_bytes {
            items.next();
            continue;
        }
        if ops.len() + 2 > limits.commit_ops || bytes + size > limits.commit_bytes {
            break;
        }
        bytes += size;
        if let Some(item) = items.next() {
            let instead = match stands_in {
                Some(value) => Op::Put(item.key, value),
                None => Op::Delete(item.key),
            };
            ops.extend([Op::Put(Key::new(to), item.value), instead]);
        }
    }
    ops
}

/// Sends it until it is known to have landed.
async fn commit(tenure: &Tenure, shard: Shard, fence: Fence, ops: &[Op]) -> Result<Fence, String> {
    let store = Arc::clone(tenure.store());
    let mut sent_before = false;
    loop {
        let failed = |why: &str| format!("shard {shard} of the board could not be cleared: {why}");
        match store.commit(shard, fence, ops).await {
            Ok(Commit::Done) => return Ok(fence.next()),
            // Only a try of our own can have moved it there.
            Ok(Commit::Fenced(at)) if sent_before && at == fence.next() => return Ok(at),
            Ok(Commit::Fenced(at)) => {
                return Err(failed(&format!("its fence stands at {at}: another host leads")));
            }
            Err(error) if error.may_pass() && tenure.may_act() => {
                let error = chain(&error);
                tracing::warn!(%shard, error, "moving records failed; trying again");
                tokio::time::sleep(PAUSE).await;
                if !tenure.may_act() {
                    return Err(failed("this host may not act any more"));
                }
                sent_before = true;
            }
            Err(error) => return Err(failed(&chain(&error))),
        }
    }
}
