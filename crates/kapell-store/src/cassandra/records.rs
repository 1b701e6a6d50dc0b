use std::sync::PoisonError;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use kapell_core::seat::{Epoch, Seat};
use scylla::value::CqlValue;
use tokio::time::timeout;

use super::Cassandra;
use super::answer::{Answer, Stood};
use super::fault::Failure;
use super::link::Values;
use super::query::Query;
use super::slices::{Note, end_of};
use crate::check;
use crate::error::Error;
use crate::model::{
    Commit, Fence, Item, KEY_BYTES, Key, Limits, Op, Page, RECORD_BYTES, Raise, Shard,
};
use crate::store::Shards;

/// No setting of a server limits how many; this many are one message and one entry of its log.
const COMMIT_OPS: usize = 1024;
/// A server takes half a segment of its log, 16 MiB by default, and writes a commit down three times on the way.
const COMMIT_BYTES: usize = 1 << 20;

#[async_trait]
impl Shards for Cassandra {
    fn limits(&self) -> Limits {
        Limits {
            commit_ops: COMMIT_OPS,
            commit_bytes: COMMIT_BYTES,
            value_bytes: RECORD_BYTES,
            key_bytes: KEY_BYTES,
        }
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        let raise = async {
            let each = Shard::all(seat).map(|shard| self.raise_one(shard, epoch));
            let fences = try_join_all(each).await?;
            let highest = fences.iter().map(|fence| fence.epoch).max().unwrap_or_default();
            Ok(if highest > epoch { Raise::Fenced(highest) } else { Raise::Done(fences) })
        };
        self.within("raise", raise).await
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        self.within("fence", self.fence_of(shard)).await
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let net = check::commit(self.limits(), ops)?;
        let gone =
            || net.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key.as_bytes());
        let deletes = gone().count();
        let note = self.bounds().note(shard, deletes, gone().next_back());
        let mut parts = vec![noting(self.moving(shard, at, at.next()), note.clone())];
        if at == Fence::default() {
            parts.push(self.front(shard));
        }
        let place = self.place(shard);
        parts.extend(net.into_iter().map(|(key, value)| {
            let blob = |bytes: &[u8]| Some(CqlValue::Blob(bytes.to_vec()));
            let at = place.iter().cloned().chain([blob(key.as_bytes())]);
            match value {
                Some(value) => (Query::Put, [blob(value)].into_iter().chain(at).collect()),
                None => (Query::Remove, at.collect()),
            }
        }));
        let commit = async {
            Ok(match Answer::of(self.link.batch(parts).await?)? {
                Answer::Applied => Commit::Done,
                Answer::Refused(stood) => Commit::Fenced(fence_in(&stood)),
            })
        };
        let answer = self.within("commit", commit).await;
        match answer {
            Ok(Commit::Done) => self.bounds().noted(shard, deletes, note),
            Ok(Commit::Fenced(_)) => {}
            // They may be gone, and what was to be noted may not be there.
            Err(_) => self.bounds().noted(shard, deletes, Note::Nothing),
        }
        answer
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        // The first one of all is behind the front.
        let from = after.map_or_else(Vec::new, |key| key.as_bytes().to_vec());
        self.within("scan", self.scan_page(shard, from)).await
    }
}

impl Cassandra {
    async fn fence_of(&self, shard: Shard) -> Result<Fence, Failure> {
        let found = self.link.ask(Query::Fence, self.place(shard)).await?.into_rows_result()?;
        let row = found.maybe_first_row::<(Option<i64>, Option<i64>, Option<Vec<Vec<u8>>>)>()?;
        let (epoch, seq, marks) = row.unwrap_or_default();
        self.bounds().learn(shard, marks.unwrap_or_default());
        let number = |it: Option<i64>| it.unwrap_or_default().cast_unsigned();
        Ok(Fence { epoch: Epoch(number(epoch)), seq: number(seq) })
    }

    /// Where the fence stands when it stands at this epoch or above.
    async fn raise_one(&self, shard: Shard, epoch: Epoch) -> Result<Fence, Failure> {
        let mut stands = self.fence_of(shard).await?;
        while stands.epoch < epoch {
            let to = Fence { epoch, seq: 0 };
            let raise = vec![(Query::Move, self.moving(shard, stands, to)), self.front(shard)];
            stands = match Answer::of(self.link.batch(raise).await?)? {
                Answer::Applied => to,
                Answer::Refused(stood) => fence_in(&stood),
            };
        }
        Ok(stands)
    }

