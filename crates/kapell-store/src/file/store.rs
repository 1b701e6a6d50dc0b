use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};
use tokio::sync::mpsc;

use super::code;
use super::desk::Desk;
use super::dir::{Dir, Listing, failed};
use super::holder::{self, Holder};
use super::job::{self, Job};
use super::log::Sizes;
use super::note::Note;
use super::recover::{self, Recovered};
use super::segment::damaged;
use super::writer::Writer;
use crate::book::Book;
use crate::check;
use crate::error::Error;
use crate::model::{
    Commit, Entry, Expiry, Fence, Generation, KEY_BYTES, Key, Limits, Op, Page, RECORD_BYTES,
    Raise, Shard, Write,
};
use crate::open::How;
use crate::store::{Shards, Store, Ttl};
use crate::watch::Watch;

/// How many questions may wait for the writer.
const QUEUE: usize = 1024;

const LIMITS: Limits = Limits {
    commit_ops: 1024,
    commit_bytes: 8 << 20,
    value_bytes: RECORD_BYTES,
    key_bytes: KEY_BYTES,
};

/// A store in a directory, held by this process alone for as long as this value lives.
///
/// Dropping it waits until all that was asked is done.
#[derive(Debug)]
pub struct FileStore {
    name: String,
    dir: Arc<Dir>,
    timeout: Duration,
    notes: Arc<Mutex<Vec<Note>>>,
    /// None once it is closed.
    open: Mutex<Option<Open>>,
}

/// What an open store has and a closed one has not.
#[derive(Debug)]
struct Open {
    jobs: mpsc::Sender<Box<dyn Job>>,
    writer: JoinHandle<()>,
    /// Held until the writer is gone.
    lock: File,
}

impl Open {
    fn close(self) {
        drop(self.jobs);
        // Its panic was told on stderr when it happened, and its callers have their errors.
        drop(self.writer.join());
        drop(self.lock);
    }
}

impl FileStore {
    /// Opens a store and reads all of it, which may take a second. Entries with a time to live
    /// have all of it before them, however long the store was closed.
    ///
    /// What is damaged is left as it is, down to the last byte.
    pub fn open(dir: &Path, holder: &Holder, how: &How) -> Result<Self, Error> {
        let change = |_: &mut Dir| {};
        Self::open_with(dir, holder, how, Sizes::default(), change)
    }

    pub(super) fn open_with(
        path: &Path,
        holder: &Holder,
        how: &How,
        sizes: Sizes,
        change: impl FnOnce(&mut Dir),
    ) -> Result<Self, Error> {
        let name = format!("file:{}", path.display());
        // The working directory may change while the store is open.
        let path = &std::path::absolute(path).map_err(|error| failed(path, "open", error))?;
        if !is_store(path, how.create)? {
            Dir::create(path).map_err(|error| failed(path, "create", error))?;
        }
        let lock = holder::take(path)?;
        let mut dir = Dir::open(path).map_err(|error| failed(path, "open", error))?;
        change(&mut dir);
        let dir = Arc::new(dir);
        // Only now does it stay as it is: someone else may have laid it out.
        let is_store = is_store(path, how.create)?;
        let found = Listing::of(path)?.unwrap_or_default();
        let recovered = if is_store {
            recover::recover(&dir, &found, how.clock.now(), sizes)?
        } else {
            recover::create(&dir, sizes)?
        };
        let Recovered { book, log, on_disk, notes } = recovered;
        let notes = Arc::new(Mutex::new(notes));
        let desk = Desk::new(book, Arc::clone(&how.clock));
        let writer = Writer::new(name.clone(), desk, log, on_disk, Arc::clone(&notes));
        let (jobs, queue) = mpsc::channel(QUEUE);
        let named = std::thread::Builder::new().name("store-writer".to_owned());
        let thread = named.spawn(move || writer.run(queue));
        let thread = thread.map_err(|error| failed(path, "open", error))?;
        let open = Mutex::new(Some(Open { jobs, writer: thread, lock }));
        let store = Self { name, dir, timeout: how.timeout, notes, open };
        store.announce(&serde_json::to_vec(holder).unwrap_or_default())?;
        Ok(store)
    }

