use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// One call as its caller saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<Ask, Answer> {
    pub ask: Ask,
    /// None if nobody knows.
    pub answer: Option<Answer>,
    /// When it began and ended, in the one order of all begins and ends.
    pub begin: u64,
    pub end: Option<u64>,
    /// The same by the clock, since the log was opened.
    pub sent: Duration,
    pub done: Option<Duration>,
}

/// What all clients of one store asked and were told.
#[derive(Debug)]
pub struct Log<Ask, Answer> {
    opened: Instant,
    ticks: AtomicU64,
    calls: Mutex<Vec<Call<Ask, Answer>>>,
}

impl<Ask: Clone, Answer: Clone> Log<Ask, Answer> {
    pub fn new() -> Self {
        Self { opened: Instant::now(), ticks: AtomicU64::new(0), calls: Mutex::default() }
    }

    /// Makes a call and records it. An error leaves it without an end.
    pub async fn record(
        &self,
        ask: Ask,
        call: impl Future<Output = Result<Answer, Error>>,
    ) -> Option<Answer> {
        let (sent, begin) = (self.opened.elapsed(), self.ticks.fetch_add(1, Ordering::SeqCst));
        let answer = call.await.ok();
        let end = answer.is_some().then(|| self.ticks.fetch_add(1, Ordering::SeqCst));
        let done = answer.is_some().then(|| self.opened.elapsed());
        let call = Call { ask, answer: answer.clone(), begin, end, sent, done };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        answer
    }

    /// All calls so far, in the order in which they began.
    pub fn calls(&self) -> Vec<Call<Ask, Answer>> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        calls.sort_by_key(|call| call.begin);
        calls
    }
}

impl<Ask: Clone, Answer: Clone> Default for Log<Ask, Answer> {
    fn default() -> Self {
        Self::new()
    }
}
