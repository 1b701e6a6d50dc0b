//! The store of this workspace, opened as a host would.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kapell_core::seams::{Clock, Moment, Timestamp};
use kapell_core::seat::{Epoch, Seat};
use kapell_store::file::{FileStore, Holder};
use kapell_store::model::{Commit, Fence, Item, Key, Op, Raise, Shard};
use kapell_store::{How, Shards as _};

#[derive(Debug)]
struct Now(Instant);

impl Clock for Now {
    fn now(&self) -> Moment {
        Moment::from_origin(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }
}

pub fn open(dir: &Path) -> FileStore {
    let clock = Arc::new(Now(Instant::now()));
    let how = How { create: true, timeout: Duration::from_secs(60), clock };
    let holder = Holder {
        pid: std::process::id(),
        address: None,
        command: "engines".to_owned(),
        since_ms: 0,
    };
    FileStore::open(dir, &holder, &how).expect("open")
}

/// A leader's view of the shards: where each fence stands.
pub struct Leader {
    pub store: FileStore,
    fences: Vec<Fence>,
}

impl Leader {
    pub async fn of(store: FileStore, epoch: u64) -> Self {
        let Raise::Done(fences) = store.raise(Seat::FIRST, Epoch(epoch)).await.expect("raise")
        else {
            panic!("someone else leads");
        };
        Self { store, fences }
    }

    pub async fn commit(&mut self, number: usize, ops: &[Op]) {
        let shard = Shard { seat: Seat::FIRST, number: number as u16 };
        let done = self.store.commit(shard, self.fences[number], ops).await.expect("commit");
        assert_eq!(done, Commit::Done);
        self.fences[number] = self.fences[number].next();
    }
}

pub async fn scan(store: &FileStore) -> Vec<Vec<Item>> {
    let mut all = Vec::new();
    for shard in Shard::all(Seat::FIRST) {
        let mut after: Option<Key> = None;
        loop {
            let page = store.scan(shard, after.as_ref()).await.expect("scan");
            after = page.items.last().map(|item| item.key.clone());
            all.push(page.items);
            if !page.more {
                break;
            }
        }
    }
    all
}
