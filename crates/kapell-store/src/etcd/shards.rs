use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use etcd_client::{Compare, GetOptions, GetResponse, KeyValue, Txn, TxnOp};
use futures_util::future::try_join_all;
use kapell_core::seat::{Epoch, Seat};

use super::failure::Failure;
use super::paths::{behind, end_of, joined};
use super::{Etcd, absent, holds, revision_of, values_of};
use crate::check;
use crate::error::Error;
use crate::model::{
    Commit, Fence, Item, KEY_BYTES, Key, Limits, Op, Page, RECORD_BYTES, Raise, Shard,
};
use crate::store::Shards;

/// What etcd takes by default in one request: 128 operations, of which the fence is one, and
/// 1.5 MiB, of which the rest is for the root in front of each key and for the encoding.
const COMMIT_OPS: usize = 127;
const COMMIT_BYTES: usize = (1536 - 64) << 10;

/// Pages are asked for by number of records and should have about so many bytes.
const PAGE_BYTES: usize = 1 << 20;
/// So few fit into an answer whatever their size.
const SMALLEST_PAGE: i64 = 16;
pub(super) const FIRST_PAGE: i64 = 64;
const LARGEST_PAGE: i64 = 1000;

#[async_trait]
impl Shards for Etcd {
    fn limits(&self) -> Limits {
        Limits {
            commit_ops: COMMIT_OPS,
            commit_bytes: COMMIT_BYTES,
            value_bytes: RECORD_BYTES,
            key_bytes: KEY_BYTES,
        }
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        self.within("raise", self.raise_all(seat, epoch)).await
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        let read = async {
            let found = self.link.get(&self.paths.fence(shard), GetOptions::new()).await?;
            parse_fence(found.kvs().first().map(KeyValue::value))
        };
        self.within("fence", read).await
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let net = check::commit(self.limits(), ops)?;
        self.within("commit", self.commit_net(shard, at, net)).await
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        self.within("scan", self.scan_page(shard, after)).await
    }
}

impl Etcd {
    async fn raise_all(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Failure> {
        let paths = self.paths.fences(seat);
        let reads =
            || -> Vec<_> { paths.iter().map(|path| TxnOp::get(path.clone(), None)).collect() };
        let mut stand = self.fences(&paths).await?;
        loop {
            if let Some(highest) = stand.iter().map(|fence| fence.epoch).max()
                && highest > epoch
            {
                return Ok(Raise::Fenced(highest));
            }
            if stand.iter().all(|fence| fence.epoch == epoch) {
                return Ok(Raise::Done(stand));
            }
            let raised =
                |fence: Fence| if fence.epoch == epoch { fence } else { Fence { epoch, seq: 0 } };
            let unchanged: Vec<_> =
                paths.iter().zip(&stand).map(|(path, fence)| stands_at(path, *fence)).collect();
            let puts: Vec<_> = paths
                .iter()
                .zip(&stand)
                .filter(|(_, fence)| fence.epoch != epoch)
                .map(|(path, fence)| TxnOp::put(path.clone(), raised(*fence).to_bytes(), None))
                .collect();
            let txn = Txn::new().when(unchanged).and_then(puts).or_else(reads());
            let answer = self.link.txn(txn).await?;
            if answer.succeeded() {
                return Ok(Raise::Done(stand.into_iter().map(raised).collect()));
            }
            let actual = values_of(&answer);
            stand = actual.iter().map(|it| parse_fence(it.as_deref())).collect::<Result<_, _>>()?;
        }
    }

    /// Where fences stood at one moment.
    async fn fences(&self, paths: &[Vec<u8>]) -> Result<Vec<Fence>, Failure> {
        let Some((first, others)) = paths.split_first() else { return Ok(Vec::new()) };
        let first = self.link.get(first, GetOptions::new()).await?;
        let then = GetOptions::new().with_revision(revision_of(&first));
        let others = others.iter().map(|path| self.link.get(path, then.clone()));
        let found = [vec![first], try_join_all(others).await?].concat();
        found.iter().map(|it| parse_fence(it.kvs().first().map(KeyValue::value))).collect()
    }

    async fn commit_net(
        &self,
        shard: Shard,
        at: Fence,
        net: BTreeMap<&Key, Option<&[u8]>>,
    ) -> Result<Commit, Failure> {
        let fence = self.paths.fence(shard);
        let records = self.paths.records(shard);
        let mut ops: Vec<_> = net
            .into_iter()
            .map(|(key, value)| {
                let path = joined(&records, key.as_bytes());
                match value {
                    Some(value) => TxnOp::put(path, value, None),
                    None => TxnOp::delete(path, None),
                }
            })
            .collect();
        ops.push(TxnOp::put(fence.clone(), at.next().to_bytes(), None));
        let txn = Txn::new()
            .when([stands_at(&fence, at)])
            .and_then(ops)
            .or_else([TxnOp::get(fence, None)]);
        let answer = self.link.txn(txn).await?;
        if answer.succeeded() {
            return Ok(Commit::Done);
        }
        let actual = values_of(&answer).pop().flatten();
        Ok(Commit::Fenced(parse_fence(actual.as_deref())?))
    }

    /// etcd counts a page in records, so how many to ask for is learned from the page before.
    /// Asking for too many costs another try: an answer that is too long is refused unread.
    async fn scan_page(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Failure> {
        let records = self.paths.records(shard);
        let from = match after {
            Some(key) => behind(&joined(&records, key.as_bytes())),
            None => records.clone(),
        };
        let mut limit = self.page.load(Ordering::Relaxed);
        let found = loop {
            let options = GetOptions::new().with_range(end_of(&records)).with_limit(limit);
            match self.link.get(&from, options).await {
                Err(failure) if failure.is_answer_too_long() && limit > SMALLEST_PAGE => {
                    limit = SMALLEST_PAGE;
                }
                found => break found?,
            }
        };
        self.page.store(next_page(&found), Ordering::Relaxed);
        let more = found.more();
        let items = { found }.take_kvs().into_iter().map(|kv| {
            let (path, value) = kv.into_key_value();
            Item { key: Key::new(&path[records.len()..]), value }
        });
        Ok(Page::of(items.collect(), more))
    }
}

fn next_page(found: &GetResponse) -> i64 {
    let bytes: usize = found.kvs().iter().map(|kv| kv.key().len() + kv.value().len()).sum();
    let average = bytes / found.kvs().len().max(1);
    let fitting = PAGE_BYTES / average.max(1);
    i64::try_from(fitting).unwrap_or(LARGEST_PAGE).clamp(SMALLEST_PAGE, LARGEST_PAGE)
}

/// A fence is not written before it is first raised.
fn stands_at(path: &[u8], fence: Fence) -> Compare {
    if fence == Fence::default() { absent(path) } else { holds(path, &fence.to_bytes()) }
}

fn parse_fence(value: Option<&[u8]>) -> Result<Fence, Failure> {
    let Some(bytes) = value else { return Ok(Fence::default()) };
    Fence::from_bytes(bytes)
        .ok_or_else(|| Failure::odd(format!("a fence of {} bytes", bytes.len())))
}
