//! A store, asked past all hosts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kapell_core::board::aside::Aside;
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use kapell_node::system::SystemClock;
use kapell_store::file::Holder;
use kapell_store::model::{Commit, Entry, Fence, Generation, Key, Op, Raise, Shard};
use kapell_store::{Error, How, Location, Store, keys};
use tokio::runtime::Runtime;

use crate::bench::pause;

/// What a store holds: by shard and key.
pub(crate) type Records = BTreeMap<(u16, Vec<u8>), Vec<u8>>;

/// An open store.
pub(crate) struct Direct {
    store: Arc<dyn Store>,
    runtime: Runtime,
}

impl Direct {
    #[track_caller]
    pub(crate) fn open(url: &str) -> Self {
        Self::try_open(url).unwrap_or_else(|error| panic!("{url}: {error:?}"))
    }

    pub(crate) fn try_open(url: &str) -> Result<Self, Error> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let how =
            How { create: true, timeout: Duration::from_secs(5), clock: Arc::new(SystemClock) };
        let (pid, command) = (std::process::id(), "a test".to_owned());
        let holder = Holder { pid, address: None, command, since_ms: 0 };
        let location: Location = url.parse()?;
        let store = runtime.block_on(location.open(&holder, &how))?;
        Ok(Self { store, runtime })
    }

    fn run<T>(&self, work: impl Future<Output = Result<T, Error>>) -> T {
        self.runtime.block_on(work).expect("the store answers")
    }

    fn try_entry(&self) -> Result<Entry, Error> {
        self.runtime.block_on(self.store.read(&keys::leader(Seat::FIRST)))
    }

    /// Who holds the seat.
    pub(crate) fn holder(&self) -> Option<Record> {
        let entry = self.try_entry().expect("the store answers");
        entry.held.and_then(|held| Record::decode(&held.value))
    }

    /// The epoch that was last given out.
    pub(crate) fn epoch(&self) -> u64 {
        self.try_entry().expect("the store answers").generation.0
    }

    /// Whether someone has begun to fill the store and not ended.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.run(self.store.read(&keys::unfinished())).held.is_some()
    }

    /// Has the time of whoever holds the seat run out.
    pub(crate) fn expire_seat(&self) {
        let key = keys::leader(Seat::FIRST);
        if let Some(held) = self.run(self.store.read(&key)).held {
            assert!(self.run(self.store.compare_and_delete(&key, &held.value)).is_done());
        }
    }

    /// Puts records into all shards, as a leader with this epoch that has gone since.
    pub(crate) fn fill(&self, epoch: u64, records: &Records) {
        let key = keys::leader(Seat::FIRST);
        self.run(self.store.lift(&key, Generation(epoch - 1)));
        let inserted = self.store.insert_if_absent(&key, Generation(epoch - 1), b"former", None);
        assert!(self.run(inserted).is_done());
        assert!(self.run(self.store.compare_and_delete(&key, b"former")).is_done());
        let raised = self.run(self.store.raise(Seat::FIRST, Epoch(epoch)));
        assert!(matches!(raised, Raise::Done(_)), "{raised:?}");
        for shard in Shard::all(Seat::FIRST) {
            let own = records.iter().filter(|((number, _), _)| *number == shard.number);
            let puts: Vec<Op> = own
                .map(|((_, key), value)| Op::Put(Key::new(key.clone()), value.clone()))
                .collect();
            let mut at = Fence { epoch: Epoch(epoch), seq: 0 };
            for group in puts.chunks(self.store.limits().commit_ops.min(100)) {
                assert_eq!(self.run(self.store.commit(shard, at, group)), Commit::Done);
                at = at.next();
            }
        }
    }

    /// All records of the seat. What a leader has set aside, because it is none of the board's, is told by the key
    /// that it had.
    pub(crate) fn records(&self) -> Records {
        let mut all = Records::new();
        for shard in Shard::all(Seat::FIRST) {
            let mut last = None;
            loop {
                let page = self.run(self.store.scan(shard, last.as_ref()));
                for item in page.items {
                    let key = item.key.as_bytes();
                    let key = Aside::decode(key).map_or(key, |aside| aside.key);
                    all.insert((shard.number, key.to_vec()), item.value);
                }
                last = page.next;
                if last.is_none() {
                    break;
                }
            }
        }
        all
    }
}

/// Reads again and again who holds the seat.
pub(crate) struct Recorder {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<History>,
}

/// What the store said, in the order in which it was asked.
#[derive(Debug, Default)]
pub(crate) struct History(Vec<(Instant, u64, Option<Record>)>);

impl Recorder {
    pub(crate) fn start(url: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // Here: whatever is done to the store next, the recording has begun.
        let store = Direct::open(url);
        let thread = std::thread::spawn(move || {
            let mut history = History::default();
            while !stopped.load(Ordering::Relaxed) {
                // A store that is away says nothing, and that is no history.
                if let Ok(entry) = store.try_entry() {
                    let record = entry.held.and_then(|held| Record::decode(&held.value));
                    history.0.push((Instant::now(), entry.generation.0, record));
                }
                pause(Duration::from_millis(20));
            }
            history
        });
        Self { stop, thread }
    }

    /// Ends the recording, in which epochs never went down and each had one owner.
    #[track_caller]
    pub(crate) fn finish(self) -> History {
        self.stop.store(true, Ordering::Relaxed);
        let history = self.thread.join().expect("the recorder records");
        assert!(!history.0.is_empty(), "nothing was recorded");
        let mut owners: BTreeMap<Epoch, Owner> = BTreeMap::new();
        for pair in history.0.windows(2) {
            assert!(pair[0].1 <= pair[1].1, "went down: {pair:?}");
        }
        for (_, last, record) in &history.0 {
            let Some(record) = record else { continue };
            assert_eq!(record.epoch.0, *last, "a record of a former epoch: {record:?}");
            let owner = owners.entry(record.epoch).or_insert(record.owner);
            assert_eq!(*owner, record.owner, "two owners of epoch {}", record.epoch);
        }
        history
    }
}

impl History {
    /// Whether from this epoch's first record on nothing else stood there.
    pub(crate) fn stands_from(&self, epoch: u64) -> bool {
        let mut from = self.0.iter().skip_while(|(_, last, _)| *last < epoch);
        from.all(|(_, _, record)| record.as_ref().is_some_and(|it| it.epoch.0 == epoch))
    }

    /// How long after `since` a record of this epoch was last seen.
    pub(crate) fn stood(&self, epoch: u64, since: Instant) -> Option<Duration> {
        let is_it = |record: &Option<Record>| record.as_ref().is_some_and(|it| it.epoch.0 == epoch);
        let (at, _, _) = self.0.iter().rev().find(|(_, _, record)| is_it(record))?;
        Some(at.saturating_duration_since(since))
    }
}
