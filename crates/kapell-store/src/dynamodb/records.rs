//! Shards: a fence and records, changed together by transactions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    Delete, Get, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactGetItem,
    TransactWriteItem, Update,
};
use futures_util::future::try_join_all;
use kapell_core::seat::{Epoch, Seat};

use super::failure::Failure;
use super::item::{
    Attributes, FENCE, PARTITION, SORT, bytes, bytes_in, fence_in, fence_partition, key_in, number,
    pack, record_partition, text, unpack,
};
use super::turns::ask;
use super::{Core, DynamoDb};
use crate::check;
use crate::error::Error;
use crate::model::{
    Commit, Fence, Item, KEY_BYTES, Key, Limits, Op, Page, RECORD_BYTES, Raise, Shard,
};
use crate::store::Shards;

/// What a transaction may hold: 100 items, of which the fence is one, and 4 MB. The rest of that is for the fence, which
/// holds the keys once more, and for what stands beside each key and value.
const COMMIT_OPS: usize = 99;
const COMMIT_BYTES: usize = (4 << 20) - (256 << 10);

type Net<'a> = BTreeMap<&'a Key, Option<&'a [u8]>>;

#[async_trait]
impl Shards for DynamoDb {
    fn limits(&self) -> Limits {
        Limits {
            commit_ops: COMMIT_OPS,
            commit_bytes: COMMIT_BYTES,
            value_bytes: RECORD_BYTES,
            key_bytes: KEY_BYTES,
        }
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        self.core.within("raise", self.core.raise_all(seat, epoch)).await
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        self.core.within("fence", self.core.read_fence(shard)).await
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let net = check::commit(self.limits(), ops)?;
        self.core.within("commit", self.core.commit_net(shard, at, &net)).await
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        self.core.within("scan", self.core.scan_page(shard, after)).await
    }
}

/// Which keys the last commit has changed.
fn keys_in(fence: Option<&Attributes>) -> Result<Vec<Key>, Failure> {
    let packed = fence.map(|item| bytes_in(item, "keys")).transpose()?.flatten();
    unpack(&packed.unwrap_or_default())
}

fn odd(error: &BuildError) -> Failure {
    Failure::Odd(error.to_string())
}

