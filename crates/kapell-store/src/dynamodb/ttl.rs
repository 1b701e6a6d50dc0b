use std::time::Duration;

use async_trait::async_trait;

use super::DynamoDb;
use crate::check;
use crate::error::Error;
use crate::model::{Entry, Expiry, Generation, Key, Write};
use crate::store::Ttl;
use crate::watch::Watch;

/// Whoever watches sees a write up to one poll after it was made, and counts from there.
const EXPIRY: Expiry = Expiry { shortest: Duration::from_millis(500), lag: Duration::from_secs(1) };

#[async_trait]
impl Ttl for DynamoDb {
    fn expiry(&self) -> Expiry {
        EXPIRY
    }

    fn observes(&self) -> bool {
        true
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
        self.core.within("insert", self.core.insert(key, seen, value, ttl)).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, new)?;
        self.core.within("compare-and-swap", self.core.swap(key, old, Some(new), ttl)).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        // The item stays, and with it its generation.
        self.core.within("compare-and-delete", self.core.swap(key, old, None, None)).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        self.core.within("read", self.core.look(key)).await
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        self.core.look_at_all().await
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        check::entry(key, &[])?;
        self.core.within("lift", self.core.lift_generation(key, floor)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        self.watch_by_polling(key).await
    }
}