    /// Deleted records do not count, but a server refuses to pass too many: then the way is cut, and gone in parts.
    async fn scan_page(&self, shard: Shard, mut from: Vec<u8>) -> Result<Page, Failure> {
        let wanted = self.bounds().page(shard);
        let mut items: Vec<Item> = Vec::new();
        let began = self.clock.now();
        let took = || self.clock.now().since(began);
        loop {
            let to = self.bounds().behind(shard, &from);
            let left = wanted - items.len();
            // What ends here, just before the limit of the call, is learned from.
            let limit = (self.timeout * 15 / 16).saturating_sub(took());
            let slice = self.slice(shard, &from, end_of(to.as_deref()), left);
            match timeout(limit, slice).await.unwrap_or(Err(Failure::Late(self.timeout))) {
                Ok(found) => items.extend(found),
                Err(failure) if failure.is_about_tombstones() => {
                    if !self.bounds().has_marks(shard) {
                        self.fence_of(shard).await?;
                    }
                    if self.bounds().cut(shard, &from, to.as_deref()) {
                        continue;
                    }
                    return Err(failure);
                }
                Err(failure) => {
                    if failure.is_about_amount() {
                        self.bounds().ease(shard, &from, to.as_deref());
                    }
                    return Err(failure);
                }
            }
            if items.len() >= wanted {
                self.bounds().fits(shard, &items);
                return Ok(Page::of(items, true));
            }
            let Some(to) = to else {
                self.bounds().fits(shard, &items);
                return Ok(Page { items, next: None });
            };
            // A short page, even an empty one, is better than one that comes too late: what was passed is not passed again.
            if took() > self.timeout / 4 {
                return Ok(Page { items, next: Some(Key::new(to)) });
            }
            from = to;
        }
    }

    /// The partition of a shard.
    fn place(&self, shard: Shard) -> Values {
        vec![
            Some(CqlValue::Text(self.link.store().to_owned())),
            Some(CqlValue::BigInt(shard.seat.0.into())),
            Some(CqlValue::Int(shard.number.into())),
        ]
    }

    /// A row in front of all records, which is never deleted. Whoever looks at the fence of a partition is shown its first row
    /// that is there, too: without this one a node would pass all deleted ones for it, and refuse if they are too many.
    fn front(&self, shard: Shard) -> (Query, Values) {
        let empty = || Some(CqlValue::Blob(Vec::new()));
        let at = self.place(shard).into_iter().chain([empty()]);
        (Query::Put, [empty()].into_iter().chain(at).collect())
    }

    /// A fence at zero was never written.
    fn moving(&self, shard: Shard, from: Fence, to: Fence) -> Values {
        let value = |it: u64| Some(CqlValue::BigInt(it.cast_signed()));
        let is_written = from != Fence::default();
        let condition = |it: u64| value(it).filter(|_| is_written);
        let mut values = vec![value(to.epoch.0), value(to.seq)];
        values.extend(self.place(shard));
        values.extend([condition(from.epoch.0), condition(from.seq)]);
        values
    }

    pub(super) fn bounds(&self) -> std::sync::MutexGuard<'_, super::Bounds> {
        self.bounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What lies behind `from`, up to `to`.
    async fn slice(
        &self,
        shard: Shard,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<Item>, Failure> {
        let mut values = self.place(shard);
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let blob = |bytes: &[u8]| Some(CqlValue::Blob(bytes.to_vec()));
        values.extend([blob(from), blob(to), Some(CqlValue::Int(limit))]);
        let found = self.link.ask(Query::Scan, values).await?;
        let found = found.into_rows_result()?;
        let rows = found.rows::<(Vec<u8>, Vec<u8>)>()?;
        rows.map(|row| {
            let (key, value) = row?;
            Ok(Item { key: Key::new(key), value })
        })
        .collect()
    }
}

/// A move of the fence that notes something, too.
fn noting(mut moving: Values, note: Note) -> (Query, Values) {
    let set =
        |marks: Vec<Vec<u8>>| Some(CqlValue::Set(marks.into_iter().map(CqlValue::Blob).collect()));
    // Behind what the fence is set to.
    let (query, marks) = match note {
        Note::Nothing => return (Query::Move, moving),
        Note::Mark(mark) => (Query::Mark, set(vec![mark])),
        Note::Only(marks) => (Query::Thin, set(marks)),
    };
    moving.insert(2, marks);
    (query, moving)
}

fn fence_in(stood: &Stood) -> Fence {
    let number = |name| stood.number(name).unwrap_or_default();
    Fence { epoch: Epoch(number("epoch")), seq: number("seq") }
}
