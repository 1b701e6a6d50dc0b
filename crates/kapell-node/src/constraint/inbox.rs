//! What constraints and actions say to the scheduler.

use std::collections::BTreeMap;

use kapell_core::board::JobId;
use kapell_core::constraint::{JobState, PastRun};
use kapell_core::job::{ActionId, Figure};
use kapell_core::run::{RunId, StopKind};
use kapell_core::seams::Timestamp;
use tokio::sync::{mpsc, oneshot};

/// A question or a wish. Whoever takes it answers, or drops the other end if it cannot.
#[derive(Debug)]
pub enum Message {
    /// How a job stands; nothing if there is no such job in the domain of the run that asks.
    JobState { job: JobId, of: RunId, reply: oneshot::Sender<Option<JobState>> },
    /// The runs of a job that have ended, the newest first; nothing if there is no such job in the domain of the run that asks.
    JobHistory { job: JobId, of: RunId, most: u32, reply: oneshot::Sender<Option<Vec<PastRun>>> },
    /// One run more, under this id: an action that is taken again after a crash asks for the same one, and one that is there
    /// is as good as a new one.
    Trigger { run_id: RunId, of: RunId, parameters: BTreeMap<String, String>, reply: Answer<()> },
    /// Answered by how many runs were told to end. `except` is the run whose action it is.
    CancelRuns {
        job: JobId,
        which: Which,
        except: RunId,
        kind: StopKind,
        why: String,
        reply: Answer<u32>,
    },
    SkipNext {
        job: JobId,
        /// The run whose action it is.
        of: RunId,
        action: ActionId,
        count: u32,
        reply: Answer<()>,
    },
    SetMetric {
        /// The run whose action it is.
        of: RunId,
        action: ActionId,
        metric: String,
        figure: Figure,
        reply: Answer<()>,
    },
    /// The run takes this action now: for those who look at it.
    Acting { run_id: RunId, action: &'static str, constraint: &'static str, at: Timestamp },
    /// These constraints of a run take their time: for those who look at it.
    Checking { run_id: RunId, constraints: Vec<&'static str>, at: Timestamp },
}

/// Done, or why not.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, String>>;

/// Which runs are meant: those that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    /// The one that was due last.
    Latest,
}

/// The way to the scheduler. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inbox(mpsc::Sender<Message>);

/// Nobody takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the scheduler does not answer: this host is stopping")]
pub struct Gone;

impl Inbox {
    pub const fn new(sender: mpsc::Sender<Message>) -> Self {
        Self(sender)
    }

    /// Tells what is good to know, unless others have more to say: nobody waits for it.
    pub(super) fn mention(&self, message: Message) {
        drop(self.0.try_send(message));
    }

    pub(super) async fn tell(&self, message: Message) -> Result<(), Gone> {
        self.0.send(message).await.map_err(|_| Gone)
    }

    /// Asks something, and waits for the answer.
    pub(super) async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.tell(message(reply)).await?;
        answer.await.map_err(|_| Gone)
    }
}
