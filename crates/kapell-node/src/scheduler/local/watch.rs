//! Waits for all processes together, and tells how each ended.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kapell_backend::containers::{Containers as _, Exit};
use kapell_core::causes::chain;
use kapell_core::run::WorkEnd;
use kapell_core::seams::Timestamp;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::Inner;
use super::mark::{Kind, Mark};
use super::order::{MAIN, guid};
use crate::cell::outcome;
use crate::scheduler::backend::Attempt;
use crate::scheduler::teller::End;
use crate::scheduler::workflow;

/// Before an end is waited for again that could not be waited for.
const AGAIN: Duration = Duration::from_secs(1);

/// Ends when nobody is left who starts something.
pub(super) async fn watch(inner: Arc<Inner>, mut started: mpsc::UnboundedReceiver<Mark>) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            mark = started.recv() => match mark {
                Some(mark) => running.push(end(&inner, mark)),
                None => return,
            },
            Some((attempt, end)) = running.next() => inner.teller.ended(&attempt, end),
        }
    }
}

async fn end(inner: &Inner, mark: Mark) -> (Attempt, End) {
    let (attempt, guid) = (mark.attempt(), guid(&mark.attempt()));
    let exit = loop {
        match inner.driver.ended(&guid, MAIN).await {
            Ok(exit) => break exit,
            // It was released: nobody listens any more.
            Err(kapell_backend::containers::Error::Unknown(_)) => break Exit::default(),
            Err(error) => {
                let (run, error) = (&mark.run_id, chain(&error));
                tracing::warn!(%run, %error, "cannot wait for the work of a run, will try again");
                tokio::time::sleep(AGAIN).await;
            }
        }
    };
    let end = of_exit(inner, &mark, exit, inner.clock.wall()).await;
    (attempt, End::Ended(end))
}

pub(super) async fn of_exit(inner: &Inner, mark: &Mark, exit: Exit, at: Timestamp) -> WorkEnd {
    let plain = |exit: &Exit| {
        let outcome = outcome::of_exit(exit);
        WorkEnd { began: None, at, exit_code: outcome.exit_code, failure: outcome.failure }
    };
    match mark.kind {
        Kind::Command => plain(&exit),
        Kind::Workflow => {
            let (attempt, logs, known) = (mark.attempt(), inner.logs.clone(), exit.clone());
            let read = spawn_blocking(move || workflow::end(&exit, at, &attempt, &logs)).await;
            read.unwrap_or_else(|_| plain(&known))
        }
    }
}