impl Core {
    async fn raise_all(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Failure> {
        let raises = Shard::all(seat).map(|shard| self.raise_one(shard, epoch));
        let fences = try_join_all(raises).await?;
        let highest = fences.iter().map(|fence| fence.epoch).max().unwrap_or_default();
        Ok(if highest > epoch { Raise::Fenced(highest) } else { Raise::Done(fences) })
    }

    /// Where the fence stands then. What was committed under an earlier one can be read in full after this.
    async fn raise_one(&self, shard: Shard, epoch: Epoch) -> Result<Fence, Failure> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PARTITION, text(fence_partition(shard)))
            .key(SORT, bytes(FENCE.as_bytes()))
            // The keys of the last commit stay: it may not be in place yet, and then the next leader wants to know.
            .update_expression("SET epoch = :epoch, seq = :zero")
            .condition_expression("attribute_not_exists(epoch) OR epoch < :epoch")
            .expression_attribute_values(":epoch", number(epoch.0))
            .expression_attribute_values(":zero", number(0))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let found = match ask(self.timeout, || update.clone().send()).await {
            Ok(done) => done.attributes,
            // Also if an earlier attempt did it.
            Err(Failure::Condition { found, .. }) => found,
            Err(failure) => return Err(failure),
        };
        self.in_place(shard, &keys_in(found.as_ref())?).await?;
        fence_in(found.as_ref())
    }

    /// Waits until a commit is in place item by item.
    ///
    /// A transaction that is decided is put in place one item after the other, and plain reads show of each what stands there
    /// at the time. To read the same items in a transaction is refused until that is over.
    async fn in_place(&self, shard: Shard, keys: &[Key]) -> Result<(), Failure> {
        if keys.is_empty() {
            return Ok(());
        }
        let get = |key: &Key| {
            let get = Get::builder()
                .table_name(&self.table)
                .key(PARTITION, text(record_partition(shard)))
                .key(SORT, bytes(key.as_bytes()))
                .projection_expression(PARTITION)
                .build();
            Ok(TransactGetItem::builder().get(get.map_err(|error| odd(&error))?).build())
        };
        let gets = keys.iter().map(get).collect::<Result<Vec<_>, Failure>>()?;
        let read = self.client.transact_get_items().set_transact_items(Some(gets));
        ask(self.timeout, || read.clone().send()).await.map(drop)
    }

    /// Where the fence stands, once all that was committed up to there can be read in full. It is read in a transaction,
    /// too: a plain read might show it as it was before a commit of which a part is in place already.
    async fn read_fence(&self, shard: Shard) -> Result<Fence, Failure> {
        let get = Get::builder()
            .table_name(&self.table)
            .key(PARTITION, text(fence_partition(shard)))
            .key(SORT, bytes(FENCE.as_bytes()))
            .build()
            .map_err(|error| odd(&error))?;
        let get = TransactGetItem::builder().get(get).build();
        let read = self.client.transact_get_items().transact_items(get);
        let found = ask(self.timeout, || read.clone().send()).await?;
        let found = found.responses().first().and_then(|answer| answer.item());
        self.in_place(shard, &keys_in(found)?).await?;
        fence_in(found)
    }

    async fn commit_net(&self, shard: Shard, at: Fence, net: &Net<'_>) -> Result<Commit, Failure> {
        let mut writes =
            vec![TransactWriteItem::builder().update(self.next_fence(shard, at, net)?).build()];
        for (key, value) in net {
            writes.push(self.change(shard, key, *value)?);
        }
        let token: String = self.stamp().iter().map(|byte| format!("{byte:02x}")).collect();
        let commit = self
            .client
            .transact_write_items()
            .set_transact_items(Some(writes))
            // Within one call the same transaction may be sent again: one that was carried out is not carried out twice.
            .client_request_token(token);
        // It is never closed.
        let turn = self.lane.acquire().await;
        let answer = ask(self.timeout, || commit.clone().send()).await;
        drop(turn);
        match answer {
            Ok(_) => Ok(Commit::Done),
            // Known by its token, it would have been done. Whoever sends it once more learns from the fence.
            Err(Failure::Condition { repeated: true, .. }) => Err(Failure::Untold),
            Err(Failure::Condition { found, .. }) => {
                let stands = fence_in(found.as_ref())?;
                if stands == at.next() {
                    let keys: Vec<Key> = net.keys().map(|key| (*key).clone()).collect();
                    self.in_place(shard, &keys).await?;
                }
                Ok(Commit::Fenced(stands))
            }
            Err(failure) => Err(failure),
        }
    }

    fn next_fence(&self, shard: Shard, at: Fence, net: &Net<'_>) -> Result<Update, Failure> {
        let stands = "epoch = :epoch AND seq = :seq";
        let condition = if at == Fence::default() {
            format!("attribute_not_exists(epoch) OR ({stands})")
        } else {
            stands.to_owned()
        };
        let update = Update::builder()
            .table_name(&self.table)
            .key(PARTITION, text(fence_partition(shard)))
            .key(SORT, bytes(FENCE.as_bytes()))
            .update_expression("SET epoch = :epoch, seq = :next, #keys = :keys")
            .expression_attribute_names("#keys", "keys")
            .expression_attribute_values(":epoch", number(at.epoch.0))
            .expression_attribute_values(":seq", number(at.seq))
            .expression_attribute_values(":next", number(at.next().seq))
            .expression_attribute_values(":keys", bytes(&pack(net.keys().copied())))
            .condition_expression(condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        update.build().map_err(|error| odd(&error))
    }

    fn change(
        &self,
        shard: Shard,
        key: &Key,
        value: Option<&[u8]>,
    ) -> Result<TransactWriteItem, Failure> {
        let (partition, sort) = (text(record_partition(shard)), bytes(key.as_bytes()));
        let write = TransactWriteItem::builder();
        Ok(match value {
            Some(value) => {
                let put = Put::builder().table_name(&self.table);
                let put = put.item(PARTITION, partition).item(SORT, sort).item("v", bytes(value));
                write.put(put.build().map_err(|error| odd(&error))?).build()
            }
            None => {
                let delete = Delete::builder().table_name(&self.table);
                let delete = delete.key(PARTITION, partition).key(SORT, sort);
                write.delete(delete.build().map_err(|error| odd(&error))?).build()
            }
        })
    }

    /// The service ends a page at 1 MB, and says where, also of one that is empty.
    async fn scan_page(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Failure> {
        let mut query = self
            .client
            .query()
            .table_name(&self.table)
            .expression_attribute_values(":shard", text(record_partition(shard)))
            .consistent_read(true);
        query = match after {
            Some(after) if !after.as_bytes().is_empty() => query
                .key_condition_expression("pk = :shard AND sk > :after")
                .expression_attribute_values(":after", bytes(after.as_bytes())),
            Some(_) | None => query.key_condition_expression("pk = :shard"),
        };
        let turn = self.lane.acquire().await;
        let page = ask(self.timeout, || query.clone().send()).await?;
        drop(turn);
        let item = |item: &_| {
            let value = bytes_in(item, "v")?;
            let damaged =
                || Failure::Odd(format!("the table is damaged: a record of {shard} has no value"));
            Ok(Item { key: key_in(item)?, value: value.ok_or_else(damaged)? })
        };
        let items = page.items().iter().map(item).collect::<Result<Vec<_>, Failure>>()?;
        let next = page.last_evaluated_key().map(key_in).transpose()?;
        Ok(Page { items, next })
    }
}
