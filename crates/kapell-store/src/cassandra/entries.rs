use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use scylla::response::PagingState;
use scylla::value::{CqlDuration, CqlTimestamp};
use tokio::time::Instant;

use super::Cassandra;
use super::answer::{Answer, Stood};
use super::fault::Failure;
use super::query::Query;
use crate::check;
use crate::error::Error;
use crate::model::{Entry, Expiry, Generation, Held, Key, Write};
use crate::store::Ttl;
use crate::watch::Watch;

const YEAR_MS: i64 = 366 * 24 * 3600 * 1000;
/// Longer times to live are cut to this.
const LONGEST_MS: i64 = 100 * YEAR_MS;
/// What stands until it is deleted: longer than anyone can ask for.
const FOREVER_MS: i64 = 250 * YEAR_MS;
/// What has expired for good.
const GONE: CqlTimestamp = CqlTimestamp(0);
/// So many entries are read at a time when all are.
const AT_ONCE: usize = 16;

/// What a row says.
type Seen = (i64, Option<Vec<u8>>, Option<CqlTimestamp>, CqlTimestamp);

/// What a row says among all others, and what is kept of that.
type Listed<'a> = (&'a str, Vec<u8>, Option<i64>, Option<CqlTimestamp>);
type Row = (Vec<u8>, Option<Generation>);

/// What is to become of what stands.
#[derive(Clone, Copy)]
enum Change<'a> {
    To(&'a [u8], CqlDuration),
    Delete,
}

#[async_trait]
impl Ttl for Cassandra {
    fn expiry(&self) -> Expiry {
        Expiry { shortest: Duration::from_millis(100), lag: Duration::ZERO }
    }

    async fn prepare(&self, _ttl: Duration) -> Result<(), Error> {
        Ok(())
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, value)?;
        self.within("insert_if_absent", self.insert(key, seen, value, lasting(ttl))).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, new)?;
        let change = Change::To(new, lasting(ttl));
        let (key, sent) = (key.as_bytes(), Instant::now());
        let swapped = self.within("compare_and_swap", self.change(key, old, change)).await;
        match (&swapped, ttl) {
            (Ok(Write::Done), Some(ttl)) if new == old => self.own.renewed(key, sent, ttl),
            (Ok(_) | Err(_), _) => self.own.forget(key),
        }
        swapped
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        self.own.forget(key.as_bytes());
        let deleted = self.change(key.as_bytes(), old, Change::Delete);
        self.within("compare_and_delete", deleted).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        self.within("read", self.look(key.as_bytes())).await
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        self.look_at_all().await
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        check::entry(key, &[])?;
        self.within("lift", self.lift_generation(key.as_bytes(), floor)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        self.within("watch", self.watch_key(key.as_bytes().to_vec())).await
    }
}

impl Cassandra {
    async fn insert(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        lasts: CqlDuration,
    ) -> Result<Write, Failure> {
        let (store, key) = (self.link.store(), key.as_bytes());
        let asked = if seen == Generation::default() {
            self.link.ask(Query::InsertFirst, (value, lasts, store, key)).await?
        } else {
            let (now, next) = (seen.0.cast_signed(), seen.next().0.cast_signed());
            self.link.ask(Query::InsertNext, (next, value, lasts, store, key, now)).await?
        };
        Ok(match Answer::of(asked)? {
            Answer::Applied => Write::Done,
            Answer::Refused(_) => Write::Lost,
        })
    }

    /// Asks for a change of what stands, until it is certain what that is.
    async fn change(&self, key: &[u8], old: &[u8], to: Change<'_>) -> Result<Write, Failure> {
        let store = self.link.store();
        loop {
            let asked = match to {
                Change::To(new, lasts) if new == old => {
                    self.link.ask(Query::Renew, (lasts, store, key, old)).await?
                }
                Change::To(new, lasts) => {
                    self.link.ask(Query::Swap, (new, lasts, store, key, old)).await?
                }
                Change::Delete => self.link.ask(Query::Delete, (store, key, old)).await?,
            };
            let Answer::Refused(stood) = Answer::of(asked)? else { return Ok(Write::Done) };
            let Some(expired) = expired_at(&stood, old) else { return Ok(Write::Lost) };
            if self.settle(key, old, expired).await? {
                return Ok(Write::Lost);
            }
        }
    }

    /// Makes it final that an entry has expired; false if it changed meanwhile.
    async fn settle(&self, key: &[u8], value: &[u8], at: CqlTimestamp) -> Result<bool, Failure> {
        let store = self.link.store();
        let asked = self.link.ask(Query::Settle, (store, key, value, at)).await?;
        Ok(matches!(Answer::of(asked)?, Answer::Applied))
    }

