//! Two drivers as one: what brings its own root goes to the one, everything else to the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::containers::{
    Containers, Enforced, Error, Exec, Exit, Found, Process, Session, Spec, Trial,
};

/// See the module.
#[derive(Debug)]
pub struct Both {
    plain: Arc<dyn Containers>,
    rooted: Arc<dyn Containers>,
    /// Containers of the second.
    with_root: Mutex<BTreeSet<String>>,
}

impl Both {
    pub fn new(plain: Arc<dyn Containers>, rooted: Arc<dyn Containers>) -> Self {
        Self { plain, rooted, with_root: Mutex::default() }
    }

    fn with_root(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.with_root.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, guid: &str) -> &Arc<dyn Containers> {
        if self.with_root().contains(guid) { &self.rooted } else { &self.plain }
    }
}

#[async_trait]
impl Containers for Both {
    fn rootfs_schemes(&self) -> Vec<String> {
        self.rooted.rootfs_schemes()
    }

    /// What holds for every container.
    fn enforced(&self) -> Enforced {
        let (plain, rooted) = (self.plain.enforced(), self.rooted.enforced());
        Enforced {
            memory: plain.memory && rooted.memory,
            cpu: plain.cpu && rooted.cpu,
            pids: plain.pids && rooted.pids,
        }
    }

    fn has_own_network(&self, rootfs: Option<&str>) -> bool {
        let driver = if rootfs.is_some() { &self.rooted } else { &self.plain };
        driver.has_own_network(rootfs)
    }

    fn trials(&self) -> Vec<Trial> {
        let mut trials = self.plain.trials();
        trials.extend(self.rooted.trials());
        trials
    }

    async fn recover(&self) -> Result<Vec<Found>, Error> {
        let mut found = self.rooted.recover().await?;
        self.with_root().extend(found.iter().map(|one| one.guid.clone()));
        found.extend(self.plain.recover().await?);
        Ok(found)
    }

    async fn create(&self, spec: Spec) -> Result<(), Error> {
        if spec.rootfs.is_none() {
            return self.plain.create(spec).await;
        }
        // Known before it is there, and if it could not be made: whoever wants nothing of it to be left asks for
        // its end.
        self.with_root().insert(spec.guid.clone());
        self.rooted.create(spec).await
    }

    async fn run(&self, guid: &str, process: Process) -> Result<(), Error> {
        self.of(guid).run(guid, process).await
    }

    async fn exec(&self, guid: &str, exec: Exec) -> Result<Session, Error> {
        self.of(guid).exec(guid, exec).await
    }

    async fn ended(&self, guid: &str, process: &str) -> Result<Exit, Error> {
        self.of(guid).ended(guid, process).await
    }

    async fn stop(&self, guid: &str, process: &str) -> Result<(), Error> {
        self.of(guid).stop(guid, process).await
    }

    async fn delete(&self, guid: &str) -> Result<(), Error> {
        self.of(guid).delete(guid).await?;
        self.with_root().remove(guid);
        Ok(())
    }

    async fn tidy(&self) -> Result<u64, Error> {
        let plain = self.plain.tidy().await;
        let rooted = self.rooted.tidy().await?;
        Ok(plain? + rooted)
    }

    async fn close(&self) {
        self.plain.close().await;
        self.rooted.close().await;
    }

    async fn read_own(&self, guid: &str, file: &str, limit: u64) -> Result<Vec<u8>, Error> {
        self.of(guid).read_own(guid, file, limit).await
    }

    async fn put(&self, guid: &str, from: &Path, to: &str) -> Result<(), Error> {
        self.of(guid).put(guid, from, to).await
    }

    fn dir(&self, guid: &str) -> PathBuf {
        self.of(guid).dir(guid)
    }
}
