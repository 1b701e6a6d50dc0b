use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::check;
use crate::error::Error;
use crate::model::{Entry, Expiry, Generation, Held, Key, Write};
use crate::store::Ttl;
use crate::watch::Watch;

use super::Postgres;
use super::pool::Lane;
use super::query::Query;
use super::session::Params;

/// Longer times to live are cut to this: the server's calendar ends.
const LONGEST_MS: i64 = 100 * 366 * 24 * 3600 * 1000;

#[async_trait]
impl Ttl for Postgres {
    fn expiry(&self) -> Expiry {
        Expiry { shortest: Duration::from_millis(100), lag: Duration::ZERO }
    }

    async fn prepare(&self, _ttl: Duration) -> Result<(), Error> {
        self.pool.warm(Lane::Elections).await
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, value)?;
        let (key, ttl) = (key.as_bytes(), millis(ttl));
        if seen == Generation::default() {
            return self.write(Query::InsertFirst, &[&key, &value, &ttl]).await;
        }
        // No row has a generation that does not fit.
        let Ok(seen) = i64::try_from(seen.0) else { return Ok(Write::Lost) };
        self.write(Query::InsertNext, &[&key, &value, &ttl, &seen]).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, new)?;
        let (key, ttl) = (key.as_bytes(), millis(ttl));
        if old == new {
            return self.write(Query::Renew, &[&key, &old, &ttl]).await;
        }
        self.write(Query::Swap, &[&key, &old, &ttl, &new]).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        self.write(Query::Delete, &[&key.as_bytes(), &old]).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        let read = async {
            match self.look(key, Query::Read).await? {
                Seen::Sure(entry) => Ok(entry),
                Seen::Expired(_) => self.look(key, Query::Settle).await.map(Seen::believed),
            }
        };
        self.pool.door().within("read", read).await
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        let list = async {
            let rows = self.pool.ask(Lane::Elections, Query::List, &[]).await?;
            let mut entries = Vec::with_capacity(rows.len());
            for row in &rows {
                let key = Key::new(self.column::<Vec<u8>>(row, 3, Query::List)?);
                let entry = match self.seen(row, Query::List)? {
                    Seen::Sure(entry) => entry,
                    Seen::Expired(_) => self.look(&key, Query::Settle).await?.believed(),
                };
                entries.push((key, entry));
            }
            Ok(entries)
        };
        self.pool.door().within("list", list).await
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        check::entry(key, &[])?;
        let floor = super::number("generation", floor.0)?;
        self.pool.ask(Lane::Elections, Query::Lift, &[&key.as_bytes(), &floor]).await.map(drop)
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        self.ear.watch(self.pool.door(), key).await
    }
}

impl Postgres {
    async fn write(&self, query: Query, params: Params<'_>) -> Result<Write, Error> {
        let rows = self.pool.ask(Lane::Elections, query, params).await?;
        Ok(Write::of(!rows.is_empty()))
    }

    async fn look(&self, key: &Key, query: Query) -> Result<Seen, Error> {
        let rows = self.pool.ask(Lane::Elections, query, &[&key.as_bytes()]).await?;
        let first = rows.first();
        first.map_or_else(|| Ok(Seen::Sure(Entry::default())), |row| self.seen(row, query))
    }

    fn seen(&self, row: &Row, query: Query) -> Result<Seen, Error> {
        let generation: i64 = self.column(row, 0, query)?;
        let generation = Generation(generation.unsigned_abs());
        let value: Option<Vec<u8>> = self.column(row, 1, query)?;
        let Some(value) = value else { return Ok(Seen::Sure(Entry { generation, held: None })) };
        let remaining_us: Option<i64> = self.column(row, 2, query)?;
        let remaining = remaining_us.map(|us| Duration::from_micros(us.try_into().unwrap_or(0)));
        if remaining == Some(Duration::ZERO) {
            return Ok(Seen::Expired(Entry { generation, held: None }));
        }
        Ok(Seen::Sure(Entry { generation, held: Some(Held { value, remaining }) }))
    }
}

/// What a row says about an entry.
enum Seen {
    Sure(Entry),
    /// True only if the row was locked.
    Expired(Entry),
}

impl Seen {
    fn believed(self) -> Entry {
        match self {
            Self::Sure(entry) | Self::Expired(entry) => entry,
        }
    }
}

fn millis(ttl: Option<Duration>) -> Option<i64> {
    ttl.map(|ttl| check::millis(ttl).min(LONGEST_MS))
}