    async fn look(&self, key: &[u8]) -> Result<Entry, Failure> {
        let store = self.link.store();
        loop {
            let found = self.link.ask(Query::Read, (store, key)).await?.into_rows_result()?;
            let Some((generation, value, expires, now)) = found.maybe_first_row::<Seen>()? else {
                return Ok(Entry::default());
            };
            let generation = Generation(generation.cast_unsigned());
            let (Some(value), Some(expires)) = (value, expires) else {
                return Err(Failure::Odd("an entry has no value or no time".to_owned()));
            };
            if expires == GONE {
                return Ok(Entry { generation, held: None });
            }
            let left_ms = expires.0.saturating_sub(now.0);
            if left_ms > 0 {
                let remaining =
                    (left_ms <= LONGEST_MS).then(|| Duration::from_millis(left_ms.unsigned_abs()));
                return Ok(Entry { generation, held: Some(Held { value, remaining }) });
            }
            if self.settle(key, &value, expires).await? {
                return Ok(Entry { generation, held: None });
            }
        }
    }

    /// Which keys there are is read from most nodes, where all is that was acknowledged or that a serial read has shown to
    /// anyone; what they hold, one by one, as always. But what had gone for good by then need not be looked at: a row that
    /// says so was written by a change that is decided, and whatever was acknowledged after it would have been read instead.
    ///
    /// There may be many: it is each question that has a limit.
    async fn look_at_all(&self) -> Result<Vec<(Key, Entry)>, Error> {
        let (mut all, mut keys) = (BTreeMap::new(), Vec::new());
        let mut next = Some(PagingState::start());
        while let Some(state) = next {
            let (rows, behind) = self.within("list", self.rows(state)).await?;
            for (key, gone) in rows {
                match gone {
                    Some(generation) => {
                        all.insert(Key::new(key), Entry { generation, held: None });
                    }
                    None => keys.push(key),
                }
            }
            next = behind;
        }
        let looks = keys.into_iter().map(|key| async move {
            let entry = self.within("list", self.look(&key)).await?;
            Ok::<_, Error>((Key::new(key), entry))
        });
        let held: Vec<(Key, Entry)> =
            stream::iter(looks).buffer_unordered(AT_ONCE).try_collect().await?;
        all.extend(held);
        Ok(all.into_iter().collect())
    }

    /// Some of the keys, with the generation of those that are gone for good, and where there are more.
    async fn rows(&self, from: PagingState) -> Result<(Vec<Row>, Option<PagingState>), Failure> {
        let (page, behind) = self.link.page(Query::Keys, from).await?;
        let mut rows = Vec::new();
        for row in page.into_rows_result()?.rows::<Listed<'_>>()? {
            let (store, key, generation, expires) = row?;
            if store == self.link.store() {
                let gone = generation.filter(|_| expires == Some(GONE));
                rows.push((key, gone.map(|number| Generation(number.cast_unsigned()))));
            }
        }
        Ok((rows, behind))
    }

    async fn lift_generation(&self, key: &[u8], floor: Generation) -> Result<(), Failure> {
        let store = self.link.store();
        loop {
            let now = self.look(key).await?.generation;
            if now >= floor {
                return Ok(());
            }
            let to = floor.0.cast_signed();
            let asked = if now == Generation::default() {
                self.link.ask(Query::LiftFirst, (to, store, key)).await?
            } else {
                self.link.ask(Query::LiftNext, (to, store, key, now.0.cast_signed())).await?
            };
            if matches!(Answer::of(asked)?, Answer::Applied) {
                return Ok(());
            }
        }
    }
}

/// When that value expired, if it stands there and this is why it was not changed, and if it is not final yet.
fn expired_at(stood: &Stood, old: &[u8]) -> Option<CqlTimestamp> {
    let stands = stood.blob("value")? == old;
    stood.time("expires").filter(|time| stands && *time != GONE)
}

fn lasting(ttl: Option<Duration>) -> CqlDuration {
    let ms = ttl.map_or(FOREVER_MS, |ttl| check::millis(ttl).min(LONGEST_MS));
    CqlDuration { months: 0, days: 0, nanoseconds: ms.saturating_mul(1_000_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_ever_is_told_from_the_longest_time_to_live() {
        let ms = |ttl| lasting(ttl).nanoseconds / 1_000_000;
        assert_eq!(ms(Some(Duration::from_millis(1))), 1);
        assert_eq!(ms(Some(Duration::from_nanos(1))), 1, "never rounded down to nothing");
        assert_eq!(ms(Some(Duration::MAX)), LONGEST_MS);
        assert_eq!(ms(None), FOREVER_MS);
    }
}
