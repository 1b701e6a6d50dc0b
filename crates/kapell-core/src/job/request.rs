//! What the board can be asked to do about jobs and runs. Each request is about one job, and so about one shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::definition::JobDefinition;
use super::figure::Figure;
use super::record::{ActionId, Passed, PauseCause};
use crate::board::{JobId, TaskGuid};
use crate::constraint::Outgoing;
use crate::run::{RunId, RunUpdate, StopKind, Trigger};
use crate::seams::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobRequest {
    /// Makes a job or changes it; the same again changes nothing. A new job begins now: earlier moments are not missed.
    Apply {
        definition: Box<JobDefinition>,
    },
    /// Nothing more is scheduled; runs that wait for their time are cancelled, others too with `cancel_runs`. The job is gone
    /// once its last run has ended.
    Remove {
        job_id: JobId,
        cancel_runs: bool,
    },
    Pause {
        job_id: JobId,
        cause: PauseCause,
        note: String,
    },
    Resume {
        job_id: JobId,
    },
    /// The moments after `from`, which must be where the job stands, up to `to`: each is a run or came to nothing.
    Advance {
        job_id: JobId,
        from: Timestamp,
        to: Timestamp,
        runs: Vec<NewRun>,
        passed: Vec<Passed>,
    },
    /// A job that stands at `from`, far ahead of the clock, goes back to `to`, now by the clock on the wall, and through what
    /// it had passed over.
    TakeBack {
        job_id: JobId,
        from: Timestamp,
        to: Timestamp,
    },
    /// One run more: by a person, a backfill, an action or as another try of an ended run. An id that is there is refused.
    Trigger {
        job_id: JobId,
        run: NewRun,
    },
    /// What became of a run. One that has ended stays as it is; an update that was stored before changes nothing.
    Update {
        run_id: RunId,
        update: Arc<RunUpdate>,
    },
    /// Somebody wants a run to end: noted, so that whoever leads next knows it.
    Cancel {
        run_id: RunId,
        kind: StopKind,
        why: String,
    },
    /// `skipNextInstance`. The same action again changes nothing.
    SkipNext {
        job_id: JobId,
        action: ActionId,
        count: u32,
    },
    /// `metric`, of a run of this job. The same action again changes nothing.
    Figure {
        job_id: JobId,
        action: ActionId,
        metric: String,
        /// What it is set to or counted up by, and when.
        figure: Figure,
    },
    /// Keeps a message until it was taken or given up. One that is kept already stays as it is.
    Post {
        message: Box<Outgoing>,
    },
    /// A message was taken, or is given up: it is not kept any more.
    Posted {
        job_id: JobId,
        id: ActionId,
    },
    /// Ended runs that the history does not keep; of those that it keeps nothing happens. At most 15.
    Forget {
        run_ids: Vec<RunId>,
    },
    /// What the board asks itself, and the scheduler where history has an age: runs that the history does not keep are
    /// forgotten and definitions that nobody needs; of a removed job its runs are cancelled, and it goes with the last.
    Settle {
        job_id: JobId,
    },
}

/// How many runs one request makes at most: with its job and one record more it stays within what a commit takes.
pub const MOST_RUNS: usize = 14;

/// What the scheduler is told after a commit. Names only: it looks at the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchedulerNews {
    Applied {
        job_id: JobId,
    },
    /// It is on its way out: nothing more is scheduled.
    Removed {
        job_id: JobId,
    },
    /// Nothing is left of it.
    Gone {
        job_id: JobId,
    },
    /// By a person, or after too many failures.
    Paused {
        job_id: JobId,
        cause: PauseCause,
    },
    Resumed {
        job_id: JobId,
    },
    /// It has moments to be passed over.
    Skips {
        job_id: JobId,
    },
    Made {
        run_id: RunId,
    },
    CancelWanted {
        run_id: RunId,
        kind: StopKind,
        why: String,
    },
    /// A task of a run has started or is complete.
    Task {
        guid: TaskGuid,
    },
}

/// A run to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    pub run_id: RunId,
    /// The moment by the schedule, or when it was asked for.
    pub scheduled_at: Timestamp,
    /// With jitter.
    pub due_at: Timestamp,
    pub trigger: Trigger,
    pub parameters: BTreeMap<String, String>,
}

impl JobRequest {
    /// The job that it is about: the name whose hash says which shard it is for.
    pub fn job_id(&self) -> &str {
        match self {
            Self::Apply { definition } => definition.job_id.as_str(),
            Self::Post { message } => message.job_id.as_str(),
            Self::Remove { job_id, .. }
            | Self::Pause { job_id, .. }
            | Self::Resume { job_id }
            | Self::Advance { job_id, .. }
            | Self::TakeBack { job_id, .. }
            | Self::Trigger { job_id, .. }
            | Self::SkipNext { job_id, .. }
            | Self::Figure { job_id, .. }
            | Self::Posted { job_id, .. }
            | Self::Settle { job_id } => job_id.as_str(),
            Self::Update { run_id, .. } | Self::Cancel { run_id, .. } => run_id.job(),
            Self::Forget { run_ids } => run_ids.first().map_or("", RunId::job),
        }
    }
}
