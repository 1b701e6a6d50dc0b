use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seams::{Clock, Moment};
use tokio::time::Instant;

use super::Fault;
use crate::error::Error;
use crate::model::{Fence, Key, Shard};
use crate::open::How;
use crate::store::Store;
use crate::testing::{Fresh, Place, how};
use crate::watch::Bell;

/// Makes stores with one fault, or with none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faults(pub(super) Option<Fault>);

/// One such store, as its clients share it.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) fault: Option<Fault>,
    pub(super) clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// A client of it.
#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) shared: Arc<Shared>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) prepared: Mutex<HashMap<Duration, Vec<Moment>>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) slots: BTreeMap<Key, Slot>,
    /// What stood at a key before its last change.
    pub(super) former: HashMap<Key, Slot>,
    /// Every deadline that was ever set.
    pub(super) deadlines: Vec<(Key, Moment)>,
    pub(super) bells: HashMap<Key, Vec<(Bell, Instant)>>,
    pub(super) piles: BTreeMap<Shard, Pile>,
    pub(super) offsets: HashMap<(Shard, Key), usize>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Slot {
    pub(super) generation: u64,
    pub(super) standing: Option<Standing>,
}

#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) value: Vec<u8>,
    pub(super) ttl: Option<Duration>,
    pub(super) until: Option<Moment>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Pile {
    pub(super) fence: Fence,
    pub(super) records: BTreeMap<Key, Vec<u8>>,
    pub(super) former: BTreeMap<Key, Vec<u8>>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Faulty {
    pub(super) fn is(&self, fault: Fault) -> bool {
        self.shared.fault == Some(fault)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    pub(super) fn prepared(&self) -> MutexGuard<'_, HashMap<Duration, Vec<Moment>>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Moment {
        if self.is(Fault::JudgesByClientClock) { self.clock.now() } else { self.shared.clock.now() }
    }

    /// Decides and writes in one step, or with others in between.
    pub(super) async fn write(
        &self,
        in_two_steps: bool,
        decide: impl Fn(&State) -> bool + Send,
        write: impl FnOnce(&mut State) + Send,
    ) -> bool {
        if in_two_steps {
            let holds = decide(&self.state());
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            if holds {
                write(&mut self.state());
            }
            return holds;
        }
        let mut state = self.state();
        let holds = decide(&state);
        if holds {
            write(&mut state);
        }
        holds
    }
}

#[async_trait]
impl Place for Faults {
    async fn fresh(&self, _: &How) -> Result<Arc<dyn Fresh>, Error> {
        let (fault, state) = (self.0, Mutex::default());
        Ok(Arc::new(Server(Arc::new(Shared { fault, clock: how().clock, state }))))
    }
}

#[derive(Debug)]
struct Server(Arc<Shared>);

#[async_trait]
impl Fresh for Server {
    async fn client(&self, how: &How) -> Result<Arc<dyn Store>, Error> {
        let (shared, clock) = (self.0.clone(), how.clock.clone());
        Ok(Arc::new(Faulty { shared, clock, prepared: Mutex::default() }))
    }

    async fn sweep(&self) -> Result<(), Error> {
        if self.0.fault == Some(Fault::SweepUsesFirstDeadline) {
            let now = self.0.clock.now();
            let mut state = self.0.state();
            let due = state.deadlines.iter().filter(|(_, at)| *at <= now);
            let due: Vec<Key> = due.map(|(key, _)| key.clone()).collect();
            for key in due {
                state.slots.entry(key).or_default().standing = None;
            }
        }
        Ok(())
    }
}
