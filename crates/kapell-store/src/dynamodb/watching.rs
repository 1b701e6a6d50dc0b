//! Watches of a service that tells of nothing by itself: it is looked at again and again.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::failure::Failure;
use super::seen::Face;
use super::turns::jittered;
use super::{Core, DynamoDb};
use crate::error::Error;
use crate::model::Key;
use crate::watch::{Bell, Watch};

/// A watch looks at least this often, and at most twice as often, once it has stood for a while.
const POLL: Duration = Duration::from_millis(300);
/// Whoever begins to watch often has a reason to expect something.
const FIRST: Duration = Duration::from_millis(30);

impl Core {
    fn face(&self, key: &Key) -> Option<Face> {
        self.sights.lock().unwrap_or_else(PoisonError::into_inner).face(key)
    }

    fn is_ours(&self, key: &Key) -> bool {
        let now = self.clock.now();
        self.sights.lock().unwrap_or_else(PoisonError::into_inner).is_ours(key, now)
    }

    /// Looks without settling anything: to remove what has run out is left to whoever wants to know.
    async fn glance(&self, key: &Key) -> Result<(), Failure> {
        let stand = self.fetch(key).await?;
        self.see(key, stand, false);
        Ok(())
    }

    /// Rings for every change, until the service does not answer any more.
    async fn poll(&self, key: &Key, mut face: Option<Face>, bell: &Bell) {
        let mut pause = FIRST;
        loop {
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(POLL);
            // What is held here nobody else writes. Should it be taken by force, the next renewal tells.
            if !self.is_ours(key) && self.within("watch", self.glance(key)).await.is_err() {
                return;
            }
            let now = self.face(key);
            if now != face {
                face = now;
                bell.ring();
            }
        }
    }
}

impl DynamoDb {
    pub(super) async fn watch_by_polling(&self, key: &Key) -> Result<Watch, Error> {
        // Whoever has the watch hears of everything that comes after this look.
        let first = async {
            let stand = self.core.fetch(key).await?;
            self.core.see(key, stand, false);
            Ok(self.core.face(key))
        };
        let face = self.core.within("watch", first).await?;
        let (bell, core, key) = (Bell::new(), Arc::clone(&self.core), key.clone());
        let watch = bell.watch();
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        while watches.try_join_next().is_some() {}
        let feeder = watches.spawn(async move { core.poll(&key, face, &bell).await });
        Ok(watch.fed_by(feeder))
    }
}
