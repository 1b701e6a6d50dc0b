use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};
use tokio::task::yield_now;

use super::Fault;
use super::faulty::{Faulty, State};
use crate::check;
use crate::error::Error;
use crate::model::{
    Commit, Fence, Item, KEY_BYTES, Key, Limits, Op, Page, RECORD_BYTES, Raise, Shard,
};
use crate::store::{Shards, Store};

const PAGE: usize = 40;

impl Faulty {
    fn fenced(&self, shard: Shard) -> Shard {
        let seat = if self.is(Fault::SeatsShareFences) { Seat(0) } else { shard.seat };
        Shard { seat, ..shard }
    }

    fn recorded(&self, shard: Shard) -> Shard {
        let number = if self.is(Fault::ShardsShareRecords) { 0 } else { shard.number };
        Shard { number, ..shard }
    }

    fn lets_in(&self, state: &State, shard: Shard, at: Fence) -> bool {
        let fence = state.piles.get(&self.fenced(shard)).map(|pile| pile.fence).unwrap_or_default();
        let (epoch, seq) = (fence.epoch == at.epoch, fence.seq == at.seq);
        (epoch || self.is(Fault::CommitIgnoresEpoch)) && (seq || self.is(Fault::CommitIgnoresSeq))
    }

    fn apply(&self, state: &mut State, shard: Shard, net: &BTreeMap<&Key, Option<&[u8]>>) {
        let pile = state.piles.entry(self.recorded(shard)).or_default();
        if self.is(Fault::StaleScan) {
            pile.former.clone_from(&pile.records);
        }
        for (key, value) in net {
            match value {
                Some(value) => pile.records.insert((*key).clone(), value.to_vec()),
                None => pile.records.remove(*key),
            };
        }
    }

    fn advance(&self, state: &mut State, shard: Shard, at: Fence) {
        let pile = state.piles.entry(self.fenced(shard)).or_default();
        pile.fence = Fence { epoch: pile.fence.epoch.max(at.epoch), seq: at.seq + 1 };
    }

    fn net<'a>(&self, ops: &'a [Op]) -> Result<BTreeMap<&'a Key, Option<&'a [u8]>>, Error> {
        let mut limits = self.limits();
        if self.is(Fault::LimitIsOneLess) {
            limits.commit_ops -= 1;
        }
        if self.is(Fault::CommitHasNoLimits) {
            limits.value_bytes = usize::MAX;
        }
        if self.is(Fault::FirstChangeWins) {
            let mut net = BTreeMap::new();
            for op in ops {
                net.entry(op.key()).or_insert(match op {
                    Op::Put(_, value) => Some(value.as_slice()),
                    Op::Delete(_) => None,
                });
            }
            return Ok(net);
        }
        check::commit(limits, ops)
    }
}

#[async_trait]
impl Shards for Faulty {
    fn limits(&self) -> Limits {
        Limits {
            commit_ops: 100,
            commit_bytes: 1 << 20,
            value_bytes: RECORD_BYTES,
            key_bytes: KEY_BYTES,
        }
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        let mut state = self.state();
        let shards = || Shard::all(seat).map(|shard| self.fenced(shard));
        let fence = |state: &State, shard| state.piles.get(&shard).map(|pile| pile.fence);
        let highest = shards().filter_map(|shard| fence(&state, shard)).max().unwrap_or_default();
        if highest.epoch > epoch && !self.is(Fault::RaiseLowers) {
            return Ok(Raise::Fenced(highest.epoch));
        }
        for shard in shards() {
            let pile = state.piles.entry(shard).or_default();
            let skips = self.is(Fault::RaiseSkipsAShard) && shard.number == 13;
            if !skips && (pile.fence.epoch != epoch || self.is(Fault::RaiseResets)) {
                pile.fence = Fence { epoch, seq: 0 };
            }
        }
        Ok(Raise::Done(shards().map(|shard| state.piles[&shard].fence).collect()))
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        let state = self.state();
        Ok(state.piles.get(&self.fenced(shard)).map(|pile| pile.fence).unwrap_or_default())
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let net = self.net(ops)?;
        let decide = |state: &State| self.lets_in(state, shard, at);
        let in_pieces = self.is(Fault::CommitInPieces);
        let write = |state: &mut State| {
            if !in_pieces {
                self.apply(state, shard, &net);
            }
            if !(ops.is_empty() && self.is(Fault::EmptyCommitKeepsFence)) {
                self.advance(state, shard, at);
            }
        };
        if self.write(self.is(Fault::TwoStepCommit), decide, write).await {
            if in_pieces {
                for (key, value) in net {
                    self.apply(&mut self.state(), shard, &BTreeMap::from([(key, value)]));
                    yield_now().await;
                }
            }
            return Ok(Commit::Done);
        }
        let stands = self.fence(shard).await?;
        if self.is(Fault::CommitAgainIsDone) && stands == at.next() {
            self.apply(&mut self.state(), shard, &net);
            return Ok(Commit::Done);
        }
        let asked = self.is(Fault::FencedSaysWhatWasAsked);
        Ok(Commit::Fenced(if asked { at } else { stands }))
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        let mut state = self.state();
        let shard = self.recorded(shard);
        let Some(pile) = state.piles.get(&shard) else {
            return Ok(Page { items: Vec::new(), next: None });
        };
        let records = if self.is(Fault::StaleScan) { &pile.former } else { &pile.records };
        let bound = match after {
            None => Bound::Unbounded,
            Some(key) if self.is(Fault::ScanRepeats) => Bound::Included(key),
            Some(key) => Bound::Excluded(key),
        };
        let offset = after.and_then(|key| state.offsets.get(&(shard, key.clone())).copied());
        let offset = offset.filter(|_| self.is(Fault::ScanByOffset));
        let bound = if offset.is_some() { Bound::Unbounded } else { bound };
        let range = records.range::<Key, _>((bound, Bound::Unbounded));
        let mut items: Vec<Item> = range
            .skip(offset.unwrap_or_default())
            .take(PAGE + 1)
            .map(|(key, value)| Item { key: key.clone(), value: value.clone() })
            .collect();
        let more = items.len() > PAGE && !self.is(Fault::ScanEndsEarly);
        items.truncate(PAGE);
        if self.is(Fault::ScanSortsSigned) {
            items.sort_by_key(|item| item.key.as_bytes().first().map(|byte| byte.cast_signed()));
        }
        if self.is(Fault::ScanByOffset)
            && let Some(last) = items.last()
        {
            let end = offset
                .unwrap_or_else(|| records.range::<Key, _>(..=&last.key).count() - items.len());
            state.offsets.insert((shard, last.key.clone()), end + items.len());
        }
        Ok(Page::of(items, more))
    }
}

impl Store for Faulty {
    fn name(&self) -> &'static str {
        "faulty:"
    }
}
