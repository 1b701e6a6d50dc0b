//! Launches of many runs by few tasks: much work is taken at once, and a task for each launch would cost more than that.

use std::sync::Arc;
use std::task::Poll;

use futures_util::poll;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_core::run::Happened;
use tokio::sync::mpsc;

use super::backend::Backend;
use super::perform::{self, Case};
use super::slab::Key;

/// So many launches have a task together. None waits for another.
pub(super) const TOGETHER: usize = 32;

/// One launch that is to be made.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) key: Key,
    pub(super) ticket: u32,
    pub(super) case: Case,
    pub(super) backend: Option<Arc<dyn Backend>>,
}

/// One launch that was answered.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) key: Key,
    pub(super) ticket: u32,
    pub(super) happened: Happened,
}

/// Makes all of these launches. Each is told of when it is answered: those that are at once, together.
pub(super) async fn launch(starts: Vec<Start>, answers: mpsc::UnboundedSender<Vec<Launched>>) {
    let mut at_once = Vec::with_capacity(starts.len());
    let mut slow = FuturesUnordered::new();
    for Start { key, ticket, case, backend } in starts {
        let mut launch = Box::pin(async move {
            Launched { key, ticket, happened: perform::launch(case, backend).await }
        });
        match poll!(&mut launch) {
            Poll::Ready(launched) => at_once.push(launched),
            Poll::Pending => slow.push(launch),
        }
    }
    // Whoever listens is there for as long as this is wanted.
    drop(answers.send(at_once));
    while let Some(launched) = slow.next().await {
        drop(answers.send(vec![launched]));
    }
}
