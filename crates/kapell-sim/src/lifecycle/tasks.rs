use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kapell_core::seams::Moment;
use kapell_node::conductor::{Task, Tasks};
use kapell_node::elections::Killer;
use tokio_util::sync::CancellationToken;

/// How long services have to stop. Told apart from other waits by its length.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(3600);

/// Tasks of the exploring scheduler, counted. Time goes by when somebody says so.
#[derive(Debug, Clone, Default)]
pub(super) struct Explored {
    running: Arc<AtomicUsize>,
    /// Cancelled when the time for stopping has run out.
    pub(super) time_out: CancellationToken,
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Explored {
    pub(super) fn count(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

impl Tasks for Explored {
    fn spawn(&self, task: Task) {
        self.running.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(Arc::clone(&self.running));
        drop(shuttle::future::spawn(async move {
            let _counted = counted;
            task.await;
        }));
    }

    fn sleep(&self, wait: Duration) -> Task {
        if wait == STOP_LIMIT {
            let time_out = self.time_out.clone();
            return Box::pin(async move { time_out.cancelled().await });
        }
        Box::pin(super::script::a_while())
    }
}

/// A killer that says that it fired, and leaves everybody alive: whatever has to hold holds
/// then too.
#[derive(Debug, Default)]
pub(super) struct Fired(pub(super) CancellationToken);

impl Killer for Fired {
    fn set(&self, _at: Option<Moment>) {}

    fn fire(&self, _why: &str) {
        self.0.cancel();
    }
}
