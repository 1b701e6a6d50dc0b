use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::check;
use crate::error::Error;
use crate::model::{
    Commit, Fence, Item, KEY_BYTES, Key, Limits, Op, Page, RECORD_BYTES, Raise, SHARDS, Shard,
};
use crate::store::Shards;

use super::pool::Lane;
use super::query::Query;
use super::{Postgres, number};

const PAGE_ITEMS: i64 = 1000;
/// A page holds at least one record, however large.
const PAGE_BYTES: i64 = 1 << 20;

#[async_trait]
impl Shards for Postgres {
    fn limits(&self) -> Limits {
        Limits {
            commit_ops: 1024,
            commit_bytes: 8 << 20,
            value_bytes: RECORD_BYTES,
            key_bytes: KEY_BYTES,
        }
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        let wanted = number("epoch", epoch.0)?;
        let params: [&(dyn ToSql + Sync); 3] = [&i64::from(seat.0), &wanted, &i32::from(SHARDS)];
        let rows = self.pool.ask(Lane::Shards, Query::Raise, &params).await?;
        let mut fences = vec![Fence::default(); SHARDS.into()];
        for row in &rows {
            let shard: i32 = self.column(row, 0, Query::Raise)?;
            if let Some(fence) = usize::try_from(shard).ok().and_then(|at| fences.get_mut(at)) {
                *fence = self.fence_in(row, 1, Query::Raise)?;
            }
        }
        let highest = fences.iter().map(|fence| fence.epoch).max().unwrap_or_default();
        Ok(if highest > epoch { Raise::Fenced(highest) } else { Raise::Done(fences) })
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        let (seat, number) = place(shard);
        let rows = self.pool.ask(Lane::Shards, Query::Fence, &[&seat, &number]).await?;
        let first = rows.first();
        first.map_or_else(|| Ok(Fence::default()), |row| self.fence_in(row, 0, Query::Fence))
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let net = check::commit(self.limits(), ops)?;
        let (mut put, mut values, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (key, value) in net {
            match value {
                Some(value) => {
                    put.push(key.as_bytes());
                    values.push(value);
                }
                None => gone.push(key.as_bytes()),
            }
        }
        let (epoch, seq) = (number("epoch", at.epoch.0)?, number("seq", at.seq)?);
        let (seat, number) = place(shard);
        let again = async {
            loop {
                let params: [&(dyn ToSql + Sync); 7] =
                    [&seat, &number, &epoch, &seq, &put, &values, &gone];
                let rows = self.pool.ask(Lane::Shards, Query::Commit, &params).await?;
                match self.landing(&rows)? {
                    Landing::Done => return Ok(Commit::Done),
                    Landing::At(fence) if fence != at => return Ok(Commit::Fenced(fence)),
                    // The answer says that nothing was applied, so to ask again is safe.
                    Landing::At(_) => {}
                    Landing::NoFence if at != Fence::default() => {
                        return Ok(Commit::Fenced(Fence::default()));
                    }
                    Landing::NoFence => {
                        self.pool.ask(Lane::Shards, Query::Plant, &[&seat, &number]).await?;
                    }
                }
            }
        };
        self.pool.door().within("commit", again).await
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        let (seat, number) = place(shard);
        // The smallest key behind another one is that one with a zero.
        let from = after.map_or_else(Vec::new, |key| [key.as_bytes(), &[0]].concat());
        let params: [&(dyn ToSql + Sync); 5] = [&seat, &number, &from, &PAGE_ITEMS, &PAGE_BYTES];
        let rows = self.pool.ask(Lane::Shards, Query::Scan, &params).await?;
        let item = |row: &Row| {
            let key: Vec<u8> = self.column(row, 0, Query::Scan)?;
            Ok(Item { key: Key::new(key), value: self.column(row, 1, Query::Scan)? })
        };
        let items = rows.iter().map(item).collect::<Result<Vec<_>, Error>>()?;
        let found: i64 = rows.first().map_or(Ok(0), |row| self.column(row, 2, Query::Scan))?;
        let more = i64::try_from(items.len()).is_ok_and(|shown| shown < found);
        Ok(Page::of(items, more))
    }
}

/// What a statement for a commit came to.
enum Landing {
    Done,
    At(Fence),
    NoFence,
}

impl Postgres {
    fn landing(&self, rows: &[Row]) -> Result<Landing, Error> {
        let Some(row) = rows.first() else { return Ok(Landing::NoFence) };
        if self.column(row, 0, Query::Commit)? {
            return Ok(Landing::Done);
        }
        let epoch: Option<i64> = self.column(row, 1, Query::Commit)?;
        if epoch.is_none() {
            return Ok(Landing::NoFence);
        }
        self.fence_in(row, 1, Query::Commit).map(Landing::At)
    }

    fn fence_in(&self, row: &Row, first: usize, query: Query) -> Result<Fence, Error> {
        let epoch: i64 = self.column(row, first, query)?;
        let seq: i64 = self.column(row, first + 1, query)?;
        Ok(Fence { epoch: Epoch(epoch.unsigned_abs()), seq: seq.unsigned_abs() })
    }
}

fn place(shard: Shard) -> (i64, i32) {
    (shard.seat.0.into(), shard.number.into())
}
