//! The embedded store against grouped raw writes of the same bytes.

use std::fs::OpenOptions;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kapell_core::seat::{Epoch, Seat};
use kapell_store::file::{FileStore, Holder};
use kapell_store::model::{Fence, Key, Op, Raise, Shard};
use kapell_store::{Shards as _, Ttl as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::figure::{figure, figure_at_least};
use crate::{Plan, how};

const TASKS: usize = 64;
const BYTES: usize = 150;

fn open(dir: &Path) -> FileStore {
    let holder = Holder { pid: 0, address: None, command: String::new(), since_ms: 0 };
    FileStore::open(dir, &holder, &how()).expect("the store opens")
}

pub(crate) async fn measure(dir: &Path, plan: Plan) {
    let mut rates = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let control = grouped_raw_writes(&dir.join(format!("raw{round}")), plan).await;
        let store = open(&dir.join(format!("commits{round}")));
        let ours = commits(Arc::new(store), plan).await;
        rates.0.push(ours / control);
        rates.1.push(ours);
    }
    figure_at_least(
        "embedded: commits of 64 tasks / grouped raw fdatasync",
        &rates.0,
        "ratio",
        0.6,
    );
    figure("embedded: commits of 64 tasks", &rates.1, "1/s", None);
    let dir = dir.join("large");
    fill(&dir, plan).await;
    let mut loads = Vec::new();
    for _ in 0..plan.rounds {
        loads.push(load(&dir, plan).await);
    }
    figure(&format!("embedded: {} records loaded", plan.records), &loads, "s", Some(1.0));
}

/// Each task changes an entry of its own, again and again, and waits for each change.
async fn commits(store: Arc<FileStore>, plan: Plan) -> f64 {
    let value = vec![7; BYTES];
    for task in 0..TASKS {
        let key = Key::new(task.to_be_bytes());
        let seen = store.read(&key).await.expect("read").generation;
        let done = store.insert_if_absent(&key, seen, &value, None).await.expect("inserted");
        assert!(done.is_done());
    }
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (store, value) = (Arc::clone(&store), value.clone());
        tasks.spawn(async move {
            let key = Key::new(task.to_be_bytes());
            for _ in 0..plan.commits / TASKS {
                let swapped = store.compare_and_swap(&key, &value, &value, None).await;
                assert!(swapped.expect("swapped").is_done());
            }
        });
    }
    tasks.join_all().await;
    rate(plan, begun.elapsed())
}

/// The floor: one thread that writes what has come and flushes it, and 64 tasks that wait.
///
/// Into space that was written before: a file that grows needs its length flushed as well.
async fn grouped_raw_writes(path: &Path, plan: Plan) -> f64 {
    let mut file = OpenOptions::new().create_new(true).write(true).open(path).expect("a file");
    file.write_all(&vec![0; plan.commits * BYTES]).expect("written");
    file.sync_all().expect("flushed");
    file.rewind().expect("at its begin");
    let (sender, mut queue) = mpsc::channel::<(Vec<u8>, oneshot::Sender<()>)>(1024);
    let writer = std::thread::spawn(move || {
        let (mut bytes, mut waiting) = (Vec::new(), Vec::new());
        while let Some((record, done)) = queue.blocking_recv() {
            bytes.extend_from_slice(&record);
            waiting.push(done);
            while let Ok((record, done)) = queue.try_recv() {
                bytes.extend_from_slice(&record);
                waiting.push(done);
            }
            file.write_all(&bytes).expect("written");
            file.sync_data().expect("flushed");
            bytes.clear();
            for done in waiting.drain(..) {
                let _told = done.send(());
            }
        }
    });
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let sender = sender.clone();
        tasks.spawn(async move {
            for _ in 0..plan.commits / TASKS {
                let (done, flushed) = oneshot::channel();
                sender.send((vec![7; BYTES], done)).await.expect("it listens");
                flushed.await.expect("flushed");
            }
        });
    }
    tasks.join_all().await;
    let rate = rate(plan, begun.elapsed());
    drop(sender);
    writer.join().expect("it ended");
    rate
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(plan: Plan, took: Duration) -> f64 {
    (plan.commits / TASKS * TASKS) as f64 / took.as_secs_f64()
}

async fn fill(dir: &Path, plan: Plan) {
    let store = open(dir);
    let Raise::Done(_) = store.raise(Seat::FIRST, Epoch(1)).await.expect("raised") else {
        panic!("a fresh store")
    };
    for shard in Shard::all(Seat::FIRST) {
        let mut fence = Fence { epoch: Epoch(1), seq: 0 };
        let numbers: Vec<usize> =
            (0..plan.records).filter(|at| at % 16 == usize::from(shard.number)).collect();
        for numbers in numbers.chunks(1000) {
            // Spread over the key space, as hashed ids are.
            let put = |at: &usize| {
                let key = (*at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                Op::Put(Key::new([&key[..], b"/instance"].concat()), vec![7; BYTES])
            };
            let ops: Vec<_> = numbers.iter().map(put).collect();
            let _done = store.commit(shard, fence, &ops).await.expect("committed");
            fence = fence.next();
        }
    }
}

/// Opens the store and reads all of it.
async fn load(dir: &Path, plan: Plan) -> f64 {
    let begun = Instant::now();
    let store = open(dir);
    let mut records = 0;
    for shard in Shard::all(Seat::FIRST) {
        let mut last = None;
        loop {
            let page = store.scan(shard, last.as_ref()).await.expect("scanned");
            records += page.items.len();
            last = page.next;
            if last.is_none() {
                break;
            }
        }
    }
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(records, plan.records);
    took
}
