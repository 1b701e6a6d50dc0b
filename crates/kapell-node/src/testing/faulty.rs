use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};
use kapell_store::model::{
    Commit, Entry, Expiry, Fence, Generation, Key, Limits, Op, Page, Raise, Shard, Write,
};
use kapell_store::{Bell, Error, Shards, Store, Ttl, Watch};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// One kind of call to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    Prepare,
    Insert,
    Swap,
    Delete,
    Read,
    List,
    Lift,
    Watch,
    Raise,
    Fence,
    Commit,
    Scan,
}

impl Call {
    #[rustfmt::skip]
    pub const ALL: [Self; 12] = [
        Self::Prepare, Self::Insert, Self::Swap, Self::Delete, Self::Read, Self::List, Self::Lift,
        Self::Watch, Self::Raise, Self::Fence, Self::Commit, Self::Scan,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Insert => "insert_if_absent",
            Self::Swap => "compare_and_swap",
            Self::Delete => "compare_and_delete",
            Self::Read => "read",
            Self::List => "list",
            Self::Lift => "lift",
            Self::Watch => "watch",
            Self::Raise => "raise",
            Self::Fence => "fence",
            Self::Commit => "commit",
            Self::Scan => "scan",
        }
    }
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never reached the store; an error that may pass.
    Fail,
    /// It never reached the store; an error that does not pass by waiting.
    Deny,
    /// It reaches the store, if the caller still waits, when the fault is healed.
    Hang,
    /// It reaches the store after this time, if the caller still waits.
    Delay(Duration),
    /// It is done, and an error says otherwise.
    LoseAnswer,
    /// It is done after this time, whoever waits, and no answer ever comes.
    Late(Duration),
}

