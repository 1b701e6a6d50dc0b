//! Where the work of runs is done, as the scheduler sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_core::board::{Domain, SecretName, TaskGuid};
use kapell_core::job::JobDefinition;
use kapell_core::run::{Evidence, RunId, StopKind, WorkEnd};
use kapell_core::seams::Timestamp;
use kapell_core::secret::Secret;
use tokio::sync::mpsc;

/// How long a backend may take to take work.
const LAUNCH_LIMIT: Duration = Duration::from_secs(60);

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
    Started {
        at: Timestamp,
    },
    /// Something keeps it from starting that may pass. Told whenever that is something else.
    Hindered {
        why: String,
    },
    /// It was taken, but never ran and never will.
    Unstartable {
        why: String,
    },
    Ended(WorkEnd),
}

/// Work of which no run knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Where it is, for people.
    pub place: String,
    /// Whoever set up its place wants to see to it themselves.
    pub stays: bool,
}

pub type Newsroom = mpsc::UnboundedSender<News>;

/// A place for work. It starts, watches and ends; it decides nothing. No task a run: whatever it watches it watches together.
///
/// News may come before the answer to the call that they follow: they have a way of their own.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// Where work is launched that is launched now: stored with the intent, and handed back to whoever asks for the work.
    /// Nothing if it is the same wherever it is asked.
    fn place(&self) -> ArcStr;

    /// The same for the work of this job, if that says more.
    fn place_of(&self, _definition: &JobDefinition) -> ArcStr {
        self.place()
    }

    /// How long a launch may take; none if the backend sees to that itself. Whether it has taken the work is then not known, so it
    /// is stopped.
    fn launch_limit(&self) -> Option<Duration> {
        Some(LAUNCH_LIMIT)
    }

    /// Takes work, or finds that it has taken it before: both are fine, and in both cases news of it follow. Who no longer
    /// waits for the answer has not undone anything.
    async fn launch(&self, work: &Work) -> Result<(), String>;

    /// What is known of an attempt that was to be launched at `place`; if it is there, news follow of what this does not say.
    async fn find(&self, attempt: &Attempt, place: &str) -> Evidence;

    /// Ends the work and waits until nothing of it runs. What is not there is ended, unless it was to be launched elsewhere.
    /// What is known of it stays known.
    async fn stop(&self, attempt: &Attempt, place: &str, kind: StopKind) -> Result<(), String>;

    /// How long one call to [`stop`](Self::stop) may take besides the grace time of the work. Whether it still runs is then not
    /// known.
    fn stop_limit(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// The outcome of an attempt is stored: what was kept of it besides its log may go.
    async fn release(&self, attempt: &Attempt);

    /// All attempts of which something is left.
    async fn known(&self) -> Result<Vec<Attempt>, String>;

    /// Whether work that nobody needs, and that was not seen to be gone, may be forgotten: whoever still has it ends it by itself.
    fn may_be_forgotten(&self, _attempt: &Attempt) -> bool {
        false
    }

    /// Where something is of which no run knows, and whether it is to be left alone.
    fn leftover(&self, _attempt: &Attempt) -> Leftover {
        Leftover { place: self.name().to_owned(), stays: false }
    }

    /// Whoever leads next cannot find what runs here, and may have it done once more: it is ended, at once if somebody may
    /// lead already.
    async fn leave(&self, _kind: StopKind) {}

    /// How often a cluster was asked for something on behalf of an attempt that was not released.
    fn calls(&self, _attempt: &Attempt) -> u32 {
        0
    }

    /// A task on the board that is the work of a run has started or is complete. Only those whose work is tasks listen.
    fn task_changed(&self, _guid: &TaskGuid) {}
}

/// Opens the secrets that the variables of a command refer to.
#[async_trait]
pub trait Secrets: fmt::Debug + Send + Sync {
    /// All of these, or why one of them is not to be had.
    async fn open(
        &self,
        domain: &Domain,
        names: &[SecretName],
    ) -> Result<BTreeMap<SecretName, Secret>, String>;
}
