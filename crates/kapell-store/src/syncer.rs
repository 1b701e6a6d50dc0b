//! Flushes a file to disk in the background, at most once an interval.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Writes are already safe from a crash of the process; this makes them safe from one of the machine.
///
/// A thread of its own, because a flush may take long and whoever writes must not wait for it.
#[derive(Debug)]
pub(crate) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    dirty: bool,
    closing: bool,
    failed: Option<io::Error>,
}

impl Syncer {
    pub(crate) fn new(file: File) -> Self {
        let shared = Shared { file, state: Mutex::default(), wake: Condvar::new() };
        Self { shared: Arc::new(shared), thread: None }
    }

    /// Notes that there is something to flush. The thread begins with the first such note.
    pub(crate) fn dirty(&mut self, interval: Duration) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.dirty {
            return;
        }
        state.dirty = true;
        drop(state);
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let named = std::thread::Builder::new().name("journal-sync".to_owned());
            // Without a thread the flush happens when the log is closed.
            self.thread = named.spawn(move || shared.flush_again_and_again(interval)).ok();
        }
        self.shared.wake.notify_one();
    }

    /// Flushes what is left and ends the thread. Tells the first flush that failed.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).closing = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| io::Error::other("the flushing thread panicked"))?;
        }
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if std::mem::take(&mut state.dirty) { self.shared.file.sync_data() } else { Ok(()) }
    }
}

impl Shared {
    fn flush_again_and_again(&self, interval: Duration) {
        let mut last: Option<Instant> = None;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.closing {
            let wait = match last {
                Some(last) if state.dirty => interval.saturating_sub(last.elapsed()),
                None if state.dirty => interval,
                Some(_) | None => Duration::MAX,
            };
            if state.dirty && wait.is_zero() {
                state.dirty = false;
                drop(state);
                let flushed = self.file.sync_data();
                last = Some(Instant::now());
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = flushed {
                    state.failed.get_or_insert(error);
                }
                continue;
            }
            if last.is_none() && state.dirty {
                last = Some(Instant::now());
            }
            let wait = wait.min(Duration::from_secs(3_600));
            state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        // Whoever wants to know the outcome calls `close` first.
        drop(self.close());
    }
}
