//! Containers that exist only in memory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use kapell_backend::containers::{Containers, Error, Exit, Found, Spec};
use tokio::sync::{Semaphore, watch};

#[derive(Debug)]
pub(super) struct FakeContainers {
    dir: PathBuf,
    there: Mutex<BTreeMap<String, Fake>>,
    /// Every spec that was ever run, in order.
    ran: Mutex<Vec<Spec>>,
    /// Said instead of running.
    trouble: Mutex<Option<String>>,
    pub(super) deaf: Mutex<bool>,
    /// So many deletes fail.
    pub(super) stuck: Mutex<u32>,
    /// Starts whose program has this path wait here.
    pub(super) gate: Semaphore,
    pub(super) gated: Mutex<Option<String>>,
    pub(super) most_at_once: Mutex<(usize, usize)>,
}

#[derive(Debug)]
struct Fake {
    tag: Vec<u8>,
    dir: PathBuf,
    exit: watch::Sender<Option<Exit>>,
}

impl FakeContainers {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            there: Mutex::default(),
            ran: Mutex::default(),
            trouble: Mutex::default(),
            deaf: Mutex::default(),
            stuck: Mutex::default(),
            gate: Semaphore::new(0),
            gated: Mutex::default(),
            most_at_once: Mutex::default(),
        }
    }

    fn there(&self) -> MutexGuard<'_, BTreeMap<String, Fake>> {
        self.there.lock().unwrap()
    }

    pub(super) fn ran(&self) -> Vec<Spec> {
        self.ran.lock().unwrap().clone()
    }

    pub(super) fn guids(&self) -> Vec<String> {
        self.there().keys().cloned().collect()
    }

    pub(super) fn fail_with(&self, trouble: &str) {
        *self.trouble.lock().unwrap() = Some(trouble.to_owned());
    }

    pub(super) fn end(&self, guid: &str, exit: Exit) {
        self.there()[guid].exit.send_replace(Some(exit));
    }

    pub(super) fn exit_with(&self, guid: &str, code: i32) {
        self.end(guid, Exit { code: Some(code), ..Exit::default() });
    }
}

fn unknown(guid: &str) -> Error {
    Error::Unknown(guid.to_owned())
}

#[async_trait]
impl Containers for FakeContainers {
    async fn recover(&self) -> Result<Vec<Found>, Error> {
        let found = self.there();
        let found = found.iter().map(|(guid, fake)| Found {
            guid: guid.clone(),
            tag: fake.tag.clone(),
            exit: fake.exit.borrow().clone(),
        });
        Ok(found.collect())
    }

    async fn run(&self, spec: Spec) -> Result<(), Error> {
        let now = {
            let mut at_once = self.most_at_once.lock().unwrap();
            at_once.0 += 1;
            at_once.1 = at_once.1.max(at_once.0);
            *at_once
        };
        assert!(now.0 > 0);
        let gated = self.gated.lock().unwrap().as_ref() == Some(&spec.path);
        if gated {
            self.gate.acquire().await.unwrap().forget();
        }
        self.most_at_once.lock().unwrap().0 -= 1;
        if let Some(trouble) = self.trouble.lock().unwrap().clone() {
            return Err(Error::Unstartable(trouble));
        }
        std::fs::create_dir_all(&spec.logs).unwrap();
        std::fs::create_dir_all(self.dir(&spec.guid)).unwrap();
        self.ran.lock().unwrap().push(spec.clone());
        let dir = spec.dir.unwrap_or_else(|| self.dir(&spec.guid));
        let fake = Fake { tag: spec.tag, dir, exit: watch::Sender::new(None) };
        assert!(self.there().insert(spec.guid, fake).is_none(), "run twice");
        Ok(())
    }

    async fn ended(&self, guid: &str) -> Result<Exit, Error> {
        let mut exit = self.there().get(guid).ok_or_else(|| unknown(guid))?.exit.subscribe();
        let exit = exit.wait_for(Option::is_some).await.map_err(|_| unknown(guid))?;
        exit.clone().ok_or_else(|| unknown(guid))
    }

    async fn stop(&self, guid: &str) -> Result<(), Error> {
        if *self.deaf.lock().unwrap() {
            return Ok(());
        }
        let there = self.there();
        let fake = there.get(guid).ok_or_else(|| unknown(guid))?;
        fake.exit.send_if_modified(|exit| {
            let runs = exit.is_none();
            if runs {
                *exit = Some(Exit { signal: Some(15), stopped: true, ..Exit::default() });
            }
            runs
        });
        Ok(())
    }

    async fn delete(&self, guid: &str) -> Result<(), Error> {
        let left = self.stuck.lock().unwrap().checked_sub(1);
        if let Some(left) = left {
            *self.stuck.lock().unwrap() = left;
            let source = std::io::Error::other("it is busy");
            return Err(Error::Io { what: "cannot delete it".to_owned(), source });
        }
        self.there().remove(guid).map(drop).ok_or_else(|| unknown(guid))
    }

    async fn read_own(&self, guid: &str, file: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let dir = self.there().get(guid).ok_or_else(|| unknown(guid))?.dir.clone();
        let failed = |source| Error::Io { what: format!("cannot read `{file}`"), source };
        kapell_backend::own_file::read(&dir, file, None, limit).map_err(failed)
    }

    fn dir(&self, guid: &str) -> PathBuf {
        self.dir.join(guid).join("work")
    }
}
