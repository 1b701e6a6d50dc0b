//! Where the work of runs is done, as the scheduler sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_core::job::JobDefinition;
use kapell_core::run::{Evidence, RunId, StopKind, WorkEnd};
use kapell_core::seams::Timestamp;
use tokio::sync::mpsc;

/// One attempt of a run: the name under which a backend knows its work. At most one launch has it, ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    pub run_id: RunId,
    /// From 0.
    pub number: u32,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Work {
    pub attempt: Attempt,
    pub definition: Arc<JobDefinition>,
    /// Of the run, defaults filled in.
    pub parameters: BTreeMap<String, String>,
    pub scheduled_at: Timestamp,
}

/// What became of work. Told once each, in order, to whoever holds the other end; nothing is told of what was released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    pub attempt: Attempt,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Started { at: Timestamp },
    /// It was taken, but never ran and never will.
    Unstartable { why: String },
    Ended(WorkEnd),
}

pub type Newsroom = mpsc::UnboundedSender<News>;

/// A place for work. It starts, watches and ends; it decides nothing. No task a run: whatever it watches it watches together.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// Takes work, or finds that it has taken it before: both are fine, and in both cases news of it follow.
    async fn launch(&self, work: &Work) -> Result<(), String>;

    /// What is known of an attempt; if it is there, news of it follow.
    async fn find(&self, attempt: &Attempt) -> Evidence;

    /// Ends the work and waits until nothing of it runs. What is not there is ended.
    async fn stop(&self, attempt: &Attempt, kind: StopKind) -> Result<(), String>;

    /// The outcome of an attempt is stored: what was kept of it besides its log may go.
    async fn release(&self, attempt: &Attempt);

    /// All attempts of which something is left.
    async fn known(&self) -> Result<Vec<Attempt>, String>;
}
