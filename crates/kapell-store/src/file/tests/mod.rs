//! The store as a whole, on real files.

mod crash;
mod damage;
mod kill;
mod lasting;
mod space;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapell_core::seams::{Clock, Moment, Timestamp};
use kapell_core::seat::{Epoch, Seat};
use tempfile::TempDir;

use super::dir::{Dir, Listing};
use super::log::Sizes;
use super::recover::{self, Recovered};
use super::{FileStore, Holder, Note};
use crate::error::Error;
use crate::model::{Commit, Fence, Key, Op, Raise, Shard};
use crate::open::How;
use crate::store::Shards as _;

pub(super) const SMALL: Sizes = Sizes { segment: 2048, compact_above: u64::MAX };
const SEAT: Seat = Seat(1);

/// A clock that moves when it is told to.
#[derive(Debug, Default)]
struct Hand(Mutex<Duration>);

impl Hand {
    fn forward(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for Hand {
    fn now(&self) -> Moment {
        Moment::from_origin(*self.0.lock().unwrap())
    }

    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }
}

fn how(create: bool) -> How {
    How { create, timeout: Duration::from_secs(60), clock: Arc::new(Hand::default()) }
}

fn holder() -> Holder {
    Holder { pid: 4711, address: None, command: "kapell test".to_owned(), since_ms: 0 }
}

fn open(dir: &Path) -> Result<FileStore, Error> {
    FileStore::open_with(dir, &holder(), &how(true), SMALL, |_| ())
}

/// A place for many small stores: in memory, where there is such a place.
fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// What recovery makes of a directory, as text.
fn recovered(dir: &Path) -> Result<(String, Vec<Note>), Error> {
    let found = Listing::of(dir)?.unwrap();
    let dir = Arc::new(Dir::open(dir).unwrap());
    let Recovered { book, notes, .. } = recover::recover(&dir, &found, Moment::ZERO, SMALL)?;
    Ok((format!("{book:?}"), notes))
}

fn shard(number: u16) -> Shard {
    Shard { seat: SEAT, number }
}

fn at(seq: u64) -> Fence {
    Fence { epoch: Epoch(1), seq }
}

/// Raises the fences to epoch 1.
async fn raise(store: &FileStore) {
    let raised = store.raise(SEAT, Epoch(1)).await.unwrap();
    assert!(matches!(raised, Raise::Done(_)));
}

/// Commit number `seq` of a shard: a new record, and one that is written again and again.
async fn commit(store: &FileStore, number: u16, seq: u64) -> Result<Commit, Error> {
    let ops = [
        Op::Put(Key::new(*b"again"), seq.to_string().into_bytes()),
        Op::Put(Key::new(seq.to_be_bytes()), vec![b'v'; 20]),
        Op::Delete(Key::new(seq.wrapping_sub(5).to_be_bytes())),
    ];
    store.commit(shard(number), at(seq), &ops).await
}

async fn fill(store: &FileStore, commits: std::ops::Range<u64>) {
    for seq in commits {
        assert_eq!(commit(store, 3, seq).await.unwrap(), Commit::Done);
    }
}

/// The files of the log, by number.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let found = Listing::of(dir).unwrap().unwrap();
    let dir = Dir::open(dir).unwrap();
    found.segments.iter().map(|number| dir.segment(*number)).collect()
}
