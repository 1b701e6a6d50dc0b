use std::time::Duration;

use async_trait::async_trait;

use super::Etcd;
use super::leases::Seconds;
use crate::check;
use crate::error::Error;
use crate::model::{Entry, Expiry, Generation, Key, Write};
use crate::store::Ttl;
use crate::watch::{Bell, Watch};

/// A time to live is rounded up to whole seconds; etcd looks for what has run out every half
/// second and then has its members agree to clear it away. A new leader of etcd's gives every
/// lease its full time again: that is not in here, since nothing bounds how often it happens.
const LAG: Duration = Duration::from_secs(2);

#[async_trait]
impl Ttl for Etcd {
    fn expiry(&self) -> Expiry {
        Expiry { shortest: self.shortest, lag: LAG }
    }

    async fn prepare(&self, ttl: Duration) -> Result<(), Error> {
        self.within("prepare", self.grant_ahead(Seconds::of(ttl))).await
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, value)?;
        self.within("insert", self.insert(key, seen, value, ttl.map(Seconds::of))).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, new)?;
        self.within("compare-and-swap", self.swap(key, old, new, ttl.map(Seconds::of))).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        self.within("compare-and-delete", self.delete(key, old)).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        self.within("read", self.look(key)).await
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        self.within("list", self.all_entries()).await
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        self.within("lift", self.lift_generation(key, floor)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        let paths = [self.paths.entry(key), self.paths.generation(key)];
        let (member, mut stream) = self.within("watch", self.link.watch(&paths)).await?;
        // It stands: whatever changes from now on is heard.
        let ear = self.ears.open(key, member);
        let bell = Bell::new();
        let watch = bell.watch();
        let feeder = self.leases.spawn(async move {
            while let Ok(Some(message)) = stream.message().await {
                if message.canceled() {
                    return;
                }
                if !message.events().is_empty() {
                    ear.hear();
                    bell.ring();
                }
            }
        });
        Ok(watch.fed_by(feeder))
    }
}
