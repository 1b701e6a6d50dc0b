//! Commands as tasks on cells: each is an errand that a board hands to one of them.

mod attempt;
mod definition;
mod log;
mod outage;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kapell_api::client::{Client, Error as Trouble};
use kapell_backend::executor::{Error, Executor, Job, Later, Output, Started};
use kapell_core::board::TaskGuid;
use kapell_core::workflow::OnCell;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::wish::Wish;
use attempt::Attempt;

/// How many requests are under way at once: a host serves others too.
const CALLS: usize = 32;
/// How many logs are followed at once. Whoever gets no place reads its log when its task is over.
const STREAMS: usize = 128;
/// How long a task may take to be removed. The board forgets it anyway, only later.
const REMOVAL: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(200);

/// Cells that a host gives work to. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cells {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    /// How long a host may be away.
    patience: Duration,
    calls: Semaphore,
    streams: Semaphore,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("urls", &self.client.urls()).finish_non_exhaustive()
    }
}

impl Cells {
    /// `patience` is how long a step waits for hosts that do not answer.
    pub fn new(client: Client, patience: Duration) -> Self {
        let (calls, streams) = (Semaphore::new(CALLS), Semaphore::new(STREAMS));
        Self { shared: Arc::new(Shared { client, patience, calls, streams }) }
    }

    /// A place for one command: the task of this name, which may be there already.
    pub(super) fn errand(&self, guid: TaskGuid, wanted: OnCell, annotation: String) -> Errand {
        Errand { shared: Arc::clone(&self.shared), guid, wanted, annotation }
    }

    /// Ends and removes a task that nobody waits for any more.
    pub(super) fn abandon(&self, guid: TaskGuid) -> Later<()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let cancelled = shared.insist(|| shared.client.cancel_task(guid.as_str())).await;
            if cancelled {
                shared.insist(|| shared.client.delete_task(guid.as_str())).await;
            }
        })
    }
}

impl Shared {
    /// Waits its turn, then asks.
    async fn ask<T>(&self, call: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        // It is never closed.
        let _turn = self.calls.acquire().await;
        call.await
    }

    /// Asks until there is an answer or it took too long. True unless there is no such task.
    async fn insist<F>(&self, call: impl Fn() -> F) -> bool
    where
        F: Future<Output = Result<(), Trouble>>,
    {
        let asked = async {
            loop {
                match self.ask(call()).await {
                    Err(error) if error.passes() => sleep(AGAIN).await,
                    Err(error) if error.is_not_found() => return false,
                    Ok(()) | Err(_) => return true,
                }
            }
        };
        timeout(REMOVAL, asked).await.unwrap_or(true)
    }
}

/// A name that tells people which step it is, and that nobody else has.
pub(super) fn name(step: &str, drawn: u64) -> TaskGuid {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let step: String = step.chars().map(fits).take(40).collect();
    TaskGuid::new(format!("{}-{drawn:016x}", step.trim_matches('-')))
}

/// One command that is to run as a task.
#[derive(Debug)]
pub(super) struct Errand {
    shared: Arc<Shared>,
    guid: TaskGuid,
    wanted: OnCell,
    annotation: String,
}

impl Executor for Errand {
    fn start(&self, job: &Job, output: Arc<dyn Output>) -> Result<Started, Error> {
        let definition =
            definition::of(job, self.guid.clone(), &self.wanted, self.annotation.clone())?;
        let (wish, ear) = Wish::new();
        let attempt = Attempt::new(Arc::clone(&self.shared), definition, output, ear);
        let (shared, guid) = (Arc::clone(&self.shared), self.guid.clone());
        let settle = async move {
            shared.insist(|| shared.client.delete_task(guid.as_str())).await;
        };
        Ok(Started {
            control: Arc::new(wish),
            ended: Box::pin(attempt.run()),
            settle: Some(Box::pin(settle)),
        })
    }
}
