//! Work that starts at once and is held until somebody ends it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_core::run::{Evidence, RunId, StopKind, WorkEnd};
use kapell_core::seams::Timestamp;
use kapell_node::scheduler::backend::{Attempt, Backend, News, Newsroom, What, Work};
use kapell_node::scheduler::checker::Unconstrained;
use kapell_node::scheduler::{Backends, Opening, Supplies, Supply};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// A backend that notes when it was asked for what, and does nothing else. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held(Arc<Inside>);

#[derive(Debug, Default)]
struct Inside {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    newsroom: Option<Newsroom>,
    launches: Vec<Launch>,
    count: usize,
    /// Whoever waits does so for this many: nobody is woken for less.
    wanted: usize,
    /// Nothing is kept of launches but their number.
    counts_only: bool,
}

/// What was launched when, by the clock on the wall in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) run_id: RunId,
    pub(crate) at_ns: i64,
}

/// The clock on the wall.
pub(crate) fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn wall() -> Timestamp {
    Timestamp(wall_ns() / 1_000_000)
}

impl Held {
    /// Keeps nothing but a count, where memory is measured.
    pub(crate) fn counting() -> Self {
        let this = Self::default();
        this.state().counts_only = true;
        this
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many were launched in all.
    pub(crate) async fn until(&self, count: usize) {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state();
                if state.count >= count {
                    return;
                }
                state.wanted = count;
            }
            changed.await;
        }
    }

    /// All launches since they were last taken.
    pub(crate) fn take(&self) -> Vec<Launch> {
        std::mem::take(&mut self.state().launches)
    }

    /// Ends the work of a run as if it had done well.
    pub(crate) fn end(&self, run_id: &RunId) {
        let end = WorkEnd { began: None, at: wall(), exit_code: Some(0), failure: None };
        self.tell(run_id, What::Ended(end));
    }

    fn tell(&self, run_id: &RunId, what: What) {
        let attempt = Attempt { run_id: run_id.clone(), number: 0 };
        if let Some(newsroom) = &self.state().newsroom {
            // Nobody is left who listens: it is ending.
            drop(newsroom.send(News { attempt, what }));
        }
    }
}

#[async_trait]
impl Backend for Held {
    fn name(&self) -> &'static str {
        "held"
    }

    fn place(&self) -> ArcStr {
        ArcStr::new()
    }

    async fn launch(&self, work: &Work) -> Result<(), String> {
        let at_ns = wall_ns();
        let run_id = &work.attempt.run_id;
        {
            let mut state = self.state();
            state.count += 1;
            if !state.counts_only {
                state.launches.push(Launch { run_id: run_id.clone(), at_ns });
            }
            if state.count == state.wanted {
                self.0.changed.notify_waiters();
            }
        }
        self.tell(run_id, What::Started { at: Timestamp(at_ns / 1_000_000) });
        Ok(())
    }

    async fn find(&self, _: &Attempt, _: &str) -> Evidence {
        Evidence::Running { since: wall() }
    }

    async fn stop(&self, _: &Attempt, _: &str, _: StopKind) -> Result<(), String> {
        Ok(())
    }

    async fn release(&self, _: &Attempt) {}

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Supplies for Held {
    async fn open(&self, opening: Opening) -> Result<Supply, String> {
        self.state().newsroom = Some(opening.newsroom);
        let backend: Arc<dyn Backend> = Arc::new(self.clone());
        Ok(Supply {
            backends: Backends::new(Arc::clone(&backend), backend),
            checker: Arc::new(Unconstrained),
            webhooks: None,
            errands: JoinSet::new(),
        })
    }
}
