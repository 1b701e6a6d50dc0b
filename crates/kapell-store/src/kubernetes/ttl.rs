use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use kube::api::{WatchEvent, WatchParams};

use super::Leases;
use super::stand::LONGEST_KEY;
use crate::check;
use crate::error::Error;
use crate::model::{Entry, Expiry, Generation, Key, Write};
use crate::store::Ttl;
use crate::watch::{Bell, Watch};

/// Whoever watches sees a change a moment later than it was made, and counts from there.
const EXPIRY: Expiry = Expiry { shortest: Duration::from_secs(1), lag: Duration::from_secs(1) };
/// In seconds: so long a watch lasts. Whoever wants more watches again.
const WATCH: u32 = 240;

fn fits(key: &Key, value: &[u8]) -> Result<(), Error> {
    let is = key.as_bytes().len();
    if is > LONGEST_KEY {
        return Err(Error::AboveLimit { what: "key", is, limit: LONGEST_KEY });
    }
    check::entry(key, value)
}

#[async_trait]
impl Ttl for Leases {
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
        fits(key, value)?;
        self.within("insert", self.insert(key, seen, value, ttl)).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        fits(key, new)?;
        self.within("compare-and-swap", self.swap(key, old, Some(new), ttl)).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        // The Lease stays, and with it its generation.
        self.within("compare-and-delete", self.swap(key, old, None, None)).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        self.within("read", self.look(key)).await
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        self.within("list", self.look_at_all()).await
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        fits(key, &[])?;
        self.within("lift", self.lift_generation(key, floor)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        let only = format!("metadata.name={}", self.lease_name(key));
        let how = WatchParams::default().fields(&only).timeout(WATCH);
        let begun = async { Ok(self.api.watch(&how, "0").await?) };
        let events = self.within("watch", begun).await?;
        let bell = Bell::new();
        let watch = bell.watch();
        let feeder = self.spawn(async move {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Deleted(_) => {
                        bell.ring();
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => return,
                }
            }
        });
        Ok(watch.fed_by(feeder))
    }
}