/// A client of a store with switches for what may go wrong between the two.
#[derive(Debug)]
pub struct Faulty {
    store: Arc<dyn Store>,
    switches: Mutex<Switches>,
    /// Told of every change of the switches.
    turned: watch::Sender<()>,
    mute: watch::Sender<bool>,
    /// Calls that are done whoever waits, and what carries the news of changes.
    strays: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Switches {
    /// The fault, and for how many more calls if not for all.
    faults: BTreeMap<Call, (Fault, Option<usize>)>,
    begun: BTreeMap<Call, usize>,
}

impl Faulty {
    /// A client that works.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            switches: Mutex::default(),
            turned: watch::Sender::new(()),
            mute: watch::Sender::new(false),
            strays: Mutex::default(),
        }
    }

    fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives all these calls a fault until they are healed.
    pub fn set(&self, calls: &[Call], fault: Fault) {
        self.switches().faults.extend(calls.iter().map(|&call| (call, (fault, None))));
        self.turned.send_replace(());
    }

    /// Gives the next `times` calls of this kind a fault.
    pub fn next(&self, call: Call, times: usize, fault: Fault) {
        self.switches().faults.insert(call, (fault, Some(times)));
        self.turned.send_replace(());
    }

    /// Takes all faults back, and tells of changes again, as if there had been one meanwhile.
    pub fn heal(&self) {
        self.switches().faults.clear();
        self.mute.send_if_modified(std::mem::take);
        self.turned.send_replace(());
    }

    /// Tells of no changes until healed, as a store that cannot.
    pub fn mute(&self) {
        self.mute.send_replace(true);
    }

    /// How many calls of this kind were begun.
    pub fn begun(&self, call: Call) -> usize {
        self.switches().begun.get(&call).copied().unwrap_or_default()
    }

    fn begin(&self, call: Call) -> Option<Fault> {
        let mut switches = self.switches();
        *switches.begun.entry(call).or_default() += 1;
        let (fault, left) = switches.faults.get_mut(&call)?;
        let fault = *fault;
        if let Some(left) = left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                switches.faults.remove(&call);
            }
        }
        Some(fault)
    }

    fn is_hung(&self, call: Call) -> bool {
        matches!(self.switches().faults.get(&call), Some((Fault::Hang, _)))
    }

    fn strays(&self) -> MutexGuard<'_, JoinSet<()>> {
        let mut strays = self.strays.lock().unwrap_or_else(PoisonError::into_inner);
        while strays.try_join_next().is_some() {}
        strays
    }

    async fn run<T: Send>(
        &self,
        call: Call,
        deed: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.store.name().to_owned();
        match self.begin(call) {
            None => deed.await,
            Some(Fault::Fail) => Err(Error::Failed {
                store,
                call: call.name(),
                source: "a fault of the test".into(),
            }),
            Some(Fault::Deny) => Err(Error::Denied { store, source: "a fault of the test".into() }),
            Some(Fault::Hang) => {
                let mut turned = self.turned.subscribe();
                while self.is_hung(call) && turned.changed().await.is_ok() {}
                deed.await
            }
            Some(Fault::Delay(wait)) => {
                tokio::time::sleep(wait).await;
                deed.await
            }
            Some(Fault::LoseAnswer) => {
                let _lost = deed.await;
                Err(Error::Failed {
                    store,
                    call: call.name(),
                    source: "the answer was lost".into(),
                })
            }
            Some(Fault::Late(wait)) => {
                self.strays().spawn(async move {
                    tokio::time::sleep(wait).await;
                    let _lost = deed.await;
                });
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl Ttl for Faulty {
    fn expiry(&self) -> Expiry {
        self.store.expiry()
    }

    async fn prepare(&self, ttl: Duration) -> Result<(), Error> {
        let store = Arc::clone(&self.store);
        self.run(Call::Prepare, async move { store.prepare(ttl).await }).await
    }

    async fn insert_if_absent(
        &self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        let (store, key, value) = (Arc::clone(&self.store), key.clone(), value.to_vec());
        let deed = async move { store.insert_if_absent(&key, seen, &value, ttl).await };
        self.run(Call::Insert, deed).await
    }

    async fn compare_and_swap(
        &self,
        key: &Key,
        old: &[u8],
        new: &[u8],
        ttl: Option<Duration>,
    ) -> Result<Write, Error> {
        let (store, key) = (Arc::clone(&self.store), key.clone());
        let (old, new) = (old.to_vec(), new.to_vec());
        let deed = async move { store.compare_and_swap(&key, &old, &new, ttl).await };
        self.run(Call::Swap, deed).await
    }

    async fn compare_and_delete(&self, key: &Key, old: &[u8]) -> Result<Write, Error> {
        let (store, key, old) = (Arc::clone(&self.store), key.clone(), old.to_vec());
        self.run(Call::Delete, async move { store.compare_and_delete(&key, &old).await }).await
    }

    async fn read(&self, key: &Key) -> Result<Entry, Error> {
        let (store, key) = (Arc::clone(&self.store), key.clone());
        self.run(Call::Read, async move { store.read(&key).await }).await
    }

    async fn list(&self) -> Result<Vec<(Key, Entry)>, Error> {
        let store = Arc::clone(&self.store);
        self.run(Call::List, async move { store.list().await }).await
    }

    async fn lift(&self, key: &Key, floor: Generation) -> Result<(), Error> {
        let (store, key) = (Arc::clone(&self.store), key.clone());
        self.run(Call::Lift, async move { store.lift(&key, floor).await }).await
    }

    async fn watch(&self, key: &Key) -> Result<Watch, Error> {
        let (store, key) = (Arc::clone(&self.store), key.clone());
        let mut changes = self.run(Call::Watch, async move { store.watch(&key).await }).await?;
        let bell = Bell::new();
        let watch = bell.watch();
        let mut mute = self.mute.subscribe();
        let feeder = self.strays().spawn(async move {
            loop {
                tokio::select! {
                    told = changes.changed() => if told.is_err() { break },
                    Ok(()) = mute.changed() => {}
                }
                if !*mute.borrow_and_update() {
                    bell.ring();
                }
            }
        });
        Ok(watch.fed_by(feeder))
    }
}

#[async_trait]
impl Shards for Faulty {
    fn limits(&self) -> Limits {
        self.store.limits()
    }

    async fn raise(&self, seat: Seat, epoch: Epoch) -> Result<Raise, Error> {
        let store = Arc::clone(&self.store);
        self.run(Call::Raise, async move { store.raise(seat, epoch).await }).await
    }

    async fn fence(&self, shard: Shard) -> Result<Fence, Error> {
        let store = Arc::clone(&self.store);
        self.run(Call::Fence, async move { store.fence(shard).await }).await
    }

    async fn commit(&self, shard: Shard, at: Fence, ops: &[Op]) -> Result<Commit, Error> {
        let (store, ops) = (Arc::clone(&self.store), ops.to_vec());
        self.run(Call::Commit, async move { store.commit(shard, at, &ops).await }).await
    }

    async fn scan(&self, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
        let (store, after) = (Arc::clone(&self.store), after.cloned());
        self.run(Call::Scan, async move { store.scan(shard, after.as_ref()).await }).await
    }
}

impl Store for Faulty {
    fn name(&self) -> &str {
        self.store.name()
    }
}

#[cfg(test)]
mod tests {
    use kapell_core::seat::Seat;
    use kapell_store::keys;
    use kapell_store::mem::Mem;

    use super::*;
    use crate::testing::TokioClock;

    const LONG: Duration = Duration::from_secs(60);

    /// An insert under a fault, given up after a while: what was answered, and whether
    /// something stands there then and after a longer while.
    async fn insert(fault: Fault) -> (String, bool, bool) {
        let store: Arc<dyn Store> = Arc::new(Mem::new(Arc::new(TokioClock::new())));
        let faulty = Faulty::new(Arc::clone(&store));
        faulty.next(Call::Insert, 1, fault);
        let key = keys::leader(Seat::FIRST);
        let call = faulty.insert_if_absent(&key, Generation(0), b"value", None);
        let answer = match tokio::time::timeout(LONG, call).await {
            Ok(answer) => answer.map_or_else(|_| "an error".to_owned(), |it| format!("{it:?}")),
            Err(_) => "nothing".to_owned(),
        };
        let stands = async || store.read(&key).await.unwrap().held.is_some();
        let then = stands().await;
        tokio::time::sleep(LONG).await;
        assert_eq!(faulty.begun(Call::Insert), 1);
        (answer, then, stands().await)
    }

    #[tokio::test(start_paused = true)]
    async fn every_fault_does_what_it_says() {
        let answer = |text: &str, then, later| (text.to_owned(), then, later);
        assert_eq!(insert(Fault::Fail).await, answer("an error", false, false));
        assert_eq!(insert(Fault::Deny).await, answer("an error", false, false));
        assert_eq!(insert(Fault::LoseAnswer).await, answer("an error", true, true));
        assert_eq!(insert(Fault::Delay(LONG / 2)).await, answer("Done", true, true));
        assert_eq!(insert(Fault::Delay(LONG * 2)).await, answer("nothing", false, false));
        assert_eq!(insert(Fault::Late(LONG / 2)).await, answer("nothing", true, true));
        assert_eq!(insert(Fault::Late(LONG * 3 / 2)).await, answer("nothing", false, true));
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_goes_on_when_it_is_healed() {
        let faulty = Faulty::new(Arc::new(Mem::new(Arc::new(TokioClock::new()))));
        faulty.set(&Call::ALL, Fault::Hang);
        let key = keys::leader(Seat::FIRST);
        let heal = async {
            tokio::time::sleep(LONG).await;
            faulty.heal();
        };
        let hung = async { tokio::time::timeout(LONG * 2, faulty.read(&key)).await };
        let (read, ()) = tokio::join!(hung, heal);
        assert!(read.is_ok_and(|read| read.is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_calls_have_the_fault() {
        let faulty = Faulty::new(Arc::new(Mem::new(Arc::new(TokioClock::new()))));
        faulty.next(Call::Read, 2, Fault::Fail);
        let key = keys::leader(Seat::FIRST);
        assert!(faulty.read(&key).await.is_err());
        assert!(faulty.list().await.is_ok());
        assert!(faulty.read(&key).await.is_err());
        assert!(faulty.read(&key).await.is_ok());
    }
}
