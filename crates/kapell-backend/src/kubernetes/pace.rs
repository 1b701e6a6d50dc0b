//! How fast a cluster is asked: at most as the settings say, and slower while it says that it is too much.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// It never asks more rarely than so often a second.
const SLOWEST: f64 = 1.0;
/// With every call that is answered it goes back towards its usual pace by so much.
const FASTER: f64 = 1.05;

#[derive(Debug)]
pub(super) struct Limiter {
    most: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Calls a second.
    rate: f64,
    /// When the next call may go. Behind now by up to a second: those who were silent may go together.
    next: Instant,
    slowed: Instant,
}

impl Limiter {
    pub(super) fn new(calls_per_second: u32) -> Self {
        let most = f64::from(calls_per_second.max(1));
        let now = Instant::now();
        Self { most, state: Mutex::new(State { rate: most, next: now, slowed: now }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn.
    pub(super) async fn pass(&self) {
        let turn = {
            let mut state = self.state();
            let earliest = Instant::now().checked_sub(Duration::from_secs(1)).unwrap_or(state.next);
            let turn = state.next.max(earliest);
            state.next = turn + Duration::from_secs_f64(1.0 / state.rate);
            turn
        };
        sleep_until(turn).await;
    }

    /// The server has too much to do: half as many, and none for a while.
    pub(super) fn slower(&self, pause: Duration) {
        let now = Instant::now();
        let mut state = self.state();
        // Those that were sent together are refused together, which is one word and not many.
        if now.duration_since(state.slowed) >= Duration::from_millis(100) || state.rate >= self.most
        {
            state.rate = (state.rate / 2.0).max(SLOWEST);
            state.slowed = now;
        }
        state.next = state.next.max(now + pause);
    }

    pub(super) fn fine(&self) {
        let mut state = self.state();
        state.rate = (state.rate * FASTER).min(self.most);
    }

    #[cfg(test)]
    pub(super) fn rate(&self) -> f64 {
        self.state().rate
    }
}
