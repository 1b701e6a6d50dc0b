use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kapell_store::Ttl as _;
use kapell_store::file::FileStore;
use kapell_store::model::{Generation, Key};
use tokio::task::JoinSet;

use crate::batch::{Batcher, Fjall, Raw, Redb, Swap};
use crate::ours;

const KEYS: usize = 64;
const VALUE: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Raw,
    Ours,
    Fjall,
    Redb,
}

impl Name {
    /// The control comes first in each round.
    pub const ALL: [Self; 4] = [Self::Raw, Self::Ours, Self::Fjall, Self::Redb];
}

pub struct Engine {
    handle: Handle,
    /// What stands at each key.
    turns: Vec<u64>,
}

#[derive(Clone)]
enum Handle {
    Ours(Arc<FileStore>),
    Batched(Arc<Batcher>),
}

fn key(task: usize) -> Vec<u8> {
    format!("seat-{task:08}").into_bytes()
}

fn value(turn: u64) -> Vec<u8> {
    let mut value = vec![b'v'; VALUE];
    value[..8].copy_from_slice(&turn.to_le_bytes());
    value
}

impl Engine {
    pub fn create(name: Name, dir: &Path) -> Self {
        let records: Vec<_> = (0..KEYS).map(|task| (key(task), value(0))).collect();
        let handle = match name {
            Name::Raw => Handle::Batched(Arc::new(Batcher::start(Raw::create(dir)))),
            Name::Ours => Handle::Ours(Arc::new(ours::open(dir))),
            Name::Fjall => {
                let mut fjall = Fjall::open(dir);
                fjall.insert(&records);
                Handle::Batched(Arc::new(Batcher::start(fjall)))
            }
            Name::Redb => {
                let mut redb = Redb::open(dir);
                redb.insert(&records);
                Handle::Batched(Arc::new(Batcher::start(redb)))
            }
        };
        Self { handle, turns: Vec::new() }
    }

    /// How many swaps a second many tasks get done, each on a key of its own.
    pub async fn swaps(&mut self, tasks: usize, limit: Duration) -> f64 {
        if self.turns.is_empty() {
            self.turns = vec![0; KEYS];
            if let Handle::Ours(store) = &self.handle {
                for task in 0..KEYS {
                    let key = Key::new(key(task));
                    let inserted =
                        store.insert_if_absent(&key, Generation(0), &value(0), None).await;
                    assert!(inserted.expect("insert").is_done());
                }
            }
        }
        let begun = Instant::now();
        let mut set = JoinSet::new();
        for task in 0..tasks {
            set.spawn(swap_on(self.handle.clone(), task, self.turns[task], begun, limit));
        }
        let mut done = 0;
        while let Some(ended) = set.join_next().await {
            let (task, turn) = ended.expect("no panic");
            done += turn - self.turns[task];
            self.turns[task] = turn;
        }
        done as f64 / begun.elapsed().as_secs_f64()
    }
}

async fn swap_on(
    handle: Handle,
    task: usize,
    mut turn: u64,
    begun: Instant,
    limit: Duration,
) -> (usize, u64) {
    let (bytes, key) = (key(task), Key::new(key(task)));
    while begun.elapsed() < limit {
        let (old, new) = (value(turn), value(turn + 1));
        let is_done = match &handle {
            Handle::Ours(store) => {
                store.compare_and_swap(&key, &old, &new, None).await.expect("swap").is_done()
            }
            Handle::Batched(batcher) => batcher.swap(Swap { key: bytes.clone(), old, new }).await,
        };
        assert!(is_done);
        turn += 1;
    }
    (task, turn)
}
