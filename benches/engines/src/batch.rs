//! One writer thread that batches what is asked meanwhile into one durable commit.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread::JoinHandle;

use fjall::PersistMode;
use redb::{ReadableTable as _, TableDefinition};
use tokio::sync::{mpsc, oneshot};

pub const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("records");

pub struct Swap {
    pub key: Vec<u8>,
    pub old: Vec<u8>,
    pub new: Vec<u8>,
}

/// An engine that can do some swaps in one durable step.
pub trait Backend: Send + 'static {
    fn swap_all(&mut self, swaps: &[Swap]) -> Vec<bool>;
}

pub struct Batcher {
    jobs: Option<mpsc::Sender<(Swap, oneshot::Sender<bool>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Batcher {
    pub fn start(mut backend: impl Backend) -> Self {
        let (jobs, mut queue) = mpsc::channel::<(Swap, oneshot::Sender<bool>)>(1024);
        let thread = std::thread::spawn(move || {
            let mut taken = Vec::new();
            while queue.blocking_recv_many(&mut taken, 1024) > 0 {
                let (swaps, replies): (Vec<_>, Vec<_>) = taken.drain(..).unzip();
                let outcomes = backend.swap_all(&swaps);
                for (reply, outcome) in replies.into_iter().zip(outcomes) {
                    let _ = reply.send(outcome);
                }
            }
        });
        Self { jobs: Some(jobs), thread: Some(thread) }
    }

    pub async fn swap(&self, swap: Swap) -> bool {
        let (reply, answer) = oneshot::channel();
        let jobs = self.jobs.as_ref().expect("it is open");
        assert!(jobs.send((swap, reply)).await.is_ok());
        answer.await.expect("an answer")
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.jobs = None;
        self.thread.take().expect("once").join().expect("no panic");
    }
}

/// Writes the bytes that we would write, and decides nothing. All of its file was written before.
pub struct Raw {
    file: File,
    at: u64,
    buffer: Vec<u8>,
}

const RAW_BYTES: u64 = 256 << 20;

impl Raw {
    pub fn create(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).expect("a directory");
        let path = dir.join("raw");
        let file = OpenOptions::new().write(true).create_new(true).open(path).expect("a file");
        let zeros = vec![0; 1 << 20];
        for at in (0..RAW_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, at).expect("zeros");
        }
        file.sync_all().expect("sync");
        Self { file, at: 0, buffer: Vec::new() }
    }
}

impl Backend for Raw {
    fn swap_all(&mut self, swaps: &[Swap]) -> Vec<bool> {
        self.buffer.clear();
        self.buffer.resize(32, 1);
        for swap in swaps {
            self.buffer.extend_from_slice(&[2; 23]);
            self.buffer.extend_from_slice(&swap.key);
            self.buffer.extend_from_slice(&swap.new);
        }
        self.buffer.resize((self.buffer.len() + 4).next_multiple_of(32), 3);
        if self.at + self.buffer.len() as u64 > RAW_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(&self.buffer, self.at).expect("write");
        self.file.sync_data().expect("sync");
        self.at += self.buffer.len() as u64;
        vec![true; swaps.len()]
    }
}

pub struct Fjall {
    db: fjall::Database,
    records: fjall::Keyspace,
}

impl Fjall {
    pub fn open(dir: &Path) -> Self {
        let db = fjall::Database::builder(dir).open().expect("open");
        let records =
            db.keyspace("records", fjall::KeyspaceCreateOptions::default).expect("keyspace");
        Self { db, records }
    }

    pub fn insert(&mut self, records: &[(Vec<u8>, Vec<u8>)]) {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in records {
            batch.insert(&self.records, key.as_slice(), value.as_slice());
        }
        batch.commit().expect("commit");
    }

    pub fn scan(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let copy = |(key, value): fjall::KvPair| (key.to_vec(), value.to_vec());
        let all: Vec<_> =
            self.records.iter().map(|item| copy(item.into_inner().expect("item"))).collect()
    }
}

impl Backend for Fjall {
    fn swap_all(&mut self, swaps: &[Swap]) -> Vec<bool> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        let mut outcomes = Vec::with_capacity(swaps.len());
        for swap in swaps {
            let found = self.records.get(&swap.key).expect("get");
            let holds = found.is_some_and(|value| *value == *swap.old);
            if holds {
                batch.insert(&self.records, swap.key.as_slice(), swap.new.as_slice());
            }
            outcomes.push(holds);
        }
        batch.commit().expect("commit");
        outcomes
    }
}

pub struct Redb(redb::Database);

impl Redb {
    pub fn open(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).expect("a directory");
        Self(redb::Database::create(dir.join("redb")).expect("open"))
    }

    pub fn insert(&mut self, records: &[(Vec<u8>, Vec<u8>)]) {
        let write = self.0.begin_write().expect("begin");
        {
            let mut table = write.open_table(TABLE).expect("table");
            for (key, value) in records {
                table.insert(key.as_slice(), value.as_slice()).expect("insert");
            }
        }
        write.commit().expect("commit");
    }

    pub fn scan(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        use redb::ReadableDatabase as _;
        let read = self.0.begin_read().expect("begin");
        let table = read.open_table(TABLE).expect("table");
        table
            .iter()
            .expect("iter")
            .map(|item| {
                item.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()))
                    .expect("item")
            })
            .collect()
    }
}

impl Backend for Redb {
    fn swap_all(&mut self, swaps: &[Swap]) -> Vec<bool> {
        let write = self.0.begin_write().expect("begin");
        let mut outcomes = Vec::with_capacity(swaps.len());
        {
            let mut table = write.open_table(TABLE).expect("table");
            for swap in swaps {
                let found = table.get(swap.key.as_slice()).expect("get");
                let holds = found.is_some_and(|value| value.value() == swap.old);
                if holds {
                    table.insert(swap.key.as_slice(), swap.new.as_slice()).expect("insert");
                }
                outcomes.push(holds);
            }
        }
        write.commit().expect("commit");
        outcomes
    }
}
