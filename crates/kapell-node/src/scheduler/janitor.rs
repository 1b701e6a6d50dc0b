//! Clears up the logs of runs: each host looks after its own.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use kapell_core::run::RunId;
use tokio::task::spawn_blocking;

use super::logs::{Lying, RunLogs};

#[cfg(test)]
mod tests;

/// Between two rounds, and before the first: a host that has just begun has better things to do.
const EVERY: Duration = Duration::from_secs(600);
/// What was written since is left alone, whatever is known of its run.
const YOUNG: Duration = Duration::from_secs(3_600);
/// Of so many runs at once it is asked whether they are there: their ids fit into the head of a request.
const AT_ONCE: usize = 64;

/// Knows which runs there are.
#[async_trait]
pub trait KnownRuns: fmt::Debug + Send + Sync {
    /// Those of these that there are, and whether each is under way. Who cannot say for certain says so.
    async fn known(&self, of: &[RunId]) -> Result<BTreeMap<RunId, bool>, String>;
}

/// What a round came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// Logs of runs that nobody knows any more.
    pub forgotten: usize,
    /// Those that lie elsewhere too.
    pub doubles: usize,
    /// Those of ended runs that were too much.
    pub surplus: usize,
}

#[derive(Debug, Clone)]
pub struct Janitor {
    pub logs: RunLogs,
    pub known: Arc<dyn KnownRuns>,
    /// What all logs on this host may take.
    pub most_bytes: u64,
}

impl Janitor {
    /// Clears up again and again.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            match self.clear(SystemTime::now()).await {
                Ok(cleared) if cleared == Cleared::default() => {}
                Ok(Cleared { forgotten, doubles, surplus }) => {
                    tracing::info!(forgotten, doubles, surplus, "logs of runs were cleared up");
                }
                Err(error) => {
                    tracing::warn!(error, "logs of runs were not cleared up: tried again later");
                }
            }
        }
    }

    /// Removes what belongs to no run and what lies elsewhere too; then the oldest, if there is too much.
    pub async fn clear(&self, now: SystemTime) -> Result<Cleared, String> {
        let logs = self.logs.clone();
        let all = blocking(move || logs.all()).await?;
        let (old, young): (Vec<Lying>, Vec<Lying>) = all
            .into_iter()
            .partition(|it| now.duration_since(it.modified).is_ok_and(|age| age > YOUNG));
        let mut left: u64 = young.iter().map(|it| it.bytes).sum();
        let mut cleared = Cleared::default();
        let mut ended = Vec::new();
        for some in old.chunks(AT_ONCE) {
            let ids: Vec<RunId> = some.iter().map(|it| it.run_id.clone()).collect();
            let known = self.known.known(&ids).await?;
            for lying in some {
                match known.get(&lying.run_id) {
                    None => {
                        self.remove(lying).await?;
                        cleared.forgotten += 1;
                    }
                    Some(true) => left += lying.bytes,
                    Some(false) if lying.is_double => {
                        self.remove(lying).await?;
                        cleared.doubles += 1;
                    }
                    Some(false) => {
                        left += lying.bytes;
                        ended.push(lying.clone());
                    }
                }
            }
        }
        // What lies in the shared place is not on this host's disk alone, and is not counted.
        ended.retain(|it| !it.is_shared);
        ended.sort_by_key(|it| it.modified);
        for lying in ended {
            if left <= self.most_bytes {
                break;
            }
            self.remove(&lying).await?;
            left = left.saturating_sub(lying.bytes);
            cleared.surplus += 1;
        }
        Ok(cleared)
    }

    async fn remove(&self, lying: &Lying) -> Result<(), String> {
        let (logs, lying) = (self.logs.clone(), lying.clone());
        blocking(move || logs.remove(&lying)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let done = spawn_blocking(work).await.map_err(|error| error.to_string())?;
    done.map_err(|error| error.to_string())
}
