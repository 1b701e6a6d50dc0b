use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// A runtime whose time stands still, and in which nothing happens, between two steps.
#[derive(Debug)]
pub(crate) struct Stepper {
    runtime: Runtime,
    quiet: Arc<Quiet>,
}

/// Whether the runtime has run out of things to do.
#[derive(Debug, Default)]
struct Quiet(Mutex<Rest>);

#[derive(Debug, Default)]
enum Rest {
    #[default]
    Unknown,
    AskedBy(Waker),
    Idle,
}

impl Stepper {
    pub(crate) fn new() -> Self {
        let quiet = Arc::new(Quiet::default());
        let told = Arc::clone(&quiet);
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_park(move || told.is_idle())
            .build();
        Self { runtime: runtime.expect("a runtime without I/O can always be had"), quiet }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(task));
    }

    /// Lets `elapsed` go by at once, then runs until there is nothing left to do.
    ///
    /// Whatever was to happen meanwhile happens late: the machine was busy elsewhere.
    pub(crate) fn step(&self, elapsed: Duration) {
        self.runtime.block_on(async {
            tokio::time::advance(elapsed).await;
            poll_fn(|cx| self.quiet.poll(cx)).await;
        });
    }
}

impl Quiet {
    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when the runtime would wait. Waking it here also keeps its clock where it is.
    fn is_idle(&self) {
        let mut rest = self.rest();
        if let Rest::AskedBy(waker) = std::mem::replace(&mut *rest, Rest::Idle) {
            drop(rest);
            waker.wake();
        }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut rest = self.rest();
        match &*rest {
            Rest::Idle => {
                *rest = Rest::Unknown;
                Poll::Ready(())
            }
            Rest::Unknown | Rest::AskedBy(_) => {
                *rest = Rest::AskedBy(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