    /// Replaces what those see who look at the store from beside. If it is JSON with `pid`,
    /// `command` and `address`, they are in the message that the store is in use.
    pub fn announce(&self, what: &[u8]) -> Result<(), Error> {
        let path = Dir::holder(self.dir.path());
        self.dir.replace(&path, what).map_err(|error| failed(&path, "announce", error))
    }

    /// What was noticed since the store was opened.
    pub fn notes(&self) -> Vec<Note> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Does what was asked before and lets go of the directory. Nothing is answered afterwards.
    pub async fn close(&self) {
        let open = self.inside().take();
        if let Some(open) = open {
            let _closed = tokio::task::spawn_blocking(move || open.close()).await;
        }
    }

    fn inside(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask<T: Send + 'static>(
        &self,
        call: &'static str,
        bound: usize,
        decide: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let gone =
            || Error::Stopped { store: self.name.clone(), why: "its writer is gone".to_owned() };
        let (job, answer) = job::ask(call, bound, decide);
        let work = async {
            let jobs = self.inside().as_ref().map(|open| open.jobs.clone()).ok_or_else(gone)?;
            jobs.send(job).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        };
        tokio::time::timeout(self.timeout, work).await.unwrap_or_else(|_| {
            Err(Error::Timeout { store: self.name.clone(), call, limit: self.timeout })
        })
    }
}

/// Whether there is a store; an error if there is none and none may be laid out here.
fn is_store(path: &Path, create: bool) -> Result<bool, Error> {
    let Some(found) = Listing::of(path)? else {
        let absent = || Error::Absent { store: format!("`{}`", path.display()) };
        return if create { Ok(false) } else { Err(absent()) };
    };
    if found.is_store() {
        return Ok(true);
    }
    if found.was_a_store {
        return Err(damaged(&path.join("log.000001"), 0, "it is missing"));
    }
    if found.foreign {
        let why = "the directory holds other things and is not a Kapell store".to_owned();
        return Err(Error::BadUrl { url: format!("file:{}", path.display()), why });
    }
    if create { Ok(false) } else { Err(Error::Absent { store: format!("`{}`", path.display()) }) }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        if let Some(open) = self.inside().take() {
            open.close();
        }
    }
}

#[async_trait]
impl Ttl for FileStore {
    fn expiry(&self) -> Expiry {
        Expiry { shortest: Duration::from_millis(1), lag: Duration::ZERO }
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
        let bound = code::bound(key.as_bytes().len(), value.len());
        let (key, value) = (key.clone(), value.to_vec());
        let decide = move |desk: &mut Desk| desk.insert_if_absent(&key, seen, &value, ttl);
        self.ask("insert_if_absent", bound, decide).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        check::entry(key, new)?;
        let bound = code::bound(key.as_bytes().len(), new.len());
        let (key, old, new) = (key.clone(), old.to_vec(), new.to_vec());
        let decide = move |desk: &mut Desk| desk.compare_and_set(&key, &old, Some((&new, ttl)));
        self.ask("compare_and_swap", bound, decide).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        let bound = code::bound(key.as_bytes().len(), 0);
        let (key, old) = (key.clone(), old.to_vec());
        let decide = move |desk: &mut Desk| desk.compare_and_set(&key, &old, None);
        self.ask("compare_and_delete", bound, decide).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        let key = key.clone();
        self.ask("read", 0, move |desk| desk.read(&key)).await
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        self.ask("list", 0, |desk| desk.list()).await
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        check::entry(key, &[])?;
        let key = key.clone();
        self.ask("lift", code::LIFT, move |desk| desk.lift(&key, floor)).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        let key = key.clone();
        self.ask("watch", 0, move |desk| desk.watch(key)).await
    }
}

#[async_trait]
impl Shards for FileStore {
    fn limits(&self) -> Limits {
        LIMITS
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        self.ask("raise", code::RAISE, move |desk| desk.raise(seat, epoch)).await
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        self.ask("fence", 0, move |desk| desk.fence(shard)).await
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let changes = Book::changes(shard, at, check::commit(LIMITS, ops)?);
        let bound = code::bounds(&changes);
        self.ask("commit", bound, move |desk| desk.commit(shard, at, changes)).await
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        let after = after.cloned();
        self.ask("scan", 0, move |desk| desk.scan(shard, after.as_ref())).await
    }
}

impl Store for FileStore {
    fn name(&self) -> &str {
        &self.name
    }
}
